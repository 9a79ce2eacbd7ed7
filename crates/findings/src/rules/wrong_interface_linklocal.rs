//! `wrong-interface-linklocal`: a link-local address carries the data.
//!
//! ## What
//!
//! A rank chose an address of 169.254.0.0/16 or fe80::/10.
//!
//! ## Why
//!
//! Link-local addresses belong to management links (a server's BMC over USB) or to ports without a
//! configured address. They reach nothing beyond one cable, and their links run at a few Mbit/s.
//!
//! ## Example
//!
//! `h2 uses link-local 169.254.3.1 on usb0`
//!
//! ## Remedy
//!
//! Name the NIC, or exclude this one: `NCCL_SOCKET_IFNAME=^lo,docker,usb`.
//!
//! ## Source
//!
//! RFC 3927, RFC 4291; NCCL takes any interface with an address, in the kernel's order.

use std::net::IpAddr;

use ncclctl_facts::net::Interface;

use crate::evidence::{ChosenInterface, Evidence};
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::incident::is_virtual_interface;
use crate::paths::host_name;
use crate::rule::Rule;
use ncclctl_nccl::log::address::is_link_local;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    incident: Some(incident),
    ..Rule::new(
        "wrong-interface-linklocal",
        Severity::Error,
        "a link-local address carries the data",
    )
};

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    for (index, host) in evidence.hosts.iter().enumerate() {
        let mut chosen: Vec<(&ChosenInterface, IpAddr)> = Vec::new();
        let of_host = evidence.ranks.iter().filter(|r| r.host == index);
        for c in of_host.flat_map(|r| &r.interfaces) {
            let address = c.address.split('%').next().unwrap_or_default();
            let Ok(ip) = address.trim_matches(['[', ']']).parse() else { continue };
            if super::link_local(&ip) && !chosen.iter().any(|(o, _)| o.name == c.name) {
                chosen.push((c, ip));
            }
        }
        let Some((first, ip)) = chosen.first() else { continue };
        let name = host_name(evidence, index);
        let usable = |i: &&Interface| i.running && i.addresses.iter().any(|a| super::usable(&a.ip));
        let better = host.interfaces.iter().find(usable);
        let more = match chosen.len() {
            1 => String::new(),
            n => format!(" and {} more like it", n - 1),
        };
        let finding = RULE.found(
            Confidence::Certain,
            format!("{name} uses link-local {ip} on {}{more}", first.name),
            format!("chosen by {}; such an address reaches nothing beyond its link", first.rule),
            match better {
                Some(b) => format!("NCCL_SOCKET_IFNAME=={}", b.name),
                None => format!("give {} an address that the other hosts can reach", first.name),
            },
            chosen
                .iter()
                .map(|(c, ip)| Exhibit::nic(&c.name, &name, format!("{ip} by {}", c.rule)))
                .collect(),
        );
        findings.push(super::between_hosts(evidence, finding));
    }
}

fn incident(incident: &Incident, findings: &mut Vec<Finding>) {
    let chosen: Vec<_> = incident
        .log
        .processes
        .iter()
        .filter_map(|p| Some((p, p.bootstrap.value.first()?)))
        .filter(|(_, b)| b.ip.is_some_and(is_link_local))
        .collect();
    let Some((p, b)) = chosen.first() else { return };
    let veth = is_virtual_interface(&b.interface) && !b.interface.starts_with("ip6tnl");
    if incident.finished() || veth {
        return;
    }
    let ip = b.ip.map(|ip| ip.to_string()).unwrap_or_default();
    let twin = chosen.iter().find(|(o, c)| o.host != p.host && c.ip == b.ip);
    let beside =
        twin.map_or(String::new(), |(o, _)| format!("; {} announces the same address", o.host));
    let mut places = vec![&p.bootstrap.at];
    places.extend(twin.map(|(o, _)| &o.bootstrap.at));
    let failures = incident.socket_failures();
    places.extend(failures.iter().map(|(_, n)| &n.at));
    findings.push(RULE.found(
        Confidence::Certain,
        format!("{} chose {} with link-local {ip}{beside}", p.host, b.interface),
        "a link-local address is valid on one cable only: the other hosts can not reach it",
        "set NCCL_SOCKET_IFNAME to the interface that has the routable address (`ip -br addr`)",
        incident.exhibits(places, 4),
    ));
}
