//! `socket-ifname-mismatch`: the hosts chose interfaces of different networks.
//!
//! ## What
//!
//! The first interface of the ranks has another name on some hosts. Where the addresses also lie in
//! different subnets this is a warning, else it is for information.
//!
//! ## Why
//!
//! With several matches each host takes its first one, so one may talk over the fabric while its
//! peer talks over management, through a router or not at all. One exact name for all hosts fails on
//! those where the port is called otherwise.
//!
//! ## Example
//!
//! `h1 uses eth0 (10.0.0.0/24), h2 uses eth1 (192.168.7.0/24)`
//!
//! ## Remedy
//!
//! A prefix that fits the right port on every host, or a setting per host.
//!
//! ## Source
//!
//! NCCL 2.30.7 `src/misc/socket.cc`, `src/bootstrap.cc`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::evidence::Evidence;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::paths::host_name;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    incident: Some(incident),
    ..Rule::new("socket-ifname-mismatch", Severity::Warning, "hosts chose different interfaces")
};

struct Chosen<'a> {
    host: usize,
    name: &'a str,
    address: &'a str,
    rule: &'a str,
    subnet: Option<(IpAddr, u8)>,
}

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    let mut by_host: BTreeMap<usize, Chosen<'_>> = BTreeMap::new();
    for rank in &evidence.ranks {
        let Some(first) = rank.interfaces.first() else { continue };
        let subnet = first.address.parse::<IpAddr>().ok().and_then(|ip| {
            let host = evidence.hosts.get(rank.host)?;
            let prefix =
                host.interfaces.iter().flat_map(|i| &i.addresses).find(|a| a.ip == ip)?.prefix;
            Some((super::network(ip, prefix), prefix))
        });
        by_host.entry(rank.host).or_insert(Chosen {
            host: rank.host,
            name: &first.name,
            address: &first.address,
            rule: &first.rule,
            subnet,
        });
    }
    let mut all = by_host.values();
    let Some(first) = all.next() else { return };
    let Some(other) = by_host.values().find(|c| c.name != first.name) else { return };
    let apart =
        by_host.values().filter_map(|c| c.subnet).any(|s| first.subnet.is_some_and(|f| f != s));
    let show = |c: &Chosen<'_>| {
        let net = c.subnet.map_or_else(|| c.address.to_owned(), |(ip, p)| format!("{ip}/{p}"));
        format!("{} uses {} ({net})", host_name(evidence, c.host), c.name)
    };
    let finding = RULE.found(
        Confidence::Certain,
        format!("{}, {}", show(first), show(other)),
        if apart {
            "each host takes its first match, and these are different networks: traffic between \
             them is routed, or does not arrive"
        } else {
            "the same network, under another name"
        },
        "a prefix or list that fits the right port on every host, or a setting per host",
        by_host
            .values()
            .map(|c| {
                Exhibit::nic(
                    c.name,
                    host_name(evidence, c.host),
                    format!("{} by {}", c.address, c.rule),
                )
            })
            .collect(),
    );
    findings.push(if apart { finding } else { finding.at(Severity::Info) });
}

fn incident(incident: &Incident, findings: &mut Vec<Finding>) {
    let missing = incident.notices(&["no socket interface found", "no interface found"]);
    for notice in missing {
        let Some(bad) = incident.process(notice) else { continue };
        let Some(setting) = bad.setting("NCCL_SOCKET_IFNAME") else { continue };
        let good = incident.log.processes.iter().find(|p| {
            p.host != bad.host
                && p.bootstrap.is_seen()
                && p.setting("NCCL_SOCKET_IFNAME").is_some_and(|s| s.value == setting.value)
        });
        if let Some(good) = good {
            findings.push(RULE.found(
                Confidence::Certain,
                format!(
                    "NCCL_SOCKET_IFNAME={} fits on {}, but on {} nothing has that name",
                    setting.value, good.host, bad.host
                ),
                "interface names differ between these hosts, and one value is used on all of them",
                "use a prefix or exclusion that fits everywhere (NCCL_SOCKET_IFNAME=^docker,lo), or \
                 set it per host",
                incident.exhibits([&notice.at, &setting.at, &good.bootstrap.at], 3),
            ));
            return;
        }
    }
}
