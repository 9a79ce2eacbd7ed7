//! Raw paths held against each other: which host, or which edge, is slow.
//!
//! A ring runs at the pace of its slowest edge, so its own figures blame nobody. Pair probes do:
//! one pair at a time, both directions. A host is named when at least two of its edges with healthy
//! partners are slow, else the edge.

use std::collections::BTreeMap;

use crate::evidence::{Evidence, PathRate, Phase};

/// Under this share of what the others reach a path counts as slow: the share under which a run
/// fails, and well beyond what the order of probes on a busy machine does to them.
pub(crate) const SLOW: f64 = 0.70;

/// With two hosts there are only two directions to compare, and a busy machine alone can make one
/// of them look a third slower.
const SLOW_OF_TWO: f64 = 0.50;

/// Who is slow.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Blame {
    /// What a healthy path reaches here, bytes per second.
    pub(crate) reference_bps: f64,
    /// Whether pair probes were made; else only ring edges were compared.
    pub(crate) probed: bool,
    /// Hosts with at least two slow edges.
    pub(crate) hosts: Vec<SlowHost>,
    /// Slow edges between hosts that are not slow themselves.
    pub(crate) links: Vec<SlowLink>,
}

/// A slow host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SlowHost {
    /// Index of the host.
    pub(crate) host: usize,
    /// Its slow edges: from host, to host, bytes per second.
    pub(crate) edges: Vec<(usize, usize, f64)>,
    /// Median of them, bytes per second.
    pub(crate) rate_bps: f64,
    /// Whether it is slow when it sends.
    pub(crate) sends: bool,
    /// Whether it is slow when it receives.
    pub(crate) receives: bool,
}

/// A slow edge between two hosts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SlowLink {
    /// Sending host.
    pub(crate) from: usize,
    /// Receiving host.
    pub(crate) to: usize,
    /// Bytes per second in that direction.
    pub(crate) rate_bps: f64,
    /// Bytes per second in the other direction, where measured.
    pub(crate) back_bps: Option<f64>,
    /// Whether the other direction is slow too.
    pub(crate) both: bool,
}

impl Blame {
    /// Whether the path between two ranks is one of those blamed.
    pub(crate) fn blames(&self, evidence: &Evidence, from: usize, to: usize) -> bool {
        let (Some(a), Some(b)) = (host_of(evidence, from), host_of(evidence, to)) else {
            return false;
        };
        a != b
            && (self.hosts.iter().any(|h| h.host == a || h.host == b)
                || self
                    .links
                    .iter()
                    .any(|l| (l.from, l.to) == (a, b) || (l.both && (l.to, l.from) == (a, b))))
    }
}

/// Rates between ranks by directed edge: the mean over the phases that `keep` takes, and the lowest.
pub(crate) fn rates(
    evidence: &Evidence,
    keep: impl Fn(&PathRate) -> bool,
) -> BTreeMap<(usize, usize), (f64, f64)> {
    let mut all: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for path in evidence.paths.iter().filter(|p| p.rate_bps > 0.0 && keep(p)) {
        all.entry((path.from, path.to)).or_default().push(path.rate_bps);
    }
    all.into_iter()
        .map(|(edge, rates)| {
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            (edge, (mean, rates.iter().copied().fold(f64::INFINITY, f64::min)))
        })
        .collect()
}

/// The best of the pair probes by directed edge: what a path reached once, it can reach.
fn probes(evidence: &Evidence) -> BTreeMap<(usize, usize), f64> {
    let mut best = BTreeMap::new();
    for path in evidence.paths.iter().filter(|p| p.phase == Phase::Blame && p.rate_bps > 0.0) {
        let rate = best.entry((path.from, path.to)).or_insert(0.0_f64);
        *rate = rate.max(path.rate_bps);
    }
    best
}

/// The ring edges, all at once, before and after.
pub(crate) fn ring(evidence: &Evidence) -> BTreeMap<(usize, usize), (f64, f64)> {
    rates(evidence, |p| p.all_at_once && p.phase != Phase::Blame)
}

/// Host of a rank.
pub(crate) fn host_of(evidence: &Evidence, rank: usize) -> Option<usize> {
    evidence.ranks.get(rank).map(|r| r.host)
}

/// Name of a host, or its number where it has none.
pub(crate) fn host_name(evidence: &Evidence, host: usize) -> String {
    match evidence.hosts.get(host) {
        Some(h) if !h.name.is_empty() => h.name.clone(),
        _ => format!("host {host}"),
    }
}

