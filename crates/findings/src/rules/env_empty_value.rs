//! `env-empty-value`: variable set to the empty string.
//!
//! ## What
//!
//! A variable of NCCL is set to nothing, often by an interpolation whose source is missing.
//!
//! ## Why
//!
//! Empty is not unset: it hides the value of nccl.conf, and where a number is read it has acted as 0
//! (NCCL_IB_GID_INDEX= took the first GID).
//!
//! ## Example
//!
//! `NCCL_IB_GID_INDEX is set to nothing`
//!
//! ## Remedy
//!
//! Take the line out, or give it a default: `${NAME:-value}`.
//!
//! ## Source
//!
//! NCCL src/misc/param.cc.

use ncclctl_nccl::doubt::value;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("env-empty-value", Severity::Warning, "variable set to the empty string")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[value::empty], findings);
}
