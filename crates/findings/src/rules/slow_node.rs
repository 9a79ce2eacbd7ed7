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
use crate::incident::Incident;
use crate::paths::{self, host_name};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    incident: Some(incident),
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

/// A run at or over this share of the best is good; under the other it is slow.
const GOOD: f64 = 0.88;
/// See [`GOOD`].
const SLOW: f64 = 0.75;

fn incident_rate(run: &crate::incident::TestRun) -> Option<f64> {
    let best = run
        .run
        .rows
        .iter()
        .flat_map(|r| [&r.out_of_place, &r.in_place])
        .flatten()
        .map(|c| c.busbw)
        .filter(|b| b.is_finite())
        .fold(0.0, f64::max);
    (best > 0.0).then_some(best)
}

fn incident(incident: &Incident, findings: &mut Vec<Finding>) {
    // runs of equal shape only: the same number of hosts and ranks
    let runs: Vec<(Vec<&str>, f64, &crate::incident::TestRun)> =
        incident.runs.iter().filter_map(|r| Some((r.hosts(), incident_rate(r)?, r))).collect();
    for width in [2, 1] {
        let same: Vec<_> = runs.iter().filter(|(hosts, ..)| hosts.len() == width).collect();
        if same.len() < 3 {
            continue;
        }
        let ranks = same[0].2.run.ranks.len();
        if same.iter().any(|(.., r)| r.run.ranks.len() != ranks) {
            continue;
        }
        let best = same.iter().map(|(_, rate, _)| *rate).fold(0.0, f64::max);
        let slow: Vec<_> = same.iter().filter(|(_, rate, _)| *rate < SLOW * best).collect();
        let good: Vec<_> = same.iter().filter(|(_, rate, _)| *rate >= GOOD * best).collect();
        if slow.is_empty() || good.is_empty() || slow.len() + good.len() != same.len() {
            continue;
        }
        let acquitted = |host: &str| good.iter().any(|(hosts, ..)| hosts.contains(&host));
        let mut blamed: Vec<&str> = Vec::new();
        for (hosts, ..) in &slow {
            let suspects: Vec<&str> = hosts.iter().copied().filter(|h| !acquitted(h)).collect();
            // exactly one of a slow pair has no good run with anybody else
            if let [one] = suspects[..]
                && !blamed.contains(&one)
            {
                blamed.push(one);
            }
        }
        // two slow runs with different healthy partners, or slow all alone
        let Some(host) = blamed.iter().find(|h| {
            slow.iter().filter(|(hosts, ..)| hosts.contains(*h)).count() >= 2 || width == 1
        }) else {
            continue;
        };
        let with: Vec<&&(Vec<&str>, f64, &crate::incident::TestRun)> =
            slow.iter().filter(|(hosts, ..)| hosts.contains(host)).copied().collect();
        let rate = with.iter().map(|(_, rate, _)| *rate).fold(0.0, f64::max);
        let mut exhibits = Vec::new();
        for (hosts, rate, run) in same.iter().copied() {
            exhibits.push(Exhibit::measured(
                hosts.join(" + "),
                format!("{rate:.1} GB/s busbw ({})", incident.source_of(run)),
            ));
        }
        findings.push(RULE.found(
            Confidence::Likely,
            format!("{host} is slow: {rate:.1} GB/s at best in every run with it, {best:.1} GB/s without it"),
            "all runs with this host are slow, and its partners are good with others: the host, its \
             NICs or its links set the pace",
            "take the host out and look at its NICs, PCIe link widths, ACS and GPU clocks; put it \
             back after a good pair run",
            exhibits,
        ));
        return;
    }
}
