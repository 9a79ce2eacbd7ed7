//! Pair probes: a slow ring says nothing about who is slow, since all its edges run at the pace of
//! the slowest. Every pair of hosts alone, both directions, tells.

use std::collections::BTreeSet;
use std::time::Duration;

use ncclctl_findings::Evidence;
use ncclctl_findings::evidence::{PathRate, Phase};

use super::Sink;
use super::workers::Workers;
use crate::engine::{Probe, Received};
use crate::error::TrialError;
use crate::event::Event;
use crate::message::{Answer, Step};

/// How long one round streams.
const ROUND: Duration = Duration::from_millis(500);

/// How often a path that looks slow is probed again, its pair alone.
const CONFIRM: usize = 2;

/// Probes all pairs of hosts (of ranks, on a single host) in rounds in which every host has one partner.
pub(super) async fn pairs(
    workers: &mut Workers,
    evidence: &mut Evidence,
    sink: Sink<'_>,
) -> Result<(), TrialError> {
    let speakers = speakers(evidence);
    let mut paths = Vec::new();
    for round in rounds(speakers.len()) {
        let pairs = round
            .into_iter()
            .flat_map(|(a, b)| {
                let (a, b) = (speakers[a], speakers[b]);
                [(a, b), (b, a)]
            })
            .collect();
        paths.extend(stream(workers, pairs, ROUND, Phase::Blame).await?);
    }
    sink(Event::PathsMeasured { paths: paths.clone() });
    evidence.paths.extend(paths);
    // a path is slow only if it is slow every time: one moment in which a host was busy blames nobody
    for _ in 0..CONFIRM {
        let suspects = ncclctl_findings::verdict::suspects(evidence);
        let pairs: BTreeSet<(usize, usize)> = suspects
            .into_iter()
            .filter_map(|(from, to)| {
                let (from, to) = (speaker(evidence, from)?, speaker(evidence, to)?);
                Some((from.min(to), from.max(to)))
            })
            .collect();
        for (a, b) in pairs {
            let again = stream(workers, vec![(a, b), (b, a)], ROUND, Phase::Blame).await?;
            evidence.paths.extend(again);
        }
    }
    Ok(())
}

/// The rank that probes for a host.
fn speaker(evidence: &Evidence, host: usize) -> Option<usize> {
    evidence.ranks.iter().position(|rank| rank.host == host)
}

/// Streams over the given pairs at once.
pub(super) async fn stream(
    workers: &mut Workers,
    pairs: Vec<(usize, usize)>,
    duration: Duration,
    phase: Phase,
) -> Result<Vec<PathRate>, TrialError> {
    let probe = Probe { pairs, duration };
    let received = workers
        .every_rank("measuring paths", Step::Probe { probe }, |answer| match answer {
            Answer::Probed { received } => Some(received),
            _ => None,
        })
        .await?;
    let path = |to: usize, r: Received| PathRate {
        from: r.from,
        to,
        phase,
        all_at_once: phase != Phase::Blame,
        rate_bps: r.rate_bps,
        seconds: r.seconds,
        round_trip_us: r.round_trip_us,
    };
    Ok(received
        .into_iter()
        .enumerate()
        .flat_map(|(to, all)| all.into_iter().map(move |r| path(to, r)))
        .collect())
}

/// One rank for each host, or all ranks where there is one host.
fn speakers(evidence: &Evidence) -> Vec<usize> {
    if evidence.hosts.len() < 2 {
        return (0..evidence.ranks.len()).collect();
    }
    (0..evidence.hosts.len()).filter_map(|host| speaker(evidence, host)).collect()
}

/// All pairs of `n` in rounds in which nobody stands twice: the circle method of tournaments,
/// n-1 rounds for an even n, n for an odd one.
fn rounds(n: usize) -> Vec<Vec<(usize, usize)>> {
    if n < 2 {
        return Vec::new();
    }
    let even = n + n % 2;
    (0..even - 1)
        .map(|round| {
            let seat = |i: usize| if i == 0 { 0 } else { (i - 1 + round) % (even - 1) + 1 };
            (0..even / 2)
                .map(|i| (seat(i), seat(even - 1 - i)))
                // an odd number has one guest who is not there
                .filter(|(a, b)| *a < n && *b < n)
                .map(|(a, b)| (a.min(b), a.max(b)))
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::rounds;

    proptest! {
        #[test]
        fn every_pair_once_and_nobody_twice_in_a_round(n in 0usize..40) {
            let mut seen = BTreeSet::new();
            for round in rounds(n) {
                let mut busy = BTreeSet::new();
                for (a, b) in round {
                    prop_assert!(a < b && b < n);
                    prop_assert!(busy.insert(a) && busy.insert(b));
                    prop_assert!(seen.insert((a, b)));
                }
            }
            prop_assert_eq!(seen.len(), n * n.saturating_sub(1) / 2);
        }
    }
}
