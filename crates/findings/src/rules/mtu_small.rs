//! `mtu-small`: RoCE runs with a small MTU.
//!
//! ## What
//!
//! All connections use a path MTU of 1024 bytes or less.
//!
//! ## Why
//!
//! The interface's own MTU is 1500. It costs some percent of the rate and more processor time in
//! the NIC.
//!
//! ## Example
//!
//! `RoCE MTU is 1024 bytes`
//!
//! ## Remedy
//!
//! Raise the interface and switch MTU to 9000 (RoCE MTU 4096).
//!
//! ## Source
//!
//! InfiniBand path MTU codes.

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("mtu-small", Severity::Info, "RoCE runs with a small MTU")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let mut all = incident
        .log
        .processes
        .iter()
        .flat_map(|p| p.queue_pairs.iter())
        .filter(|(q, _)| (1..=5).contains(&q.mtu) && q.gid_index.is_some());
    let Some((first, at)) = all.next() else { return };
    if first.mtu > 3 || all.any(|(q, _)| q.mtu > 3) {
        return;
    }
    findings.push(RULE.found(
        Confidence::Certain,
        format!("RoCE MTU is {} bytes", 128 << first.mtu),
        "the interface's MTU is 1500, so RoCE takes 1024: some percent of the rate are lost",
        "raise the interface and switch MTU to 9000 (RoCE MTU 4096)",
        incident.exhibits([at], 1),
    ));
}
