//! From evidence to judgement.

use std::collections::{BTreeMap, BTreeSet};

use ncclctl_nccl::bandwidth::node_bytes;
use ncclctl_nccl::size::Short;

use super::ceiling::{Ceiling, algorithm, ceiling, layout};
use super::wire;
use super::{
    Basis, Expected, Judgement, Noise, Outcome, PointVerdict, Proof, Proofs, Terms, Verdict,
};
use crate::evidence::{Evidence, Point, Transport};
use crate::figures::{gbs, link_rate, percent};
use crate::finding::{Finding, Severity};
use crate::paths;
use crate::rules::RULES;

/// Rules that explain a slow result: with one of them proven a run under the threshold fails.
const EXPLAINS_SLOWNESS: &[&str] = &[
    "cpu-bound",
    "gpu-throttled",
    "mtu-mismatch",
    "nic-below-rated-speed",
    "nic-errors",
    "nic-half-duplex",
    "single-nic-used",
    "slow-link",
    "slow-node",
    "slower-interface-chosen",
    "uneven-nics",
    "wrong-interface-linklocal",
    "wrong-interface-virtual",
];

/// Judges a finished trial.
pub fn judge(evidence: &Evidence, terms: &Terms) -> Judgement {
    let findings = findings(evidence);
    let judged = judge_points(evidence);
    let decides = decisive(evidence, &judged);
    let proofs = proofs(evidence, decides.as_ref());
    let (outcome, summary) =
        outcome(evidence, terms, &findings, decides.as_ref(), &judged, &proofs);
    let verdict = Verdict {
        outcome,
        summary,
        expected: decides.as_ref().map(|d| d.ceiling.expected.clone()),
        achieved: decides.as_ref().map(|d| d.point.busbw),
        ratio: decides.as_ref().map(|d| d.ratio),
        decided_by: decides.as_ref().map(|d| d.index),
        noise: noise(evidence, decides.as_ref()),
        unknown: unknown(evidence, decides.as_ref(), &judged),
        settle: settle(evidence, outcome, decides.as_ref(), &judged, &proofs),
        points: judged.into_iter().map(|j| j.verdict).collect(),
        proofs: Proofs {
            transport: proofs.transport,
            wire: proofs.wire.proof,
            busbw: proofs.busbw,
        },
    };
    Judgement { verdict, findings }
}

/// Whether pair probes would tell who is slow: at least three hosts, a result or a path that is
/// slow, and nobody probed yet.
pub fn wants_pairs(evidence: &Evidence) -> bool {
    let hosts: BTreeSet<usize> = evidence.ranks.iter().map(|r| r.host).collect();
    let probed = evidence.paths.iter().any(|p| p.phase == crate::evidence::Phase::Blame);
    if hosts.len() < 3 || probed {
        return false;
    }
    let between: Vec<f64> = paths::ring(evidence)
        .iter()
        .filter(|((a, b), _)| paths::host_of(evidence, *a) != paths::host_of(evidence, *b))
        .map(|(_, r)| r.0)
        .collect();
    let best = between.iter().copied().fold(0.0, f64::max);
    // well before a path counts as slow: the probes decide, this only asks for them
    let uneven = between.iter().any(|r| *r < 0.85 * best);
    let judged = judge_points(evidence);
    let slow = decisive(evidence, &judged).is_some_and(|d| d.ratio < Terms::default().threshold);
    uneven || slow
}

/// Lines that would make this trial fail or stay undecided: indices into [`Evidence::series`] of the
/// judged ones under the threshold, where their collective as a whole is under it.
pub fn too_slow(evidence: &Evidence) -> Vec<usize> {
    let threshold = Terms::default().threshold;
    let judged = judge_points(evidence);
    if decisive(evidence, &judged).is_none_or(|d| d.ratio >= threshold) {
        return Vec::new();
    }
    judged
        .iter()
        .filter(|j| j.verdict.judged && j.verdict.ratio.is_some_and(|ratio| ratio < threshold))
        .map(|j| j.verdict.point)
        .collect()
}

/// Paths between hosts that pair probes found slow so far: sending and receiving host.
pub fn suspects(evidence: &Evidence) -> Vec<(usize, usize)> {
    let Some(blame) = paths::blame(evidence) else { return Vec::new() };
    let of_hosts =
        blame.hosts.iter().flat_map(|h| h.edges.iter().map(|(from, to, _)| (*from, *to)));
    of_hosts.chain(blame.links.iter().map(|l| (l.from, l.to))).collect()
}

