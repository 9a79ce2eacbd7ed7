//! `env-no-effect`: a variable that another one makes idle.
//!
//! ## What
//!
//! A setting of something that is switched off beside it, or that no release in use looks at.
//!
//! ## Why
//!
//! It misleads who reads the file.
//!
//! ## Example
//!
//! `NCCL_IB_TIMEOUT=22 does nothing here`
//!
//! ## Remedy
//!
//! Take it out.
//!
//! ## Source
//!
//! NCCL src/transport/net_ib/init.cc, src/debug.cc.

use ncclctl_nccl::doubt::pair;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("env-no-effect", Severity::Info, "a variable that another one makes idle")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[pair::no_effect], findings);
}
