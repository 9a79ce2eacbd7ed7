//! `wrong-interface-nonroutable`: a port without a route to the peers was chosen.
//!
//! ## What
//!
//! NCCL meets the other ranks on an interface whose network does not reach them: an IPoIB port, an
//! idle port, a second network.
//!
//! ## Why
//!
//! NCCL takes `ib*` before anything else, and else the first interface that its list leaves; it
//! never asks the routing table.
//!
//! ## Example
//!
//! `dgx-pod-2 chose ibp12s0 (192.168.14.102), and 192.168.15.101 does not answer from there`
//!
//! ## Remedy
//!
//! Point NCCL_SOCKET_IFNAME at the interface with the route to the peers; RDMA keeps using the
//! HCAs.
//!
//! ## Source
//!
//! NCCL src/misc/socket.cc ncclFindInterfaces.

use ncclctl_facts::Facts;
use ncclctl_nccl::log::address::is_link_local;

use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::incident::{is_virtual_interface, subnet24};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    incident: Some(look),
    ..Rule::new(
        "wrong-interface-nonroutable",
        Severity::Error,
        "a port without a route to the peers was chosen",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    for (failure, notice) in incident.socket_failures() {
        if !failure.connecting {
            continue;
        }
        let (Some(p), Some(peer)) = (incident.process(notice), failure.peer) else { continue };
        let Some(own) = p.bootstrap.value.first() else { continue };
        let Some(ip) = own.ip else { continue };
        if is_link_local(ip) || ip.is_loopback() || is_virtual_interface(&own.interface) {
            continue;
        }
        let same = subnet24(ip).is_some() && subnet24(ip) == subnet24(peer);
        // IPoIB is taken first without being asked for; other names only where hosts disagree
        let ipoib = own.interface.starts_with("ib");
        let differs = incident.log.processes.iter().any(|o| {
            o.host != p.host
                && o.bootstrap.value.first().is_some_and(|b| {
                    b.interface != own.interface && b.ip.and_then(subnet24) != subnet24(ip)
                })
        });
        if same || !(ipoib || differs) {
            continue;
        }
        findings.push(RULE.found(
            Confidence::Likely,
            format!("{} chose {} ({ip}), and {peer} does not answer from there", p.host, own.interface),
            if ipoib {
                "NCCL takes interfaces named ib* before Ethernet; this IPoIB port has no path to the \
                 other host"
            } else {
                "the hosts chose interfaces of different networks, and one does not reach the other"
            },
            "point NCCL_SOCKET_IFNAME at the interface that routes to the peers (`ip route get \
             PEER`); RDMA keeps using the HCAs",
            incident.exhibits([&p.bootstrap.at, &notice.at], 3),
        ));
        return;
    }
}

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    for node in nodes {
        // only what the user's own list lets through: NCCL's own order is spoken of by other rules
        let Some(value) = node.environment.get("NCCL_SOCKET_IFNAME") else { continue };
        let Some(route) = &node.default_route else { continue };
        let Some(chosen) = crate::nodes::chosen(node).and_then(Result::ok) else { continue };
        if !chosen.iter().any(|c| c.name == *route) && !value.starts_with('^') {
            continue;
        }
        let isolated: Vec<_> = chosen
            .iter()
            .filter(|c| c.name != *route && crate::nodes::isolated(c.address))
            .collect();
        if isolated.is_empty() {
            continue;
        }
        let names: Vec<&str> = isolated.iter().map(|c| c.name.as_str()).collect();
        findings.push(RULE.found(
            Confidence::Certain,
            format!("{}: NCCL_SOCKET_IFNAME={value} leaves {} eligible", node.name, names.join(", ")),
            "these ports have link-local addresses only: nobody on another host is reached through them, \
             and NCCL spreads its connections over every interface that it may use",
            format!("name the one port with the route to the peers: NCCL_SOCKET_IFNAME=={route}"),
            isolated
                .iter()
                .map(|c| Exhibit::nic(&c.name, &node.name, c.address.to_string()))
                .collect(),
        ));
    }
}