/// Every finding about a trial, the worst first.
fn findings(evidence: &Evidence) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for rule in RULES {
        if let Some(look) = rule.trial {
            look(evidence, &mut findings);
        }
    }
    findings.sort_by_key(|f| (std::cmp::Reverse(f.severity), std::cmp::Reverse(f.confidence)));
    findings
}

struct Judged {
    verdict: PointVerdict,
    ceiling: Option<Ceiling>,
}

fn judge_points(evidence: &Evidence) -> Vec<Judged> {
    let all = evidence.series.iter().map(|p| p.ranks).max().unwrap_or(0);
    let one = |(index, point): (usize, &Point)| {
        let mut verdict = PointVerdict {
            point: index,
            judged: false,
            why_not: None,
            expected: None,
            ratio: None,
        };
        if point.ranks < all {
            verdict.why_not = Some(format!("{} of {all} ranks", point.ranks));
            return Judged { verdict, ceiling: None };
        }
        match ceiling(evidence, point) {
            Err(why) => {
                verdict.why_not = Some(why);
                Judged { verdict, ceiling: None }
            }
            Ok(c) => {
                verdict.why_not = c.under_the_knee.clone();
                verdict.judged = verdict.why_not.is_none();
                verdict.expected = Some(c.expected.busbw);
                verdict.ratio = (c.expected.busbw > 0.0).then(|| point.busbw / c.expected.busbw);
                verdict.judged &= verdict.ratio.is_some();
                Judged { verdict, ceiling: Some(c) }
            }
        }
    };
    evidence.series.iter().enumerate().map(one).collect()
}

struct Decides<'a> {
    index: usize,
    point: &'a Point,
    ceiling: Ceiling,
    ratio: f64,
}

/// The point that decides: the median of the worst collective. A single size that had bad luck
/// decides nothing; a collective that is slow throughout does.
fn decisive<'a>(evidence: &'a Evidence, judged: &[Judged]) -> Option<Decides<'a>> {
    let mut groups: BTreeMap<String, Vec<(f64, usize)>> = BTreeMap::new();
    for j in judged.iter().filter(|j| j.verdict.judged) {
        let point = evidence.series.get(j.verdict.point)?;
        let key = format!("{} {:?} {:?}", point.collective, point.dtype, point.op);
        groups.entry(key).or_default().push((j.verdict.ratio?, j.verdict.point));
    }
    let (ratio, index) = groups
        .into_values()
        .filter_map(|mut ratios| {
            ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
            ratios.get(ratios.len() / 2).copied()
        })
        .min_by(|a, b| a.0.total_cmp(&b.0))?;
    let ceiling = judged.get(index)?.ceiling.clone()?;
    Some(Decides { index, point: evidence.series.get(index)?, ceiling, ratio })
}

struct Three {
    transport: Proof,
    wire: wire::Wire,
    busbw: Proof,
}

fn proofs(evidence: &Evidence, decides: Option<&Decides<'_>>) -> Three {
    let wire = match decides {
        Some(d) => wire::proof(evidence, d.index, d.point),
        None => wire::Wire {
            proof: Proof { had: false, says: "no size was judged".to_owned() },
            contradicts: false,
        },
    };
    let busbw = match decides {
        Some(d) => Proof {
            had: true,
            says: format!(
                "{} of {} expected at {}",
                gbs(d.point.busbw),
                gbs(d.ceiling.expected.busbw),
                Short(d.point.size)
            ),
        },
        None => Proof { had: false, says: "no size was judged".to_owned() },
    };
    Three { transport: transport(evidence), wire, busbw }
}

fn transport(evidence: &Evidence) -> Proof {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for edge in &evidence.edges {
        *counts.entry(transport_name(edge.transport)).or_default() += 1;
    }
    let known = !counts.is_empty() && !counts.contains_key("unknown");
    let says = if counts.is_empty() {
        "no edge was reported".to_owned()
    } else {
        let parts: Vec<String> = counts
            .iter()
            .map(|(name, count)| {
                format!("{count} edge{} {name}", if *count == 1 { "" } else { "s" })
            })
            .collect();
        let direct = evidence.edges.iter().filter(|e| e.gdr == Some(true)).count();
        let staged = evidence.edges.iter().filter(|e| e.gdr == Some(false)).count();
        let gdr = match (direct, staged) {
            (0, 0) => String::new(),
            (d, 0) => format!(", {d} with GPUDirect RDMA"),
            (d, s) => format!(", {d} with GPUDirect RDMA, {s} without"),
        };
        format!("{}{gdr}", parts.join(", "))
    };
    Proof { had: known, says }
}

