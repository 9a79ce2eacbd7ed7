//! What is to be expected of one point of a trial.

use std::collections::BTreeSet;

use ncclctl_nccl::Collective;
use ncclctl_nccl::bandwidth::{Algorithm, Layout, Link, line_rate_payload, node_bytes, rank_bytes};

use super::{Basis, Expected, Limit};
use crate::evidence::{Evidence, Point};
use crate::figures::{gbs, line_rate, link_rate, percent};
use crate::paths;

/// Latency may take this share of the time of a judged size; under that size the figure says more
/// about latency than about bandwidth.
const KNEE: f64 = 0.10;

/// Microseconds per step where no round trip was measured: a wake-up and a system call on either
/// side on a busy machine.
const STEP_US: f64 = 50.0;

/// What a point is to be held against.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ceiling {
    /// The expectation, latency included.
    pub(super) expected: Expected,
    /// Why this point says nothing about bandwidth; `None` where it does.
    pub(super) under_the_knee: Option<String>,
    /// Payload that the slowest host's NICs carry by their line rate, bytes per second, where it is
    /// believed or stated; and those NICs.
    pub(super) line: Option<(f64, String)>,
}

/// How the ranks of a point lie on hosts.
pub(super) fn layout(evidence: &Evidence, point: &Point) -> Layout {
    let hosts: BTreeSet<usize> = evidence.ranks.iter().take(point.ranks).map(|r| r.host).collect();
    Layout { ranks: point.ranks, nodes: hosts.len().max(1) }
}

/// The algorithm of a point; what engines use for large buffers where the name says nothing.
pub(super) fn algorithm(point: &Point) -> Algorithm {
    Algorithm::from_name(&point.algorithm).unwrap_or(match point.collective {
        Collective::AllToAll | Collective::Gather | Collective::Scatter => Algorithm::Direct,
        _ => Algorithm::Ring,
    })
}

/// Why one rank proves nothing, and what was seen of its GPU.
fn alone(evidence: &Evidence) -> String {
    let copy = evidence.gpus.first().and_then(|gpu| Some((gpu, gpu.copy_bps?)));
    match (evidence.engine.as_str(), copy) {
        ("nccl", Some((gpu, bps))) => format!(
            "one GPU alone, nothing crossed a wire; its memory copies at {} read and written \
             ({}), for information",
            gbs(bps / 1e9),
            gpu.name
        ),
        ("nccl", None) => "one GPU alone, nothing crossed a wire".to_owned(),
        _ => "one rank moves nothing between ranks".to_owned(),
    }
}

/// What is to be expected of the point, or why that can not be said.
pub(super) fn ceiling(evidence: &Evidence, point: &Point) -> Result<Ceiling, String> {
    if point.ranks < 2 {
        return Err(alone(evidence));
    }
    let layout = layout(evidence, point);
    if let Some(ceiling) = super::gpu::ceiling(evidence, point, layout) {
        return Ok(ceiling);
    }
    let algorithm = algorithm(point);
    let factor = point.collective.busbw_factor(point.ranks);
    let (per_rank, reduced) = rank_bytes(point.collective, algorithm, point.ranks);
    let mut limits = Vec::new();
    let reduce = reduce_rate(evidence, point);

    let measured = path_limit(evidence, point, layout, algorithm, reduce);
    let bought =
        if layout.nodes > 1 { nic_limit(evidence, point, layout, algorithm) } else { None };
    let line = bought.as_ref().map(|(_, limit, payload)| (payload * 1e9, limit.what.clone()));
    let compute = reduce.filter(|_| reduced > 0.0).map(|r| Limit {
        what: "reduction on the processor (measured)".to_owned(),
        busbw: factor / (per_rank * reduced) * r / 1e9,
        how: format!("{} a rank, {} of the bytes are reduced", gbs(r / 1e9), reduced),
    });

    let (basis, lead, floor) = match (bought, measured) {
        (Some((basis, limit, _)), measured) => {
            if let Some((mut path, _)) = measured {
                path.how.push_str("; not used: a slow network would hide in it");
                limits.push(path);
            }
            (basis, limit, 1.0)
        }
        (None, Some((limit, floor))) => (Basis::Measured, limit, floor),
        (None, None) => {
            return Err(
                "no raw path was measured and no line rate is known to hold it against".to_owned()
            );
        }
    };
    let mut best = lead.clone();
    if let Some(compute) = compute {
        if compute.busbw < best.busbw && basis != Basis::Measured {
            best = compute.clone();
        }
        limits.push(compute);
    }
    limits.push(lead);
    limits.sort_by(|a, b| a.busbw.total_cmp(&b.busbw));

    let latency_us = latency(evidence, point, algorithm);
    let moving_us = point.size as f64 * factor / (best.busbw * 1e3);
    let whole = latency_us + moving_us;
    let busbw = if whole > 0.0 { point.size as f64 * factor / (whole * 1e3) } else { 0.0 };
    Ok(Ceiling {
        expected: Expected { busbw, floor: busbw * floor, basis, limited_by: best.what, limits },
        line,
        under_the_knee: (latency_us > KNEE * whole).then(|| {
            let share = if whole > 0.0 { latency_us / whole } else { 1.0 };
            format!(
                "under the knee: latency of {latency_us:.0} us is {} of its time",
                percent(share)
            )
        }),
    })
}

