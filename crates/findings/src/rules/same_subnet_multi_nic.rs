//! `same-subnet-multi-nic`: several ports in one subnet.
//!
//! ## What
//!
//! One host uses several interfaces or RoCE ports whose addresses lie in one subnet.
//!
//! ## Why
//!
//! Linux answers for all of them on any (ARP flux) and routes all traffic out of the first: one
//! port carries everything, or packets are dropped by the reverse-path filter.
//!
//! ## Example
//!
//! `h1: ens1f0 and ens1f1 are both in 10.0.0.0/24`
//!
//! ## Remedy
//!
//! One subnet a port, or per-port routing tables with arp_ignore=1 and arp_announce=2.
//!
//! ## Source
//!
//! Linux Documentation/networking/ip-sysctl (arp_filter, rp_filter).

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::incident::subnet24;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("same-subnet-multi-nic", Severity::Warning, "several ports in one subnet")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    for p in &incident.log.processes {
        // only the socket transport uses the addresses that are listed here
        if p.network.value != "Socket" || p.sockets.value.len() < 2 {
            continue;
        }
        for (at, a) in p.sockets.value.iter().enumerate() {
            let Some(net) = a.ip.filter(|ip| !ip.is_loopback()).and_then(subnet24) else {
                continue;
            };
            let twin =
                p.sockets.value[at + 1..].iter().find(|b| b.ip.and_then(subnet24) == Some(net));
            let Some(b) = twin else { continue };
            // a VLAN or alias of the same port is another matter
            if b.interface.starts_with(&a.interface) {
                continue;
            }
            let [x, y, z] = net;
            findings.push(RULE.found(
                Confidence::Likely,
                format!("{}: {} and {} are both in {x}.{y}.{z}.0/24", p.host, a.interface, b.interface),
                "Linux answers for both addresses on either port and sends out of one: one port \
                 carries everything, or the reverse-path filter drops packets",
                "one subnet a port, or per-port routing tables with arp_ignore=1 and arp_announce=2; \
                 else name one port in NCCL_SOCKET_IFNAME",
                incident.exhibits([&p.sockets.at], 2),
            ));
            return;
        }
    }
}
