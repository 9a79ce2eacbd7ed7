//! What is to be expected where GPUs do the work: the bandwidth model over the hardware that the
//! trial saw.

use std::collections::BTreeSet;

use ncclctl_nccl::bandwidth::{Algorithm, Gpu, Job, Layout, Link, Nics, expected};
use ncclctl_nccl::size::Short;

use super::ceiling::{Ceiling, transport};
use super::{Basis, Expected, Limit};
use crate::evidence::{Evidence, Point, Transport};
use crate::figures::gbs;
use crate::paths;

/// The ceiling by the model. `None` where it does not apply: another engine, a GPU that is not
/// known, several ranks on one GPU, or NICs whose rate nobody vouches for.
pub(super) fn ceiling(evidence: &Evidence, point: &Point, layout: Layout) -> Option<Ceiling> {
    if evidence.engine != "nccl" {
        return None;
    }
    let ranks = evidence.ranks.get(..point.ranks)?;
    let names: BTreeSet<&str> = ranks.iter().filter_map(|r| r.gpu.as_deref()).collect();
    let gpu = Gpu::from_name(names.first()?)?;
    if !names.iter().all(|n| Gpu::from_name(n) == Some(gpu)) || shares_a_gpu(evidence, point) {
        return None;
    }
    let between = transport(evidence);
    let nics = if layout.nodes > 1 { nics(evidence, between) } else { None };
    let by_nvlink = between.map(|t| t == Transport::Nvlink);
    if layout.nodes > 1 && nics.is_none() && by_nvlink != Some(true) {
        return None;
    }
    let job = Job {
        gpu,
        nodes: layout.nodes,
        gpus_per_node: layout.ranks.checked_div(layout.nodes)?,
        nics,
        collective: point.collective,
        algorithm: Algorithm::from_name(&point.algorithm),
        forced: evidence.settings.contains_key("NCCL_ALGO"),
        nvlink_between: by_nvlink,
        size: Some(point.size),
    };
    let e = expected(&job)?;
    let stated = evidence.stated_line_rate_bits.is_some() && layout.nodes > 1;
    let what = |l: &str| format!("{l} ({}, {})", gpu.name, e.algorithm);
    let mut limits: Vec<Limit> = e
        .limits
        .iter()
        .map(|l| Limit {
            what: what(l.what),
            busbw: l.busbw,
            how: format!("{} over {} node(s) of {}", e.algorithm, job.nodes, job.gpus_per_node),
        })
        .collect();
    let lowest = e.limits.first().map_or("model", |l| l.what);
    let (basis, limited_by) = match e.published {
        Some(platform) => {
            let name = format!("figure published for {platform}");
            let how = format!("at {}", Short(point.size));
            limits.push(Limit { what: name.clone(), busbw: e.high, how });
            (Basis::Published, name)
        }
        None if stated && lowest.starts_with("NICs") => (Basis::Stated, what(lowest)),
        None if lowest.starts_with("NICs") => (Basis::Nic, what(lowest)),
        None => (Basis::Model, what(lowest)),
    };
    limits.sort_by(|a, b| a.busbw.total_cmp(&b.busbw));
    Some(Ceiling {
        line: None,
        under_the_knee: (point.size < e.knee).then(|| {
            format!(
                "under the knee: from {:.0} MB on latency is less than a tenth of the time at {}",
                e.knee as f64 / 1e6,
                gbs(e.high)
            )
        }),
        expected: Expected { busbw: e.high, floor: e.low, basis, limited_by, limits },
    })
}

/// Whether two ranks of one host use one GPU, so that no link between GPUs sets the pace.
fn shares_a_gpu(evidence: &Evidence, point: &Point) -> bool {
    let mut seen = BTreeSet::new();
    evidence.ranks.iter().take(point.ranks).any(|r| {
        // hosts may be namespaces of one machine: its boot id tells
        let machine = evidence.hosts.get(r.host).map_or("", |h| h.boot_id.as_str());
        !seen.insert((if machine.is_empty() { r.host } else { 0 }, machine, r.gpu.as_deref()))
    })
}

/// The NICs for data of the host that has the least. Idle ones count: they should not be idle.
fn nics(evidence: &Evidence, between: Option<Transport>) -> Option<Nics> {
    let mut least: Option<Nics> = None;
    for host in 0..evidence.hosts.len() {
        let mut names: Vec<(&str, Option<u64>)> = Vec::new();
        for w in evidence.wire.iter().filter(|w| w.host == host && w.nic != "lo") {
            if !names.iter().any(|(n, _)| *n == w.nic) {
                names.push((&w.nic, w.line_rate_bits));
            }
        }
        let sockets = !matches!(between, Some(Transport::Ib | Transport::Roce | Transport::Plugin));
        if sockets {
            let chosen: Vec<&str> = evidence
                .ranks
                .iter()
                .filter(|r| r.host == host)
                .flat_map(|r| &r.interfaces)
                .map(|i| i.name.as_str())
                .collect();
            names.retain(|(n, _)| chosen.contains(n));
        }
        let mut slowest: Option<u64> = None;
        for (_, believed) in &names {
            let bits = evidence.stated_line_rate_bits.or(*believed)?;
            slowest = Some(slowest.map_or(bits, |s| s.min(bits)));
        }
        let mtu = paths::data_mtu(evidence, host);
        let link = match between {
            Some(Transport::Ib) => Link::InfiniBand,
            Some(Transport::Roce) => Link::Roce { mtu: mtu.unwrap_or(4200) },
            Some(Transport::Plugin) => Link::Cloud,
            _ => Link::Tcp { mtu: mtu.unwrap_or(1500) },
        };
        let own = Nics { count: names.len(), gbit: slowest? as f64 / 1e9, link };
        if least.is_none_or(|l| own.payload() < l.payload()) {
            least = Some(own);
        }
    }
    least
}
