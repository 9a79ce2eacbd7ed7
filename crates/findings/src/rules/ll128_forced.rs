//! `ll128-forced`: the LL128 protocol is forced on.
//!
//! ## What
//!
//! NCCL_PROTO names LL128, or excludes another protocol with `^` and not LL128.
//!
//! ## Why
//!
//! LL128's normal state is automatic: on only where stores of 128 bytes arrive whole (NVLink, one GPU
//! generation). A list sets what it names, or what it does not exclude, to on, also where data gets
//! wrong.
//!
//! ## Example
//!
//! `NCCL_PROTO=^Simple switches LL128 on`
//!
//! ## Remedy
//!
//! Unset NCCL_PROTO, or write `NCCL_PROTO=^LL128`.
//!
//! ## Source
//!
//! NCCL src/graph/tuning.cc, in all releases from 2.5.

use ncclctl_nccl::doubt::work_around;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("ll128-forced", Severity::Warning, "the LL128 protocol is forced on")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[work_around::ll128], findings);
}
