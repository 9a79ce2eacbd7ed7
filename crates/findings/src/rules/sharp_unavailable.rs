//! `sharp-unavailable`: SHARP was asked for, and is not available.
//!
//! ## What
//!
//! CollNet or the SHARP plugin could not be set up; NCCL goes on without.
//!
//! ## Why
//!
//! The fabric has no aggregation manager (most clouds), or the job may not use it.
//!
//! ## Example
//!
//! `ib-vm-52: SHARP coll init error`
//!
//! ## Remedy
//!
//! Drop NCCL_COLLNET_ENABLE (and NCCL_ALGO=CollNet) until the fabric offers SHARP.
//!
//! ## Source
//!
//! NCCL src/transport.cc, src/transport/coll_net.cc; nccl-rdma-sharp-plugins.

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("sharp-unavailable", Severity::Warning, "SHARP was asked for, and is not available")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let failed = incident.notices(&[
        "SHARP coll init error",
        "Cannot create SHARP job",
        "SHARP context",
        "Cannot initialize CollNet",
        "ignoring NCCL_ALGO=COLLNET",
    ]);
    let failed: Vec<_> =
        failed.into_iter().filter(|n| n.level == ncclctl_nccl::log::Level::Warn).collect();
    let Some(first) = failed.first() else { return };
    let host = incident.process(first).map_or("a host", |p| p.host.as_str());
    let asked = incident.setting("NCCL_COLLNET_ENABLE").or_else(|| incident.setting("NCCL_ALGO"));
    let mut places: Vec<_> = failed.iter().map(|n| &n.at).collect();
    places.extend(asked.map(|(_, at)| at));
    findings.push(RULE.found(
        Confidence::Certain,
        format!("{host}: {}", first.text.trim_start_matches("NET/IB : ")),
        "the fabric has no aggregation manager that serves this job; NCCL goes on with ordinary \
         algorithms",
        "drop NCCL_COLLNET_ENABLE (and CollNet from NCCL_ALGO) until the fabric offers SHARP",
        incident.exhibits(places, 4),
    ));
}
