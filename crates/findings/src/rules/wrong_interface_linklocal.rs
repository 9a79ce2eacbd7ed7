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
//! `rank 1 on h2 uses link-local 169.254.3.1 on usb0`
//!
//! ## Remedy
//!
//! Name the NIC, or exclude this one: `NCCL_SOCKET_IFNAME=^lo,docker,usb`.
//!
//! ## Source
//!
//! RFC 3927, RFC 4291; NCCL takes any interface with an address, in the kernel's order.

use std::collections::BTreeSet;

use crate::evidence::Evidence;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::paths::host_name;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    ..Rule::new(
        "wrong-interface-linklocal",
        Severity::Error,
        "a link-local address carries the data",
    )
};

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    let mut done: BTreeSet<(usize, &str)> = BTreeSet::new();
    for (number, rank) in evidence.ranks.iter().enumerate() {
        for chosen in &rank.interfaces {
            let address = chosen.address.split('%').next().unwrap_or_default();
            let Ok(ip) = address.trim_matches(['[', ']']).parse() else { continue };
            if !super::link_local(&ip) || !done.insert((rank.host, &chosen.name)) {
                continue;
            }
            let name = host_name(evidence, rank.host);
            let better = evidence.hosts.get(rank.host).and_then(|h| {
                h.interfaces.iter().find(|i| {
                    i.running
                        && i.name != chosen.name
                        && i.addresses.iter().any(|a| super::usable(&a.ip))
                })
            });
            findings.push(RULE.found(
                Confidence::Certain,
                format!("rank {number} on {name} uses link-local {ip} on {}", chosen.name),
                format!(
                    "chosen by {}; such an address reaches nothing beyond its link",
                    chosen.rule
                ),
                match better {
                    Some(b) => format!("NCCL_SOCKET_IFNAME=={}", b.name),
                    None => format!(
                        "give {} an address, or NCCL_SOCKET_IFNAME=^lo,docker,{}",
                        chosen.name, chosen.name
                    ),
                },
                vec![Exhibit::nic(&chosen.name, &name, format!("{ip} by {}", chosen.rule))],
            ));
        }
    }
}
