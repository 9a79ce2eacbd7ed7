//! `ib-timeout-too-high`: NCCL_IB_TIMEOUT far over the default.
//!
//! ## What
//!
//! A code over 22, or one that means never.
//!
//! ## Why
//!
//! The time a try takes doubles with each step (4.096 µs times 2 to the power of the code), and there are
//! seven tries: a link that fails hangs the job for minutes before an error.
//!
//! ## Example
//!
//! `NCCL_IB_TIMEOUT=23: 34 s a try`
//!
//! ## Remedy
//!
//! Unset it (20 from 2.23.4, 18 before), and repair the link that needed it.
//!
//! ## Source
//!
//! InfiniBand specification, local ACK timeout; NCCL src/transport/net_ib.

use ncclctl_nccl::doubt::verbs;

use crate::documents::Documents;
use crate::finding::{Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("ib-timeout-too-high", Severity::Info, "NCCL_IB_TIMEOUT far over the default")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[verbs::timeout_high], findings);
}
