//! `bootstrap-unreachable`: a peer's address can not be reached.
//!
//! ## What
//!
//! A worker or rank was lost because a connection was refused, had no route or got no answer.
//!
//! ## Why
//!
//! A firewall or network policy between the hosts (all of NCCL's ports are ephemeral), an address of
//! a network that is not routed, or a process that is not there.
//!
//! ## Example
//!
//! `rank 2 on h3: 10.0.1.7:41233: no route to host`
//!
//! ## Remedy
//!
//! Let the ranks' ports through (`net.ipv4.ip_local_port_range` on every host), and choose an
//! interface that all hosts share.
//!
//! ## Source
//!
//! NCCL 2.30.7 `src/misc/socket.cc`: refused, timed out and unreachable are tried 34 times.

use super::dns_resolution_failed::is_dns;
use crate::evidence::{Evidence, Failure};
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    ..Rule::new("bootstrap-unreachable", Severity::Error, "a peer's address can not be reached")
};

/// What the kernel says, in lower case, with what it means.
const SIGNS: &[(&str, &str)] = &[
    ("no route to host", "no route, or a firewall that rejects"),
    ("network is unreachable", "this host has no route into that network"),
    ("unreachable", "the address can not be reached from there"),
    ("connection refused", "the host is there, but nothing listens on the port"),
    ("refused", "the host is there, but nothing listens on the port"),
    ("timed out", "packets are dropped on the way: a firewall or network policy"),
];

fn meaning(failure: &Failure) -> Option<&'static str> {
    let seen = failure.seen.to_lowercase();
    let connecting =
        ["rendezvous", "connect", "join", "start"].contains(&failure.phase.to_lowercase().as_str());
    SIGNS
        .iter()
        .find(|(sign, _)| seen.contains(sign))
        .map(|(_, meaning)| *meaning)
        .filter(|_| connecting || seen.contains("route") || seen.contains("unreachable"))
}

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    for failure in evidence.failures.iter().filter(|f| !is_dns(&f.seen)) {
        let Some(meaning) = meaning(failure) else { continue };
        let who = match failure.rank {
            Some(rank) => format!("rank {rank} on {}", failure.host),
            None => failure.host.clone(),
        };
        findings.push(RULE.found(
            Confidence::Likely,
            format!("{who}: {}", failure.seen),
            meaning,
            "let TCP through on the port range of net.ipv4.ip_local_port_range between all hosts, \
             and choose an interface that they share (NCCL_SOCKET_IFNAME)",
            vec![Exhibit::measured(format!("{who} in phase {}", failure.phase), &failure.seen)],
        ));
    }
}
