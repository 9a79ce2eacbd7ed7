//! `env-value-out-of-range`: a number that NCCL or the hardware does not take.
//!
//! ## What
//!
//! A number under or over what the variable takes, or no multiple of its step.
//!
//! ## Why
//!
//! NCCL cuts it or takes the default with a line at INFO level; where the hardware gets it, the connection
//! fails.
//!
//! ## Example
//!
//! `NCCL_IB_SL=16 is outside of 0 to 15`
//!
//! ## Remedy
//!
//! Write a number in the range.
//!
//! ## Source
//!
//! NCCL 2.30.7, where each variable is read; field widths of the InfiniBand specification.

use ncclctl_nccl::doubt::value;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "env-value-out-of-range",
        Severity::Warning,
        "a number that NCCL or the hardware does not take",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[value::out_of_range], findings);
}
