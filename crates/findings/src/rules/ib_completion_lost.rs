//! `ib-completion-lost`: completions for requests that are no longer known.
//!
//! ## What
//!
//! The receiver got completions that fit no request.
//!
//! ## Why
//!
//! Seen with NICs that complete out of order, with adaptive routing or port fail-over on, and with
//! bugs of NCCL 2.29 and 2.30's new request tracking.
//!
//! ## Example
//!
//! `h1: unknown completion`
//!
//! ## Remedy
//!
//! Update NCCL and the HCA's firmware; as a stop-gap NCCL_IB_ADAPTIVE_ROUTING=0 and port fail-over
//! off.
//!
//! ## Source
//!
//! NCCL src/transport/net_ib/p2p.cc, 2.29.7 and later.

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "ib-completion-lost",
        Severity::Error,
        "completions for requests that are no longer known",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let lost = incident.notices(&[
        "Unknown completion",
        "nable to retrieve a request on the receiver",
        "stale CQE",
        "Unrecognized request",
    ]);
    let Some(first) = lost.first() else { return };
    let host = incident.process(first).map_or("a host", |p| p.host.as_str());
    findings.push(RULE.found(
        Confidence::Likely,
        format!("{host} got a completion for a request that it no longer knows"),
        "the NIC completed out of order or twice, as seen with adaptive routing, port fail-over and \
         early versions of NCCL's request tracking (2.29, 2.30)",
        "update NCCL and the HCA's firmware; to confirm, run once with NCCL_IB_ADAPTIVE_ROUTING=0",
        incident.exhibits(lost.iter().map(|n| &n.at), 3),
    ));
}
