//! `env-removed-name`: a variable that NCCL does not read any more.
//!
//! ## What
//!
//! A variable of an older release, and the release in use (or the newest, where none is known) does not
//! read it.
//!
//! ## Why
//!
//! Variables that were taken out are ignored without a message; the line looks as if it did something.
//!
//! ## Example
//!
//! `NCCL_TREE_THRESHOLD is not read by NCCL 2.32.6`
//!
//! ## Remedy
//!
//! Take it out, or write what took its place.
//!
//! ## Source
//!
//! The catalogue of variables: last tag that reads the name.

use ncclctl_nccl::doubt::name;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "env-removed-name",
        Severity::Warning,
        "a variable that NCCL does not read any more",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[name::removed], findings);
}
