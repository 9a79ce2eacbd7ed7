//! `peer-died`: a process went away; why is not in these logs.
//!
//! ## What
//!
//! Only secondary errors are here: connections closed by the other side, helper threads that gave
//! up.
//!
//! ## Why
//!
//! When one rank dies the others report its closed sockets. The cause stands in the log of the rank
//! that went first, often as its sudden end: killed for memory, preempted, crashed.
//!
//! ## Example
//!
//! `h1: the other side (10.0.0.2) closed its connection`
//!
//! ## Remedy
//!
//! Get the log of the named peer, `dmesg` of its host (OOM, Xid), and the scheduler's record.
//!
//! ## Source
//!
//! NCCL src/misc/socket.cc, src/proxy.cc.

use ncclctl_nccl::log::{Notice, address};

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(crate) const RULE: Rule =
    Rule::new("peer-died", Severity::Warning, "a process went away; why is not in these logs");

/// The finding, from the earliest secondary warning.
pub(crate) fn explain(incident: &Incident, notices: &[&Notice], severity: Severity) -> Finding {
    let first = notices.first().copied();
    let host = first.and_then(|n| incident.process(n)).map_or("a host", |p| p.host.as_str());
    let peer = first
        .and_then(|n| n.text.split(" from ").nth(1).or_else(|| n.text.split(" peer ").nth(1)))
        .and_then(address::ip)
        .map_or(String::new(), |ip| format!(" ({ip})"));
    RULE.found(
        Confidence::Likely,
        format!("{host}: the other side{peer} closed its connection"),
        "these are consequences: a process went away first, and why is not in these logs",
        "get the log of that peer's ranks (the one that simply ends), `dmesg` of its host (OOM, Xid), \
         and the scheduler's record of the job",
        incident.exhibits(notices.iter().map(|n| &n.at), 3),
    )
    .at(severity)
}