/// Slowest reduction of any rank, bytes of result per second, where the collective reduces.
fn reduce_rate(evidence: &Evidence, point: &Point) -> Option<f64> {
    if !point.collective.reduces() {
        return None;
    }
    let slowest = evidence
        .reduce_bps
        .iter()
        .take(point.ranks)
        .copied()
        .filter(|r| *r > 0.0)
        .fold(f64::INFINITY, f64::min);
    slowest.is_finite().then_some(slowest)
}

/// The ceiling by raw paths, and how much lower it is by the lowest of the measurements.
fn path_limit(
    evidence: &Evidence,
    point: &Point,
    layout: Layout,
    algorithm: Algorithm,
    reduce: Option<f64>,
) -> Option<(Limit, f64)> {
    let ring = paths::ring(evidence);
    let blame = paths::blame(evidence).unwrap_or_default();
    let inside = ring.iter().filter(|(e, _)| e.0 < point.ranks && e.1 < point.ranks);
    let slowest = inside
        .map(|(e, r)| (*e, r.0, r.1))
        // a slow edge must not lower what the run is held against
        .filter(|(e, _, _)| !blame.blames(evidence, e.0, e.1))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let (edge, rate, low) = match slowest {
        Some(slowest) => slowest,
        None => {
            let edge = *ring.keys().find(|e| e.0 < point.ranks && e.1 < point.ranks)?;
            (edge, blame.reference_bps, blame.reference_bps)
        }
    };
    let factor = point.collective.busbw_factor(point.ranks);
    let (per_rank, reduced) = rank_bytes(point.collective, algorithm, point.ranks);
    let busbw = |path: f64| {
        let mut seconds = per_rank / path;
        // ranks that share the sender's NIC share its path as well
        if layout.nodes > 1 {
            let bytes = node_bytes(point.collective, algorithm, layout);
            seconds = seconds.max(bytes.out.max(bytes.inward) / path);
        }
        if let Some(r) = reduce {
            let compute = per_rank * reduced / r;
            seconds =
                if paths::one_machine(evidence) { seconds + compute } else { seconds.max(compute) };
        }
        factor / seconds / 1e9
    };
    let name = |rank: usize| match paths::host_of(evidence, rank) {
        Some(h) if layout.nodes > 1 => {
            format!("rank {rank} on {}", paths::host_name(evidence, h))
        }
        _ => format!("rank {rank}"),
    };
    let how = match reduce {
        Some(r) if paths::one_machine(evidence) => format!(
            "1/(1/path + f/reduce): path {}, f {reduced}, reduce {}",
            gbs(rate / 1e9),
            gbs(r / 1e9)
        ),
        _ => format!("slowest healthy edge while all stream: {}", link_rate(rate)),
    };
    let what = format!("path {} -> {} (measured)", name(edge.0), name(edge.1));
    let limit = Limit { what, busbw: busbw(rate), how };
    Some((limit, busbw(low.min(rate)) / busbw(rate)))
}