fn transport_name(transport: Transport) -> &'static str {
    match transport {
        Transport::Socket => "socket",
        Transport::Ib => "InfiniBand",
        Transport::Roce => "RoCE",
        Transport::Plugin => "plug-in",
        Transport::Nvlink => "NVLink",
        Transport::Pcie => "PCIe",
        Transport::Shm => "shared memory",
        Transport::Unknown => "unknown",
    }
}

fn outcome(
    evidence: &Evidence,
    terms: &Terms,
    findings: &[Finding],
    decides: Option<&Decides<'_>>,
    judged: &[Judged],
    proofs: &Three,
) -> (Outcome, String) {
    if let Some(failure) = evidence.failures.first() {
        let who = match failure.rank {
            Some(rank) => format!("rank {rank} on {}", failure.host),
            None => failure.host.clone(),
        };
        return (Outcome::Fail, format!("{who} {}", failure.seen));
    }
    if let Some(worst) = findings.iter().find(|f| f.severity == Severity::Error) {
        return (Outcome::Fail, worst.message.clone());
    }
    let Some(d) = decides else {
        let why = judged
            .iter()
            .rev()
            .find_map(|j| j.verdict.why_not.clone())
            .unwrap_or_else(|| "nothing was measured".to_owned());
        return (Outcome::Inconclusive, format!("no size could be judged: {why}"));
    };
    let expected = &d.ceiling.expected;
    let reached = format!(
        "{} {} reached {}, {} of the {} expected",
        d.point.collective,
        Short(d.point.size),
        gbs(d.point.busbw),
        percent(d.ratio),
        gbs(expected.busbw)
    );
    if d.ratio >= terms.threshold {
        if let Some((outcome, says)) = streams_against_line_rate(evidence, terms, d) {
            return (outcome, format!("{reached}, but {says}"));
        }
        return if proofs.wire.contradicts {
            (Outcome::Inconclusive, format!("{reached}, but {}", proofs.wire.proof.says))
        } else {
            (Outcome::Pass, reached)
        };
    }
    let cause = findings
        .iter()
        .find(|f| f.severity >= Severity::Warning && EXPLAINS_SLOWNESS.contains(&f.rule.as_str()));
    if cause.is_none()
        && let Some(by) = disturbed(evidence, d)
    {
        return (Outcome::Inconclusive, format!("{reached}, but {by}"));
    }
    if d.point.busbw < terms.fail_under * expected.floor {
        let why = match cause {
            Some(cause) => format!(": {}", cause.message),
            None => network_or_not(evidence, expected),
        };
        return (Outcome::Fail, format!("{reached}{why}"));
    }
    match cause {
        Some(cause) => (Outcome::Fail, format!("{reached}: {}", cause.message)),
        None if terms.strict => {
            (Outcome::Fail, format!("{reached}; strict: must reach {}", percent(terms.threshold)))
        }
        None => (Outcome::Inconclusive, format!("{reached}, and no cause is proven")),
    }
}

/// Share of a machine's processors that others may use before its own figures mean nothing.
const DISTURBED: f64 = 0.10;

/// Who took the processors while the line that decided was measured, where they are the wire: all
/// ranks on one machine.
fn disturbed(evidence: &Evidence, d: &Decides<'_>) -> Option<String> {
    if d.ceiling.expected.basis != Basis::Measured || !paths::one_machine(evidence) {
        return None;
    }
    // hosts on one machine see the same processors, and each only its own ranks
    let windows: Vec<_> = evidence.cpu.iter().filter(|w| w.point == d.index).collect();
    let first = windows.first()?;
    let own: f64 = windows.iter().map(|w| w.trial_cpus).sum();
    let others = first.busy_cpus - own - first.stolen_cpus;
    let name = paths::host_name(evidence, first.host);
    let all = first.machine_cpus;
    if first.stolen_cpus > DISTURBED * all {
        let stolen = first.stolen_cpus;
        return Some(format!("the hypervisor took {stolen:.1} of {all:.0} processors of {name}"));
    }
    // interrupts of the trial's own packets are nobody's: a quarter is beyond them
    (others > 2.5 * DISTURBED * all)
        .then(|| format!("other work used {others:.1} of {all:.0} processors of {name}"))
}

