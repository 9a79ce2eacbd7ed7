//! `ib-timeout-too-low`: NCCL_IB_TIMEOUT is far below the default.
//!
//! ## What
//!
//! The retry time-out of RDMA transfers is set to a small code.
//!
//! ## Why
//!
//! The time is 4.096 µs x 2^value: code 2 is 16 µs, the default 20 (18 before 2.23) is 4.3 s. A
//! short pause of the fabric then ends the job with status 12.
//!
//! ## Example
//!
//! `NCCL_IB_TIMEOUT=2 is 16 µs a try`
//!
//! ## Remedy
//!
//! Unset it, or set 20 to 22.
//!
//! ## Source
//!
//! InfiniBand specification, Local ACK Timeout; NCCL src/transport/net_ib.

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;
use ncclctl_nccl::doubt::verbs;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new("ib-timeout-too-low", Severity::Warning, "NCCL_IB_TIMEOUT is far below the default")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[verbs::timeout_low], findings);
}

/// Codes below this make a job fail at a pause of 270 ms (seven tries of 67 ms at code 14).
const LEAST: u32 = 14;

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let Some((value, at)) = incident.setting("NCCL_IB_TIMEOUT") else { return };
    let Ok(code) = value.parse::<u32>() else { return };
    if code == 0 || code >= LEAST {
        return;
    }
    let micros = 4.096 * f64::from(1_u32 << code.min(30));
    findings.push(RULE.found(
        Confidence::Certain,
        format!("NCCL_IB_TIMEOUT={code} is {micros:.0} µs a try"),
        "the default is 20 (18 before 2.23), 4.3 s a try: with so short a time any pause of the \
         fabric ends the job with status 12",
        "unset NCCL_IB_TIMEOUT, or set 20 to 22",
        incident.exhibits([at], 1),
    ));
}
