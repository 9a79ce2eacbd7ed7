//! What is to be expected of a job, and how a result stands against it.

use super::ceiling::{Ceiling, Limit, ceiling};
use super::gpu::{Gpu, Reach};
use super::published::{self, Shape};
use super::traffic::{Algorithm, Layout};
use crate::collective::Collective;

pub use super::ceiling::Nics;

/// A collective on given hardware. `None` is not known, never none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job<'a> {
    /// GPU model.
    pub gpu: &'a Gpu,
    /// Nodes.
    pub nodes: usize,
    /// GPUs per node that take part.
    pub gpus_per_node: usize,
    /// NICs per node.
    pub nics: Option<Nics>,
    /// Collective.
    pub collective: Collective,
    /// Algorithm that was used.
    pub algorithm: Option<Algorithm>,
    /// Whether the user forced it; published figures are of what NCCL takes by itself.
    pub forced: bool,
    /// Whether NVLink joins the nodes (GB200 and the like); only asked where the GPU can.
    pub nvlink_between: Option<bool>,
    /// Bytes of the size column.
    pub size: Option<u64>,
}

/// What is to be expected. Between `low` and `high` lies what is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// A result passes against this, GB/s of bus bandwidth.
    pub high: f64,
    /// A result fails against this; 0 where nothing can be said.
    pub low: f64,
    /// Under this size latency takes too much of the time to judge bandwidth, bytes.
    pub knee: u64,
    /// Platform whose published figure outranked the model.
    pub published: Option<&'static str>,
    /// Algorithm of `high`.
    pub algorithm: Algorithm,
    /// Limits of that algorithm, lowest first.
    pub limits: Vec<Limit>,
}

/// How a result stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// At or over the threshold.
    Pass,
    /// Not enough is known, or between the bounds; why.
    Inconclusive(&'static str),
    /// Under the lower bound.
    Fail,
}

/// Time that a collective takes beyond moving its bytes, microseconds: launch, channel set-up and
/// the ramp of the pipeline on one node. Fitted so that every published curve has reached 90% of
/// its plateau at its knee; NCCL's own base latencies (tuning.cc: 6.6 to 25 us) are far less.
const RAMP_US: f64 = 300.0;

/// And for each further rank of a job over several nodes: its hop, microseconds.
const HOP_US: f64 = 3.0;

/// GPUs without peer access go through host memory, and Intel's PCIe charges 1.2: this much less is
/// still healthy where nothing is known of the host.
const PCIE_SPREAD: f64 = 2.4;

impl Expectation {
    /// Holds a result against it.
    pub fn standing(
        &self,
        size: Option<u64>,
        busbw: f64,
        threshold: f64,
        fail_under: f64,
    ) -> Standing {
        match size {
            Some(s) if s < self.knee => return Standing::Inconclusive("under the knee"),
            _ => {}
        }
        if busbw >= threshold * self.high {
            return Standing::Pass;
        }
        if size.is_none() {
            return Standing::Inconclusive("size not known: it may be an average over small sizes");
        }
        if self.low <= 0.0 {
            return Standing::Inconclusive("what joins the nodes is not known");
        }
        if busbw < fail_under * self.low {
            return Standing::Fail;
        }
        if self.low < 0.95 * self.high {
            Standing::Inconclusive("the algorithm or the way is not known")
        } else {
            Standing::Inconclusive("between the bounds")
        }
    }
}

/// What is to be expected of a job, or `None` where its network is not known.
pub fn expected(job: &Job<'_>) -> Option<Expectation> {
    let layout = Layout { ranks: job.nodes * job.gpus_per_node, nodes: job.nodes };
    if layout.ranks < 2 || job.gpus_per_node == 0 {
        return None;
    }
    let domain = job.gpu.reach == Reach::Domain && layout.ranks <= 72;
    let one_domain = job.nodes == 1 || (domain && job.nvlink_between != Some(false));
    let way_known = job.nodes == 1 || job.nvlink_between.is_some() || !domain;

    let mut ceilings: Vec<Ceiling> = Vec::new();
    let mut add = |algorithms: &[Algorithm], layout: Layout, nics: Option<&Nics>| {
        for a in algorithms {
            let c = ceiling(job.collective, *a, layout, Some(job.gpu), nics);
            if c.busbw > 0.0 {
                ceilings.push(c);
            }
        }
    };
    let given = job.algorithm.map(|a| vec![a]);
    if one_domain {
        let together = Layout { ranks: layout.ranks, nodes: 1 };
        let usual = in_one_domain(job.collective, job.gpu);
        add(given.as_deref().unwrap_or(&usual), together, None);
    }
    if job.nodes > 1
        && !(one_domain && way_known)
        && let Some(nics) = &job.nics
    {
        let usual = between_nodes(job.collective, job.gpu, job.gpus_per_node);
        add(given.as_deref().unwrap_or(&usual), layout, Some(nics));
    }
    let best = ceilings.iter().max_by(|a, b| a.busbw.total_cmp(&b.busbw))?.clone();
    let worst = ceilings.iter().map(|c| c.busbw).fold(f64::INFINITY, f64::min);
    let way_missing = job.nodes > 1 && job.nics.is_none() && !way_known;
    let mut low = if way_missing { 0.0 } else { worst };
    if best.limits.iter().any(|l| l.what == "PCIe") {
        low = low.min(best.busbw / PCIE_SPREAD);
    }
    let ramp = if job.nodes > 1 { HOP_US * layout.ranks as f64 } else { 0.0 } + RAMP_US;
    let algbw = best.busbw / job.collective.busbw_factor(layout.ranks);
    // at nine times latency times rate, latency is a tenth of the time
    let knee = (9.0 * algbw * 1e3 * ramp) as u64;
    let mut expectation = Expectation {
        high: best.busbw,
        low,
        knee,
        published: None,
        algorithm: best.algorithm,
        limits: best.limits,
    };
    let shape = Shape {
        gpu: job.gpu,
        nodes: job.nodes,
        gpus_per_node: job.gpus_per_node,
        nics: job.nics.filter(|_| job.nodes > 1).map(|n| (n.count, n.gbit)),
    };
    if let Some(size) = job.size.filter(|_| !job.forced)
        && let Some(range) = published::lookup(shape, job.collective, size)
    {
        expectation.high = range.high;
        expectation.low = expectation.low.min(range.low);
        expectation.published = Some(range.platform);
    }
    Some(expectation)
}