/// Rate of the slowest plain stream between hosts, bytes per second.
fn slowest_stream(evidence: &Evidence) -> Option<f64> {
    let slowest = paths::ring(evidence)
        .iter()
        .filter(|((a, b), _)| paths::host_of(evidence, *a) != paths::host_of(evidence, *b))
        .map(|(_, r)| r.0)
        .fold(f64::INFINITY, f64::min);
    slowest.is_finite().then_some(slowest)
}

/// Whether plain streams are as slow as the collective: then it is the network.
fn network_or_not(evidence: &Evidence, expected: &Expected) -> String {
    let by = format!(" by {}", expected.limited_by);
    if !matches!(expected.basis, Basis::Nic | Basis::Stated) {
        return by;
    }
    match slowest_stream(evidence) {
        None => by,
        Some(rate) if rate < Terms::default().fail_under * expected.busbw * 1e9 => format!(
            "{by}; plain streams reach only {}: it is the network, or what was stated",
            link_rate(rate)
        ),
        Some(rate) => {
            format!("{by}; plain streams reach {}: it is not the network", link_rate(rate))
        }
    }
}

/// A line rate is held against plain streams as well: a processor that is slower than both would
/// otherwise hide a network that is not what was bought.
fn streams_against_line_rate(
    evidence: &Evidence,
    terms: &Terms,
    d: &Decides<'_>,
) -> Option<(Outcome, String)> {
    let (line, nics) = d.ceiling.line.as_ref()?;
    // what the collective itself put through a NIC flowed there as well: NCCL's single sends are
    // slower than its collectives
    let bytes = node_bytes(d.point.collective, algorithm(d.point), layout(evidence, d.point));
    let carried = bytes.out.max(bytes.inward) * d.point.algbw * 1e9;
    let rate = slowest_stream(evidence)?.max(carried);
    let says = format!(
        "plain streams reach only {}, {} of the payload of {nics}",
        link_rate(rate),
        percent(rate / line)
    );
    if rate < terms.fail_under * line {
        Some((Outcome::Fail, says))
    } else if rate < terms.threshold * line {
        Some((Outcome::Inconclusive, says))
    } else {
        None
    }
}

fn noise(evidence: &Evidence, decides: Option<&Decides<'_>>) -> Noise {
    let path_change = path_change(evidence);
    let Some(d) = decides else {
        return Noise { path_change, says: "no size was judged".to_owned(), ..Noise::default() };
    };
    let time = &d.point.time;
    let ci95 = if time.mean_us > 0.0 { time.ci95_us / time.mean_us } else { 0.0 };
    let mut says =
        format!("time known to \u{b1}{} over {} operations", percent(ci95), time.operations);
    if time.drift.abs() > 0.05 {
        let word = if time.drift > 0.0 { "slower" } else { "faster" };
        says.push_str(&format!(
            ", {} {word} at the end than at the start",
            percent(time.drift.abs())
        ));
    }
    if time.outliers > 0 {
        let s = if time.outliers == 1 { "" } else { "s" };
        says.push_str(&format!(", {} outlier{s}", time.outliers));
    }
    if let Some(least) = d.point.earlier_busbw.iter().copied().reduce(f64::min) {
        says.push_str(&format!(", measured again: {} the slower time", gbs(least)));
    }
    if path_change > 0.20 {
        says.push_str(&format!(", raw paths changed by {} meanwhile", percent(path_change)));
    }
    Noise { ci95, drift: time.drift, path_change, operations: time.operations, says }
}

/// Greatest change of a ring path between before and after.
fn path_change(evidence: &Evidence) -> f64 {
    let mut range: BTreeMap<(usize, usize), (f64, f64)> = BTreeMap::new();
    let ring = evidence
        .paths
        .iter()
        .filter(|p| p.all_at_once && p.rate_bps > 0.0 && p.phase != crate::evidence::Phase::Blame);
    for p in ring {
        let r = range.entry((p.from, p.to)).or_insert((p.rate_bps, p.rate_bps));
        *r = (r.0.min(p.rate_bps), r.1.max(p.rate_bps));
    }
    range.values().map(|(low, high)| high / low - 1.0).fold(0.0, f64::max)
}

