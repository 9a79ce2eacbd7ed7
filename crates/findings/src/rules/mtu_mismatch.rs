//! `mtu-mismatch`: the interfaces in use have different MTUs.
//!
//! ## What
//!
//! The hosts' data interfaces of the same network differ in MTU.
//!
//! ## Why
//!
//! The smaller end drops what the larger one sends when path MTU discovery is blocked: small
//! messages work, large ones hang. RoCE takes the lower MTU of the two, which costs rate, and
//! before some releases failed outright.
//!
//! ## Example
//!
//! `MTU differs: eth0 of h1 9000, eth0 of h3 1500`
//!
//! ## Remedy
//!
//! `ip link set eth0 mtu 9000` on all of them, if every switch on the way carries it.
//!
//! ## Source
//!
//! RFC 8899; InfiniBand architecture, path MTU.

use ncclctl_facts::Facts;
use std::collections::BTreeMap;

use crate::evidence::Evidence;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::paths::host_name;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    trial: Some(look),
    incident: Some(incident),
    ..Rule::new("mtu-mismatch", Severity::Warning, "MTU differs between the hosts")
};

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    let used: Vec<_> = super::chosen_nics(evidence)
        .into_iter()
        .filter(|(_, i)| i.name != "lo" && i.mtu > 0)
        .collect();
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for (_, nic) in &used {
        *counts.entry(nic.mtu).or_default() += 1;
    }
    if counts.len() < 2 {
        return;
    }
    let hosts: std::collections::BTreeSet<usize> = used.iter().map(|(h, _)| *h).collect();
    if hosts.len() < 2 {
        return;
    }
    let Some((&usual, _)) = counts.iter().max_by_key(|(mtu, count)| (**count, **mtu)) else {
        return;
    };
    let (Some(normal), Some(odd)) =
        (used.iter().find(|(_, i)| i.mtu == usual), used.iter().find(|(_, i)| i.mtu != usual))
    else {
        return;
    };
    let largest = counts.keys().max().copied().unwrap_or(usual);
    let show = |(host, i): &(usize, &ncclctl_facts::net::Interface)| {
        format!("{} of {} {}", i.name, host_name(evidence, *host), i.mtu)
    };
    findings.push(
        RULE.found(
            Confidence::Certain,
            format!("MTU differs: {}, {}", show(normal), show(odd)),
            "large packets are dropped at the smaller end where path MTU discovery is blocked",
            format!(
                "ip link set dev {} mtu {largest} on all hosts, if every switch carries it",
                odd.1.name
            ),
            used.iter()
                .map(|(h, i)| {
                    Exhibit::nic(&i.name, host_name(evidence, *h), format!("mtu {}", i.mtu))
                })
                .collect(),
        ),
    );
}

fn incident(incident: &Incident, findings: &mut Vec<Finding>) {
    // the errors that packets of the larger size end in
    let broken = incident.places(&["Got completion", "async event", "async fatal event"], &[]);
    let mut seen: Vec<(&str, u32, u32, &ncclctl_nccl::log::At)> = Vec::new();
    for p in incident.log.processes.iter().filter(|p| !p.host.is_empty()) {
        for (qp, at) in p.queue_pairs.iter().filter(|(q, _)| !q.remote && (1..=5).contains(&q.mtu))
        {
            let other = seen
                .iter()
                .find(|(h, d, mtu, _)| *h != p.host && *d == qp.device && *mtu != qp.mtu);
            if let Some((host, _, mtu, first)) = other {
                findings.push(RULE.found(
                    Confidence::Certain,
                    format!("{host} uses an MTU of {} bytes, {} of {}", bytes(*mtu), p.host, bytes(qp.mtu)),
                    "the two ends of a rail have different RoCE MTUs; NCCL 2.20 to 2.22 does not \
                     take the smaller one, and packets of the larger are lost",
                    "set the same MTU on both ports and the switch (`ip link set DEV mtu 9000` for a \
                     RoCE MTU of 4096)",
                    incident.exhibits([*first, at].into_iter().chain(broken.iter().copied()), 4),
                ).at(if broken.is_empty() { Severity::Warning } else { Severity::Error }));
                return;
            }
            seen.push((&p.host, qp.device, qp.mtu, at));
        }
    }
}

fn bytes(code: u32) -> u32 {
    128 << code
}

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    // interfaces of the default route, or of the same name where that is not told
    let of = |node: &Facts| -> Option<(String, u32)> {
        let name = node.default_route.clone()?;
        let interface = node.interfaces.iter().find(|i| i.name == name && i.mtu > 0)?;
        Some((name, interface.mtu))
    };
    let all: Vec<(&Facts, String, u32)> =
        nodes.iter().filter_map(|n| of(n).map(|(name, mtu)| (n, name, mtu))).collect();
    let (Some(least), Some(most)) =
        (all.iter().min_by_key(|a| a.2), all.iter().max_by_key(|a| a.2))
    else {
        return;
    };
    if least.2 == most.2 {
        return;
    }
    findings.push(RULE.found(
        Confidence::Likely,
        format!("{} has MTU {}, {} has {}", least.0.name, least.2, most.0.name, most.2),
        "packets of the larger size are dropped on the way where path MTU discovery is blocked: small \
         messages pass and large ones hang",
        "set the same MTU on every node and on the switches between them",
        all.iter()
            .map(|(n, name, mtu)| Exhibit::nic(name, &n.name, format!("MTU {mtu}")))
            .collect(),
    ));
}
