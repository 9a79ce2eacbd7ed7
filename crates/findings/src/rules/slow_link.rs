//! `slow-link`: one path between two hosts is slow, the hosts themselves are not.
//!
//! ## What
//!
//! One pair of hosts reaches less than 70% of what the other pairs reach (with only two hosts: one
//! direction less than half of the other), while each of the two is fast with others.
//!
//! ## Why
//!
//! The hosts' own NICs are fine, so the cause lies between them: a switch uplink, a trunk member, a
//! routing detour, a policy for that pair. A collective runs at the pace of its slowest edge.
//!
//! ## Example
//!
//! `the path between h2 and h3 is slow: 143 Mbit/s, 942 Mbit/s is usual here`
//!
//! ## Remedy
//!
//! Look at what only these two share: switch ports and uplinks, bonding hash, routes, firewall.
//! Until then place them so that no ring edge joins them.
//!
//! ## Source
//!
//! Pairwise tests as cluster validators use them.

use crate::evidence::Evidence;
use crate::figures::link_rate;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::paths::{self, host_name};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    ..Rule::new("slow-link", Severity::Error, "one path between two hosts is slow")
};

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    let Some(blame) = paths::blame(evidence) else { return };
    for slow in &blame.links {
        let (from, to) = (host_name(evidence, slow.from), host_name(evidence, slow.to));
        let usual = link_rate(blame.reference_bps);
        let rate = link_rate(slow.rate_bps);
        let message = if slow.both {
            format!("the path between {from} and {to} is slow: {rate}, {usual} is usual here")
        } else {
            format!(
                "the path {from} -> {to} is slow in that direction: {rate}, {usual} is usual here"
            )
        };
        let mut exhibits = vec![Exhibit::measured(format!("path {from} -> {to}"), rate)];
        if let Some(back) = slow.back_bps {
            exhibits.push(Exhibit::measured(format!("path {to} -> {from}"), link_rate(back)));
        }
        exhibits.push(Exhibit::measured("usual path here", usual));
        let two = evidence.hosts.len() == 2;
        findings.push(RULE.found(
            if blame.probed { Confidence::Certain } else { Confidence::Likely },
            message,
            if two {
                "one direction is far slower than the other; with two hosts nothing tells whether \
                 the sender, the receiver or the way between them is at fault"
                    .to_owned()
            } else {
                format!("{from} and {to} are fast with others, so it is what lies between the two")
            },
            if two {
                format!("add a third host to the trial, it tells {from} from {to}")
            } else {
                format!(
                    "look at what only {from} and {to} share: switch uplink, bond hash, route, \
                     firewall; until then keep them from being neighbours in the ring"
                )
            },
            exhibits,
        ));
    }
}
