//! `nic-pair-other-subnet`: NICs of two subnets without a path between them are paired.
//!
//! ## What
//!
//! A RoCE connection was tried between addresses of different subnets, and the kernel has no route,
//! or nothing is acknowledged.
//!
//! ## Why
//!
//! NCCL pairs NICs by their order. Where each rail is its own subnet without a router, the same
//! order is needed on every host, and no ring may cross rails.
//!
//! ## Example
//!
//! `h1 mlx5_0: 10.0.1.1 has no route to 10.0.2.2`
//!
//! ## Remedy
//!
//! Give the rails routes to each other, keep the NIC order equal (NCCL_IB_HCA), or
//! NCCL_CROSS_NIC=0.
//!
//! ## Source
//!
//! ibv_modify_qp(3): ENETUNREACH, EHOSTUNREACH, ETIMEDOUT of address resolution; NCCL
//! src/transport/net_ib.

use std::net::IpAddr;

use ncclctl_nccl::log::address;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::incident::subnet24;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "nic-pair-other-subnet",
        Severity::Error,
        "NICs of two subnets without a path between them are paired",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    for notice in incident.notices(&["ibv_modify_qp failed"]) {
        let route =
            ["Network is unreachable", "No route to host"].iter().any(|e| notice.text.contains(e));
        let slow = notice.text.contains("Connection timed out");
        let local = gid(&notice.text, "local GID ");
        let remote = gid(&notice.text, "remote GID ");
        let (known, differ) = match (local.and_then(subnet24), remote.and_then(subnet24)) {
            (Some(l), Some(r)) => (true, l != r),
            _ => (false, false),
        };
        if !(route || slow && differ) || (known && !differ) {
            continue;
        }
        if local.is_some_and(address::is_link_local) {
            continue;
        }
        let host = incident.process(notice).map_or("a host", |p| p.host.as_str());
        let pair = match (local, remote) {
            (Some(l), Some(r)) => format!("{l} does not reach {r}"),
            _ => "its RoCE address has no route to the peer's".to_owned(),
        };
        findings.push(RULE.found(
            if known { Confidence::Certain } else { Confidence::Likely },
            format!("{host}: {pair}"),
            "NICs of two subnets were paired, and there is no path between the subnets",
            "route between the rails, or keep each rail to itself: the same NIC order on every host \
             (NCCL_IB_HCA) and NCCL_CROSS_NIC=0",
            incident.exhibits([&notice.at], 3),
        ));
        return;
    }
}

fn gid(text: &str, key: &str) -> Option<IpAddr> {
    let at = text.find(key)? + key.len();
    // `local GID index 3, local GID ::ffff:…`
    match address::ip(&text[at..]) {
        Some(ip) => Some(ip),
        None => gid(&text[at..], key),
    }
}
