//! `rail-isolated-cross-nic`: NICs of different rails are connected, and the rails do not reach each other.
//!
//! ## What
//!
//! Connections between unlike NICs were made, and such a connection fails.
//!
//! ## Why
//!
//! On a rail-only network NIC 0 of one host reaches NIC 0 of another and no other. NCCL asks
//! nobody: rings may enter on one NIC and leave on another unless NCCL_CROSS_NIC=0, and with unlike
//! GPU sets even then.
//!
//! ## Example
//!
//! `channel 1: rank 3 sends on device 0, rank 4 receives on device 1`
//!
//! ## Remedy
//!
//! NCCL_CROSS_NIC=0, the same GPUs and NICs on every host, PXN on; or connect the rails at the top.
//!
//! ## Source
//!
//! NCCL src/graph/search.cc; NVIDIA/nccl issues on rail isolation.

use std::collections::HashMap;

use ncclctl_nccl::log::Transport;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "rail-isolated-cross-nic",
        Severity::Error,
        "NICs of different rails are connected, and the rails do not reach each other",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let failed = incident.completions().into_iter().find(|(c, _)| c.status == 12).map(|(_, n)| n);
    let failed = failed.or_else(|| {
        incident
            .notices(&["ibv_modify_qp failed"])
            .into_iter()
            .find(|n| ["timed out", "unreachable", "No route"].iter().any(|e| n.text.contains(e)))
    });
    let stuck = incident
        .log
        .communicators
        .iter()
        .any(|c| c.members.values().any(|m| m.started && !m.complete));
    if failed.is_none() && !stuck {
        return;
    }
    let mut sides: HashMap<(u32, u32, u32), [Option<u32>; 2]> = HashMap::new();
    let mut place = None;
    for p in &incident.log.processes {
        for e in &p.edges {
            if let (Transport::Net { name, device, .. }, Some(send)) = (&e.transport, e.send)
                && name.starts_with("IB")
            {
                let side = sides.entry((e.channel, e.from, e.to)).or_default();
                side[usize::from(send)] = Some(*device);
                place = place.or(p.edge_at.get("NET"));
            }
        }
    }
    let mut crossed: Vec<_> = sides
        .iter()
        .filter_map(|(key, side)| match side {
            [Some(r), Some(s)] if r != s => Some((*key, *s, *r)),
            _ => None,
        })
        .collect();
    crossed.sort_unstable();
    let Some(((channel, from, to), s, r)) = crossed.first().copied() else { return };
    let asked = incident.setting("NCCL_CROSS_NIC");
    let mut places: Vec<_> = failed.map(|n| &n.at).into_iter().collect();
    places.extend(place);
    places.extend(asked.map(|(_, at)| at));
    findings.push(RULE.found(
        if asked.is_some_and(|(v, _)| v == "1") || failed.is_some() { Confidence::Likely } else { Confidence::Possible },
        format!(
            "channel {channel}: rank {from} sends on device {s}, rank {to} receives on device {r}"
        ),
        "unlike NICs are connected; where rails do not reach each other such a connection never comes up",
        "NCCL_CROSS_NIC=0 with the same GPUs and NIC order on every host (PXN on), or connect the \
         rails at the top; `ib_write_bw` between the two NICs settles it",
        incident.exhibits(places, 4),
    ));
}
