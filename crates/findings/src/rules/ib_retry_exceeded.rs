//! `ib-retry-exceeded`: an RDMA transfer was not acknowledged (status 12).
//!
//! ## What
//!
//! A work completion came back with `transport retry counter exceeded`.
//!
//! ## Why
//!
//! The other side did not acknowledge within about 4.1 µs x 2^NCCL_IB_TIMEOUT x 7 tries: the peer
//! or its port went away, the path loses packets, or the GID does not route.
//!
//! ## Example
//!
//! `ddp-pod-0 mlx5_4 got no acknowledgement from 10.219.77.36 (status 12)`
//!
//! ## Remedy
//!
//! Look at the other ranks' first warning (the peer may have died); check both ports' counters and
//! the switch; raise NCCL_IB_TIMEOUT only after that.
//!
//! ## Source
//!
//! ibv_wc_status 12; NCCL src/transport/net_ib.

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "ib-retry-exceeded",
        Severity::Error,
        "an RDMA transfer was not acknowledged (status 12)",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let failed: Vec<_> =
        incident.completions().into_iter().filter(|(c, _)| c.status == 12).collect();
    let Some((completion, notice)) = failed.first() else { return };
    let host = incident.process(notice).map_or("a host", |p| p.host.as_str());
    let hca = completion.hca.as_deref().map_or(String::new(), |h| format!(" {h}"));
    let peer = completion.peer.map_or("its peer".to_owned(), |p| p.to_string());
    let story = match (completion.local_gid, completion.remote_gid) {
        (Some(l), Some(r)) => format!(", GID {l} to {r}"),
        _ => String::new(),
    };
    let devices: std::collections::BTreeSet<&str> =
        failed.iter().filter_map(|(c, _)| c.hca.as_deref()).collect();
    let several = if devices.len() > 1 {
        format!(
            "; {} ports are hit, so the path or the peer is at fault rather than one cable",
            devices.len()
        )
    } else {
        String::new()
    };
    findings.push(RULE.found(
        Confidence::Certain,
        format!("{host}{hca} got no acknowledgement from {peer} (status 12{story})"),
        format!(
            "the peer or its port went away, or the path between the two ports loses packets{several}"
        ),
        "look for the peer's own first warning or sudden end; check both ports' error counters, PFC \
         and routing between the two GIDs; raise NCCL_IB_TIMEOUT only after that",
        incident.exhibits(failed.iter().map(|(_, n)| &n.at), 4),
    ));
}