fn unknown(evidence: &Evidence, decides: Option<&Decides<'_>>, judged: &[Judged]) -> Vec<String> {
    let mut out = Vec::new();
    if evidence.gpus.iter().any(|gpu| gpu.shared) {
        out.push(
            "ranks share one GPU, a test mode: it tells of sockets and of the GPU's time slices, \
             not of links between GPUs"
                .to_owned(),
        );
    }
    if let Some(d) = decides {
        let nodes = layout(evidence, d.point).nodes;
        if nodes < 2 {
            out.push("all ranks are on one host: this says nothing about a network".to_owned());
            if evidence.stated_line_rate_bits.is_some() {
                out.push(
                    "the stated line rate was not used: no NIC carries the traffic".to_owned(),
                );
            }
        } else if d.ceiling.expected.basis == Basis::Measured {
            out.push(
                "the ceiling was measured here: a network that is slow as a whole would not show"
                    .to_owned(),
            );
            if nodes == 2 {
                out.push("with two hosts no third path tells which of them is slow".to_owned());
            }
        }
        if nodes > 1 && paths::one_machine(evidence) {
            out.push("all hosts share one machine and its processors".to_owned());
        }
        if d.ratio > 1.15 && d.ceiling.expected.basis == Basis::Measured {
            let why = if evidence.engine == "nccl" {
                "NCCL's single sends are slower than its collectives over this transport, so the \
                 ceiling is too low to tell a slow run"
            } else {
                "something else was busy while the paths were measured"
            };
            out.push(format!(
                "the run was {} as fast as its measured ceiling: {why}",
                percent(d.ratio)
            ));
        }
    }
    let all = |j: &&Judged| j.verdict.judged;
    let dips: Vec<String> = judged
        .iter()
        .filter(all)
        .filter_map(|j| {
            let point = evidence.series.get(j.verdict.point)?;
            let ratio = j.verdict.ratio.filter(|r| *r < Terms::default().fail_under)?;
            let place = if point.in_place { "in place" } else { "out of place" };
            Some(format!("{} {} {place} {}", point.collective, Short(point.size), percent(ratio)))
        })
        .collect();
    if !dips.is_empty() && decides.is_some_and(|d| d.ratio >= Terms::default().fail_under) {
        out.push(format!("why single sizes fell behind: {}", dips.join(", ")));
    }
    out.extend(evidence.not_measured.iter().cloned());
    out
}

fn settle(
    evidence: &Evidence,
    outcome: Outcome,
    decides: Option<&Decides<'_>>,
    judged: &[Judged],
    proofs: &Three,
) -> Vec<String> {
    let mut out = Vec::new();
    if outcome == Outcome::Fail {
        return out;
    }
    let Some(d) = decides else {
        if evidence.failures.is_empty() {
            let knee = judged.iter().any(|j| j.ceiling.is_some());
            let alone = evidence.ranks.len() < 2;
            out.push(if alone {
                "two or more ranks: more GPUs, or more hosts with --listen".to_owned()
            } else if knee {
                "larger sizes: -e 256M".to_owned()
            } else {
                "state what was bought: --line-rate 100G".to_owned()
            });
        }
        return out;
    };
    let nodes = layout(evidence, d.point).nodes;
    if proofs.wire.contradicts {
        out.push("a longer run: more iterations or larger sizes, -e 256M".to_owned());
    }
    if outcome == Outcome::Inconclusive && !proofs.wire.contradicts {
        let noise = noise(evidence, Some(d));
        if noise.path_change > 0.20 || noise.ci95 > 0.05 {
            out.push("a quieter machine, or more time: --time-limit 60s".to_owned());
        }
        if nodes > 2 && wants_pairs(evidence) {
            out.push("pair probes: they tell who is slow".to_owned());
        }
        out.push("--strict if this must count as a failure".to_owned());
    }
    if nodes > 1 && d.ceiling.expected.basis == Basis::Measured {
        out.push("state what was bought: --line-rate 100G".to_owned());
    }
    out
}
