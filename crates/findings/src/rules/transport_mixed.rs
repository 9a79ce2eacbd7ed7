//! `transport-mixed`: RDMA on one rank, sockets on another.
//!
//! ## What
//!
//! Some hosts chose RDMA, others sockets.
//!
//! ## Why
//!
//! NCCL chooses per rank and does not compare: a rank with IB waits for an IB peer, set-up hangs or
//! fails.
//!
//! ## Example
//!
//! `h1 uses IB, h2 uses Socket`
//!
//! ## Remedy
//!
//! Mend the host that fell back, or put the whole job on one transport: NCCL_NET=Socket.
//!
//! ## Source
//!
//! NCCL src/plugin/net.cc.

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("transport-mixed", Severity::Error, "RDMA on one rank, sockets on another")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let hosts = incident.by_host();
    let network = |want_socket: bool| {
        hosts
            .values()
            .flatten()
            .find(|p| !p.network.value.is_empty() && (p.network.value == "Socket") == want_socket)
    };
    let (Some(rdma), Some(socket)) = (network(false), network(true)) else { return };
    if rdma.host == socket.host {
        return;
    }
    let mut places = vec![&rdma.network.at, &socket.network.at];
    places.extend(socket.no_rdma.as_ref());
    findings.push(RULE.found(
        Confidence::Certain,
        format!("{} uses {}, {} uses sockets", rdma.host, rdma.network.value, socket.host),
        "each rank chooses for itself; ranks with different networks can not connect, and set-up \
         waits for ever",
        format!(
            "find out why {} has no RDMA (devices in the container, libraries, filters), or put \
             the whole job on sockets: NCCL_NET=Socket on every rank",
            socket.host
        ),
        incident.exhibits(places, 4),
    ));
}