/// The ceiling by line rates: stated by the user, or believed of every host's own NICs. With it the
/// payload rate of the slowest host, GB/s.
fn nic_limit(
    evidence: &Evidence,
    point: &Point,
    layout: Layout,
    algorithm: Algorithm,
) -> Option<(Basis, Limit, f64)> {
    let factor = point.collective.busbw_factor(point.ranks);
    let bytes = node_bytes(point.collective, algorithm, layout);
    let bytes = bytes.out.max(bytes.inward);
    let hosts: BTreeSet<usize> = evidence.ranks.iter().take(point.ranks).map(|r| r.host).collect();
    let mut lowest: Option<(f64, String, String)> = None;
    for host in hosts {
        let nics = nics_of(evidence, host);
        let mut payload = 0.0;
        let mut shown = Vec::new();
        let mut rates = Vec::new();
        for (nic, believed, link) in &nics {
            let bits = evidence.stated_line_rate_bits.or(*believed)?;
            payload += line_rate_payload(bits, *link);
            shown.push(nic.clone());
            rates.push(bits);
        }
        if payload <= 0.0 {
            return None;
        }
        if lowest.as_ref().is_none_or(|l| payload < l.0) {
            let share = nics.first().map(|n| n.2.payload_share()).unwrap_or(1.0);
            lowest = Some((
                payload,
                format!(
                    "{} of {} ({})",
                    shown.join(" + "),
                    paths::host_name(evidence, host),
                    line_rate(rates.iter().sum())
                ),
                format!("line rate times {share:.2} payload is {}", gbs(payload)),
            ));
        }
    }
    let (payload, what, how) = lowest?;
    let (basis, source) = match evidence.stated_line_rate_bits {
        Some(_) => (Basis::Stated, "as stated"),
        None => (Basis::Nic, "by its own report"),
    };
    let limit = Limit { what: format!("{what}, {source}"), busbw: payload * factor / bytes, how };
    Some((basis, limit, payload))
}

/// NICs that carry a host's data: name, believed line rate, what they speak.
pub(super) fn nics_of(evidence: &Evidence, host: usize) -> Vec<(String, Option<u64>, Link)> {
    let Some(h) = evidence.hosts.get(host) else { return Vec::new() };
    let mut names: Vec<String> = Vec::new();
    let chosen = evidence.ranks.iter().filter(|r| r.host == host).flat_map(|r| &r.interfaces);
    for interface in chosen {
        if !names.contains(&interface.name) {
            names.push(interface.name.clone());
        }
    }
    if names.is_empty() {
        for window in evidence.wire.iter().filter(|w| w.host == host && w.tx_bytes > 0) {
            if !names.contains(&window.nic) {
                names.push(window.nic.clone());
            }
        }
    }
    names
        .into_iter()
        .map(|name| {
            let interface = h.interfaces.iter().find(|i| i.name == name);
            let window = evidence.wire.iter().find(|w| w.host == host && w.nic == name);
            let believed = window
                .and_then(|w| w.line_rate_bits)
                .or_else(|| interface.and_then(|i| i.line_rate_bits()));
            let mtu = interface.map_or(1500, |i| i.mtu);
            let link = match transport(evidence) {
                Some(crate::evidence::Transport::Ib) => Link::InfiniBand,
                Some(crate::evidence::Transport::Roce) => {
                    Link::Roce { mtu: if interface.is_some() { mtu } else { 4200 } }
                }
                Some(crate::evidence::Transport::Plugin) => Link::Cloud,
                _ => Link::Tcp { mtu },
            };
            (name, believed, link)
        })
        .collect()
}

/// The transport between hosts, where all edges agree.
pub(super) fn transport(evidence: &Evidence) -> Option<crate::evidence::Transport> {
    let mut between = evidence
        .edges
        .iter()
        .filter(|e| paths::host_of(evidence, e.from) != paths::host_of(evidence, e.to))
        .map(|e| e.transport);
    let first = between.next()?;
    between.all(|t| t == first).then_some(first)
}

/// Time of an operation that moves nothing, microseconds: what the smallest size took, or the steps
/// of the algorithm at half a round trip each, whichever is more.
fn latency(evidence: &Evidence, point: &Point, algorithm: Algorithm) -> f64 {
    let smallest = evidence
        .series
        .iter()
        .filter(|p| p.collective == point.collective && p.ranks == point.ranks && p.size <= 4096)
        .map(|p| p.time.median_us.min(p.time.mean_us))
        .fold(f64::INFINITY, f64::min);
    let n = point.ranks as f64;
    let steps = match (point.collective, algorithm) {
        (_, Algorithm::Doubling | Algorithm::Binomial) => n.log2().ceil(),
        (Collective::AllReduce, Algorithm::Ring) => 2.0 * (n - 1.0),
        (Collective::AllReduce, _) => 2.0 * n.log2().ceil(),
        (Collective::SendRecv, _) => 1.0,
        (_, Algorithm::Direct) => 1.0,
        _ => n - 1.0,
    };
    let round_trip = evidence.paths.iter().filter_map(|p| p.round_trip_us).fold(f64::NAN, f64::max);
    let step = if round_trip.is_finite() { round_trip / 2.0 } else { STEP_US };
    let by_steps = steps * step;
    if smallest.is_finite() { smallest.max(by_steps) } else { by_steps }
}
