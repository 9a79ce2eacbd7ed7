//! `imex-same-node`: a fabric handle does not import between isolated GPUs of one node.
//!
//! ## What
//!
//! Importing a peer's memory failed with `invalid device ordinal` although both GPUs are in one
//! NVLink domain.
//!
//! ## Why
//!
//! Each process sees only its own GPU (one GPU a pod or task). Fabric handles of a GPU on the same
//! node do not import into a container that can not see that GPU.
//!
//! ## Example
//!
//! `nickel-0: import of a peer's memory failed (101, invalid device ordinal)`
//!
//! ## Remedy
//!
//! Let the ranks of one node see all its GPUs, or NCCL_MNNVL_ENABLE=0 / NCCL_CUMEM_ENABLE=0.
//!
//! ## Source
//!
//! NCCL src/transport/p2p.cc ncclP2pImportShareableBuffer; cuMemImportFromShareableHandle.

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "imex-same-node",
        Severity::Error,
        "a fabric handle does not import between isolated GPUs of one node",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let failed: Vec<_> = incident
        .log
        .warnings()
        .filter(|n| n.text.contains("invalid device ordinal") || n.text.contains("failure 101"))
        .filter(|n| n.file.ends_with("p2p.cc") || n.text.contains("ImportFromShareableHandle"))
        .collect();
    let Some(first) = failed.first() else { return };
    let host = incident.process(first).map_or("a host", |p| p.host.as_str());
    let fabric = incident.notices(&["fabric UUID", "MNNVL"]);
    let domain = fabric.iter().find(|n| {
        n.text.contains("MNNVL 1")
            || (n.text.contains("fabric UUID") && !n.text.contains("UUID 0.0 "))
    });
    let mut places: Vec<_> = failed.iter().map(|n| &n.at).collect();
    places.extend(domain.map(|n| &n.at));
    findings.push(RULE.found(
        if domain.is_some() { Confidence::Certain } else { Confidence::Likely },
        format!("{host}: import of a peer's GPU memory failed (101, invalid device ordinal)"),
        "each process sees only its own GPU; a handle of another GPU of the same node does not import \
         into a container that can not see that GPU",
        "let the ranks of one node see all its GPUs (one pod with all GPUs, no per-task isolation); \
         NCCL_MNNVL_ENABLE=0, or NCCL_CUMEM_ENABLE=0 without such a domain, goes around it",
        incident.exhibits(places, 4),
    ));
}
