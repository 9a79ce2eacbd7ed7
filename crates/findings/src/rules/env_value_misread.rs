//! `env-value-misread`: NCCL reads another value than is written.
//!
//! ## What
//!
//! Text where a number is read, a unit behind a number, a leading 0, quotes or a carriage return that
//! belong to the value, a word that is not known. References that somebody else fills in are left alone.
//!
//! ## Why
//!
//! Numbers are read by `strtoll` with base 0: `true` is 0, `8M` is 8, `022` is 18. Words are compared
//! exactly: `nvl` is none. None of this gives a message.
//!
//! ## Example
//!
//! `NCCL_BUFFSIZE=8M is read as 8`
//!
//! ## Remedy
//!
//! Write the number or word that NCCL reads.
//!
//! ## Source
//!
//! NCCL src/misc/param.cc, graph/paths.cc; in all releases.

use ncclctl_nccl::doubt::value;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("env-value-misread", Severity::Warning, "NCCL reads another value than is written")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[value::misread], findings);
}
