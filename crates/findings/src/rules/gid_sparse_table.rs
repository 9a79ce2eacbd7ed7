//! `gid-sparse-table`: the GID table starts late, and NCCL before 2.26 stops at the first empty slot.
//!
//! ## What
//!
//! NCCL scans the GID table from slot 0 and reads the type of each; an empty slot, or one of
//! another network namespace, made it give up.
//!
//! ## Why
//!
//! In a pod only the slots of the pod's own interfaces can be read. NCCL 2.26.2 goes on after such
//! a slot.
//!
//! ## Example
//!
//! `rdma-0 (NCCL 2.23.4) gave up at an unreadable GID slot`
//!
//! ## Remedy
//!
//! Use NCCL 2.26.2 or later, or pin NCCL_IB_GID_INDEX per pod (see `show_gids`).
//!
//! ## Source
//!
//! NCCL src/transport/net_ib (ncclIbRoceGetVersionNum), changed in 2.26.2.

use ncclctl_nccl::Version;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "gid-sparse-table",
        Severity::Error,
        "the GID table starts late, and NCCL before 2.26 stops at the first empty slot",
    )
};

/// First version that tolerates an unreadable slot.
const TOLERANT: Version = Version::new(2, 26, 2);

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let stopped = incident.notices(&["in ncclIbRoceGetVersionNum"]);
    let Some(first) = stopped.first() else { return };
    let version = incident.log.version_of(first.process);
    if version.is_some_and(|v| v >= TOLERANT) && !first.text.contains("Invalid argument") {
        return;
    }
    let host = incident.process(first).map_or("a host", |p| p.host.as_str());
    let with = version.map_or(String::new(), |v| format!(" (NCCL {v})"));
    findings.push(RULE.found(
        if version.is_some() { Confidence::Certain } else { Confidence::Likely },
        format!("{host}{with} gave up at an unreadable GID slot"),
        "the pod's GID table starts late or has gaps; NCCL before 2.26.2 stops its search at the \
         first slot that it can not read",
        "use NCCL 2.26.2 or later, or pin NCCL_IB_GID_INDEX per pod to its RoCE v2 slot (`show_gids`)",
        incident.exhibits(stopped.iter().map(|n| &n.at), 4),
    ));
}