fn in_one_domain(collective: Collective, gpu: &Gpu) -> Vec<Algorithm> {
    let mut out = vec![Algorithm::Ring];
    if collective == Collective::AllReduce && gpu.nvls_share.is_some() {
        out.push(Algorithm::Nvls);
    }
    out
}

fn between_nodes(collective: Collective, gpu: &Gpu, gpus_per_node: usize) -> Vec<Algorithm> {
    let mut out = vec![Algorithm::Ring];
    match collective {
        Collective::AllReduce => {
            out.push(Algorithm::Tree);
            if gpu.nvls_tree.is_some() && gpus_per_node > 2 {
                out.push(Algorithm::NvlsTree);
            }
        }
        Collective::AllToAll => out = vec![Algorithm::Direct],
        _ => {}
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bandwidth::link::Link;
    use crate::bandwidth::published::{Kind, Row, rows};

    fn job(row: &Row) -> Option<Job<'static>> {
        let note = row.note.to_lowercase();
        let platform = row.platform.to_lowercase();
        let nics = row.nics.zip(row.nic_gbit).map(|(count, gbit)| {
            let link = if platform.contains("aws") {
                Link::Cloud
            } else if note.contains("roce") || platform.contains("roce") || platform.contains("oci")
            {
                Link::Roce { mtu: 4200 }
            } else {
                Link::InfiniBand
            };
            Nics { count, gbit, link }
        });
        Some(Job {
            gpu: Gpu::from_name(row.gpu)?,
            nodes: row.nodes?,
            gpus_per_node: row.gpus_per_node?,
            nics,
            collective: row.collective?,
            algorithm: None,
            forced: false,
            nvlink_between: None,
            size: row.size,
        })
    }

    fn standing(row: &Row, job: Option<&Job<'_>>, busbw: f64) -> Standing {
        match job.and_then(expected) {
            None => Standing::Inconclusive("the hardware is not known"),
            Some(e) => e.standing(row.size, busbw, 0.90, 0.70),
        }
    }

    #[test]
    fn no_measured_row_fails_and_none_passes_halved() {
        let mut passed = 0;
        for row in rows().iter().filter(|r| r.kind == Kind::Measured) {
            let busbw = row.busbw.unwrap();
            let job = job(row);
            let whole = standing(row, job.as_ref(), busbw);
            assert_ne!(whole, Standing::Fail, "{row:?} {:?}", job.as_ref().and_then(expected));
            passed += usize::from(whole == Standing::Pass);
            let half = standing(row, job.as_ref(), busbw / 2.0);
            assert_ne!(
                half,
                Standing::Pass,
                "half of {row:?} {:?}",
                job.as_ref().and_then(expected)
            );
        }
        println!("{passed} pass");
        assert!(passed >= 40, "only {passed} pass");
    }

    /// Held-back rows are of the same kind: the same must hold when no figure of the platform is
    /// known.
    #[test]
    fn the_model_alone_fails_no_row_either() {
        let mut passed = 0;
        let mut failed_halved = 0;
        for row in rows().iter().filter(|r| r.kind == Kind::Measured) {
            let busbw = row.busbw.unwrap();
            let unpublished = job(row).map(|j| Job { size: None, ..j });
            let whole = standing(row, unpublished.as_ref(), busbw);
            assert_ne!(
                whole,
                Standing::Fail,
                "{row:?} {:?}",
                unpublished.as_ref().and_then(expected)
            );
            passed += usize::from(whole == Standing::Pass);
            let half = standing(row, unpublished.as_ref(), busbw / 2.0);
            assert_ne!(
                half,
                Standing::Pass,
                "half of {row:?} {:?}",
                unpublished.as_ref().and_then(expected)
            );
            failed_halved += usize::from(half == Standing::Fail);
        }
        println!("{passed} pass, {failed_halved} fail when halved");
        assert!(passed >= 25 && failed_halved >= 25, "{passed} pass, {failed_halved} halved fail");
    }

    #[test]
    fn a_stated_algorithm_leaves_no_range() {
        let gpu = Gpu::from_name("H100").unwrap();
        let nics = Some(Nics { count: 8, gbit: 400.0, link: Link::InfiniBand });
        let e = expected(&Job {
            gpu,
            nodes: 4,
            gpus_per_node: 8,
            nics,
            collective: Collective::AllReduce,
            algorithm: Some(Algorithm::Ring),
            forced: true,
            nvlink_between: None,
            size: Some(8 << 30),
        })
        .unwrap();
        assert!((e.high - 384.0).abs() < 0.1 && (e.low - e.high).abs() < 1e-9, "{e:?}");
        assert_eq!(e.standing(Some(8 << 30), 120.0, 0.9, 0.7), Standing::Fail);
    }
}
