//! `slow-node`: one host is slow with everybody.
//!
//! ## What
//!
//! Pair probes (or, without them, the edges of the ring) show that at least two paths of one host
//! with healthy partners reach less than 70% of what the other paths reach.
//!
//! ## Why
//!
//! A ring runs at the pace of its slowest edge, so one bad cable, port, negotiated speed or busy
//! host slows every rank, and the collective itself does not say which. A second slow path with
//! another partner excludes the partner.
//!
//! ## Example
//!
//! `h3 is slow: 191 Mbit/s with h1, h2 and h4, 942 Mbit/s is usual here`
//!
//! ## Remedy
//!
//! Take the host out of the job, then look at its NIC: negotiated speed and duplex (`ethtool`),
//! error counters, cable and switch port, traffic limits (`tc qdisc`), other jobs on it.
//!
//! ## Source
//!
//! Pairwise tests as cluster validators use them; NCCL itself has no such check before 2.32.

use crate::evidence::Evidence;
use crate::figures::link_rate;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::paths::{self, host_name};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    ..Rule::new("slow-node", Severity::Error, "one host is slow with all of its partners")
};

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    let Some(blame) = paths::blame(evidence) else { return };
    for slow in &blame.hosts {
        let name = host_name(evidence, slow.host);
        let direction = match (slow.sends, slow.receives) {
            (true, false) => "sends slowly",
            (false, true) => "receives slowly",
            _ => "is slow",
        };
        let exhibits = slow
            .edges
            .iter()
            .map(|&(from, to, rate)| {
                let path =
                    format!("path {} -> {}", host_name(evidence, from), host_name(evidence, to));
                Exhibit::measured(path, link_rate(rate))
            })
            .chain([Exhibit::measured("usual path here", link_rate(blame.reference_bps))])
            .collect();
        findings.push(RULE.found(
            if blame.probed { Confidence::Certain } else { Confidence::Likely },
            format!(
                "{name} {direction}: {} with healthy partners, {} is usual here",
                link_rate(slow.rate_bps),
                link_rate(blame.reference_bps)
            ),
            format!(
                "{} paths of {name} with different partners are slow, so it is {name} and not them; \
                 every ring through it runs at its pace",
                slow.edges.len()
            ),
            format!(
                "take {name} out of the job; on it look at ethtool (speed, duplex, errors), cable \
                 and switch port, tc qdisc, and what else runs there"
            ),
            exhibits,
        ));
    }
}