/// Whether all hosts are namespaces or containers of one machine, so that its processors are the
/// wire.
pub(crate) fn one_machine(evidence: &Evidence) -> bool {
    let first = evidence.hosts.first().map(|h| h.boot_id.as_str()).unwrap_or_default();
    evidence.hosts.len() <= 1
        || (!first.is_empty() && evidence.hosts.iter().all(|h| h.boot_id == first))
}

/// MTU of the interface that a host's ranks chose first, bytes.
pub(crate) fn data_mtu(evidence: &Evidence, host: usize) -> Option<u32> {
    let rank = evidence.ranks.iter().find(|r| r.host == host)?;
    let name = &rank.interfaces.first()?.name;
    let interface = evidence.hosts.get(host)?.interfaces.iter().find(|i| i.name == *name)?;
    Some(interface.mtu)
}

/// Best rate between two different hosts, by direction.
fn between_hosts(
    evidence: &Evidence,
    edges: impl IntoIterator<Item = ((usize, usize), f64)>,
) -> BTreeMap<(usize, usize), f64> {
    let mut out = BTreeMap::new();
    for ((from, to), rate) in edges {
        if let (Some(a), Some(b)) = (host_of(evidence, from), host_of(evidence, to))
            && a != b
        {
            let best = out.entry((a, b)).or_insert(0.0_f64);
            *best = best.max(rate);
        }
    }
    out
}

/// Compares the paths between hosts. `None` where there is nothing to compare.
pub(crate) fn blame(evidence: &Evidence) -> Option<Blame> {
    let probes = between_hosts(evidence, probes(evidence));
    let probed = probes.len() > 1;
    let ring = || ring(evidence).into_iter().map(|(edge, (mean, _))| (edge, mean));
    let edges = if probed { probes } else { between_hosts(evidence, ring()) };
    if edges.len() < 2 {
        return None;
    }
    let mut best: BTreeMap<usize, f64> = BTreeMap::new();
    for (&(from, to), &rate) in &edges {
        for host in [from, to] {
            let own = best.entry(host).or_insert(0.0);
            *own = own.max(rate);
        }
    }
    // the upper median over hosts of what each reaches with its best partner: half of the hosts
    // may be slow and it still shows what a healthy pair does
    let mut bests: Vec<f64> = best.values().copied().collect();
    bests.sort_by(f64::total_cmp);
    let reference = *bests.get(bests.len() / 2)?;
    let share = if best.len() == 2 { SLOW_OF_TWO } else { SLOW };
    let mut slow: BTreeMap<(usize, usize), f64> =
        edges.iter().filter(|(_, r)| **r < share * reference).map(|(e, r)| (*e, *r)).collect();
    let mut hosts = Vec::new();
    if best.len() > 2 {
        while let Some(host) = worst_host(&slow, best.keys().copied()) {
            let own: Vec<(usize, usize, f64)> = slow
                .iter()
                .filter(|((a, b), _)| *a == host || *b == host)
                .map(|((a, b), r)| (*a, *b, *r))
                .collect();
            slow.retain(|(a, b), _| *a != host && *b != host);
            let mut sorted: Vec<f64> = own.iter().map(|e| e.2).collect();
            sorted.sort_by(f64::total_cmp);
            hosts.push(SlowHost {
                host,
                rate_bps: sorted[sorted.len() / 2],
                sends: own.iter().any(|e| e.0 == host),
                receives: own.iter().any(|e| e.1 == host),
                edges: own,
            });
        }
    }
    let mut links = Vec::new();
    for (&(from, to), &rate) in &slow {
        let both = slow.contains_key(&(to, from));
        if both && to < from {
            continue;
        }
        links.push(SlowLink {
            from,
            to,
            rate_bps: rate,
            back_bps: edges.get(&(to, from)).copied(),
            both,
        });
    }
    Some(Blame { reference_bps: reference, probed, hosts, links })
}

/// The host with the most slow partners, at least two.
fn worst_host(
    slow: &BTreeMap<(usize, usize), f64>,
    hosts: impl Iterator<Item = usize>,
) -> Option<usize> {
    hosts
        .map(|host| {
            let partners: std::collections::BTreeSet<usize> = slow
                .keys()
                .filter_map(|&(a, b)| {
                    if a == host {
                        Some(b)
                    } else if b == host {
                        Some(a)
                    } else {
                        None
                    }
                })
                .collect();
            (partners.len(), host)
        })
        .filter(|(count, _)| *count >= 2)
        .max_by_key(|(count, host)| (*count, std::cmp::Reverse(*host)))
        .map(|(_, host)| host)
}
