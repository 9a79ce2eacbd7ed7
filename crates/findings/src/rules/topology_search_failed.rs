//! `topology-search-failed`: NCCL found no path pattern and fell back.
//!
//! ## What
//!
//! The search for rings found nothing for the machine as NCCL sees it, and NCCL used a simple
//! order.
//!
//! ## Why
//!
//! The PCIe tree is hidden (VM, container without /sys), a NIC is missing on some node, or a
//! topology file does not fit. It works, slowly.
//!
//! ## Example
//!
//! `h1: no path for pattern 4, simple order used`
//!
//! ## Remedy
//!
//! Dump the topology (NCCL_TOPO_DUMP_FILE) and compare it with `nvidia-smi topo -m`.
//!
//! ## Source
//!
//! NCCL src/graph/search.cc; a warning up to 2.26, INFO from 2.27.3.

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "topology-search-failed",
        Severity::Warning,
        "NCCL found no path pattern and fell back",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let lost = incident.notices(&["Could not find a path for pattern", "Could not create rings"]);
    let Some(first) = lost.first() else { return };
    let host = incident.process(first).map_or("a host", |p| p.host.as_str());
    findings.push(RULE.found(
        Confidence::Certain,
        format!("{host}: {}", first.text),
        "the machine as NCCL sees it has no usable ring: a hidden PCIe tree, a missing NIC, or a \
         topology file that does not fit; the simple order that is used instead is slow",
        "dump what NCCL sees (NCCL_TOPO_DUMP_FILE=/tmp/topo.xml) and compare it with `nvidia-smi topo \
         -m`; in a VM set NCCL_TOPO_FILE",
        incident.exhibits(lost.iter().map(|n| &n.at), 3),
    ));
}
