//! `ras-address-exposed`: the RAS service can be reached from other hosts.
//!
//! ## What
//!
//! NCCL_RAS_ADDR is no loopback address.
//!
//! ## Why
//!
//! RAS has no authentication. It tells what runs, and from 2.31 it also changes the running job.
//!
//! ## Example
//!
//! `NCCL_RAS_ADDR=0.0.0.0:28028 can be reached from other hosts`
//!
//! ## Remedy
//!
//! Write `NCCL_RAS_ADDR=localhost:28028`, or unset it.
//!
//! ## Source
//!
//! NCCL src/ras (2.24.3 and later).

use ncclctl_nccl::doubt::output;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "ras-address-exposed",
        Severity::Warning,
        "the RAS service can be reached from other hosts",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[output::ras_address], findings);
}
