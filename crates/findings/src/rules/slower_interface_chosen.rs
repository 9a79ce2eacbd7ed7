//! `slower-interface-chosen`: the data goes over a slow interface while a faster one is there.
//!
//! ## What
//!
//! The chosen interface has less than half of the rate of another one of the same host: by raw
//! streams over both (they reach the same hosts), or by the line rates of physical NICs.
//!
//! ## Why
//!
//! `NCCL_SOCKET_IFNAME` names the management network, or names are prefixes and the first match is
//! the slow port. NCCL never compares speeds: bootstrap takes the first match, the socket transport
//! all matches.
//!
//! ## Example
//!
//! `mgmt is used at 94 Mbit/s, while eth0 reaches 942 Mbit/s between the same hosts`
//!
//! ## Remedy
//!
//! `NCCL_SOCKET_IFNAME==eth0`
//!
//! ## Source
//!
//! NCCL 2.30.7 `src/misc/socket.cc`.

use std::collections::BTreeMap;

use ncclctl_facts::net::Interface;

use crate::evidence::Evidence;
use crate::figures::{line_rate, link_rate};
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::paths::{self, host_name, host_of};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    ..Rule::new(
        "slower-interface-chosen",
        Severity::Error,
        "a slow interface is used while a faster one is there",
    )
};

/// The other one must be this much faster: no two ports of one kind differ by it.
const FASTER: f64 = 2.0;

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    if !measured(evidence, findings) {
        believed(evidence, findings);
    }
}

/// The interface that most ranks chose first.
fn in_use(evidence: &Evidence) -> Option<(&str, &str)> {
    let mut counts: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for chosen in evidence.ranks.iter().filter_map(|r| r.interfaces.first()) {
        let entry = counts.entry(&chosen.name).or_insert((0, &chosen.rule));
        entry.0 += 1;
    }
    counts.into_iter().max_by_key(|(_, (count, _))| *count).map(|(name, (_, rule))| (name, rule))
}

/// By raw streams over both. Says whether there were any.
fn measured(evidence: &Evidence, findings: &mut Vec<Finding>) -> bool {
    let mut slowest: BTreeMap<&str, f64> = BTreeMap::new();
    for a in &evidence.alternatives {
        let rate = slowest.entry(&a.interface).or_insert(f64::INFINITY);
        *rate = rate.min(a.rate_bps);
    }
    let Some((name, fast)) = slowest.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return false;
    };
    let Some((used, rule)) = in_use(evidence) else { return true };
    let own = paths::ring(evidence)
        .into_iter()
        .filter(|((a, b), _)| host_of(evidence, *a) != host_of(evidence, *b))
        .map(|(_, (mean, _))| mean)
        .fold(f64::INFINITY, f64::min);
    if own.is_finite() && fast > FASTER * own {
        findings.push(RULE.found(
            Confidence::Certain,
            format!(
                "{used} is used at {}, while {name} reaches {} between the same hosts",
                link_rate(own),
                link_rate(fast)
            ),
            format!("{used} was chosen by {rule}; NCCL does not compare speeds"),
            format!("NCCL_SOCKET_IFNAME=={name}"),
            vec![
                Exhibit::measured(format!("slowest path over {used}"), link_rate(own)),
                Exhibit::measured(format!("slowest path over {name}"), link_rate(fast)),
            ],
        ));
    }
    true
}

/// By what physical NICs say of themselves.
fn believed(evidence: &Evidence, findings: &mut Vec<Finding>) {
    if evidence.hosts.len() < 2 {
        return;
    }
    for (index, host) in evidence.hosts.iter().enumerate() {
        let chosen = evidence
            .ranks
            .iter()
            .filter(|r| r.host == index)
            .flat_map(|r| &r.interfaces)
            .filter_map(|c| {
                let i = host.interfaces.iter().find(|i| i.name == c.name)?;
                Some((i, c, i.line_rate_bits()?))
            })
            .max_by_key(|(_, _, rate)| *rate);
        let Some((own, choice, rate)) = chosen else { continue };
        let usable = |i: &&Interface| {
            i.running && i.name != own.name && i.addresses.iter().any(|a| super::usable(&a.ip))
        };
        let best = host
            .interfaces
            .iter()
            .filter(usable)
            .filter_map(|i| Some((i, i.line_rate_bits()?)))
            .max_by_key(|(_, rate)| *rate);
        if let Some((better, faster)) = best
            && faster as f64 > FASTER * rate as f64
        {
            let name = host_name(evidence, index);
            findings.push(RULE.found(
                Confidence::Likely,
                format!(
                    "{name} uses {} ({}), while {} ({}) is there",
                    own.name,
                    line_rate(rate),
                    better.name,
                    line_rate(faster)
                ),
                format!("{} was chosen by {}; NCCL does not compare speeds", own.name, choice.rule),
                format!("NCCL_SOCKET_IFNAME=={}, if it reaches the other hosts", better.name),
                vec![
                    Exhibit::nic(&own.name, &name, line_rate(rate)),
                    Exhibit::nic(&better.name, &name, line_rate(faster)),
                ],
            ));
        }
    }
}
