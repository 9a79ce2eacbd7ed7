//! The ceiling of one collective by one algorithm: the lowest of network, NVLink or PCIe, and what
//! NCCL's tuning model expects.

use super::gpu::{Gpu, Reach};
use super::link::Link;
use super::traffic::{Algorithm, Layout, node_bytes};
use crate::collective::Collective;

/// NICs of a node that carry traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nics {
    /// How many.
    pub count: usize,
    /// Line rate of one, Gbit/s.
    pub gbit: f64,
    /// What they speak.
    pub link: Link,
}

/// One upper limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// What limits.
    pub what: &'static str,
    /// Bus bandwidth that it allows, GB/s.
    pub busbw: f64,
}

/// Ceiling of one algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The lowest limit, GB/s of bus bandwidth.
    pub busbw: f64,
    /// All limits, lowest first.
    pub limits: Vec<Limit>,
}

/// Rates per channel that NCCL's search tries between nodes, GB/s; what a NIC gives is rounded down
/// to one of them (2.30.7 `src/graph/search.cc`, sm90 list joined with the one from sm100 on).
const SEARCHED: &[f64] = &[
    96.0, 86.0, 80.0, 48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5, 15.0, 12.0, 6.0, 3.0,
    2.4, 1.2, 0.24, 0.12,
];

/// Correction of trees in NCCL's model (2.30.7 `src/graph/tuning.cc`).
const TREE: f64 = 0.92;
/// Correction of PAT.
const PAT: f64 = 0.75;
/// Channels of NVLSTree on an 8-GPU board, one a NIC.
const HEADS: f64 = 8.0;

impl Nics {
    /// Payload rate of all of them, GB/s.
    pub fn payload(&self) -> f64 {
        self.count as f64 * self.gbit / 8.0 * self.link.payload_share()
    }

    /// What NCCL's search makes of them, GB/s: each NIC rounded down to a rate that it tries.
    pub fn searched(&self) -> f64 {
        let one = self.gbit / 8.0;
        self.count as f64 * SEARCHED.iter().copied().find(|s| *s <= one).unwrap_or(one)
    }
}

/// Ceiling of a collective by one algorithm. `nics` is `None` where all ranks share one NVLink
/// domain or node; `gpu` is `None` for engines without GPUs, which only the network limits.
pub fn ceiling(
    collective: Collective,
    algorithm: Algorithm,
    layout: Layout,
    gpu: Option<&Gpu>,
    nics: Option<&Nics>,
) -> Ceiling {
    let n = layout.ranks as f64;
    let g = layout.per_node();
    let factor = collective.busbw_factor(layout.ranks);
    let mut limits = Vec::new();
    if let Some(nics) = nics.filter(|_| layout.nodes > 1) {
        let bytes = node_bytes(collective, algorithm, layout);
        let bytes = match collective {
            // each GPU has its share of the NICs, and these use one GPU's share only
            Collective::SendRecv => g,
            Collective::Gather | Collective::Scatter => g * bytes.out.max(bytes.inward),
            _ => bytes.out.max(bytes.inward),
        };
        limits.push(Limit {
            what: "NICs, line rate times payload share",
            busbw: nics.payload() * factor / bytes,
        });
        if gpu.is_some() && algorithm == Algorithm::Ring {
            limits.push(Limit {
                what: "NCCL's model of a ring over these NICs",
                busbw: nics.searched() * factor / bytes,
            });
        }
    }
    if let Some(gpu) = gpu {
        in_node(collective, algorithm, layout, gpu, nics.is_some(), &mut limits);
    }
    if algorithm == Algorithm::Tree && layout.nodes > 1 {
        let lowest = lowest(&limits);
        limits.push(Limit { what: "NCCL's model of a tree", busbw: TREE * lowest });
    }
    if algorithm == Algorithm::Pat {
        let lowest = lowest(&limits);
        limits.push(Limit { what: "NCCL's model of PAT", busbw: PAT * lowest });
    }
    limits.retain(|l| l.busbw.is_finite() && l.busbw > 0.0 && n >= 2.0);
    limits.sort_by(|a, b| a.busbw.total_cmp(&b.busbw));
    Ceiling { algorithm, busbw: limits.first().map_or(0.0, |l| l.busbw), limits }
}

fn lowest(limits: &[Limit]) -> f64 {
    limits.iter().map(|l| l.busbw).fold(f64::INFINITY, f64::min)
}

/// Limits by NVLink or PCIe, and NCCL's model of what the switch can do.
fn in_node(
    collective: Collective,
    algorithm: Algorithm,
    layout: Layout,
    gpu: &Gpu,
    network: bool,
    limits: &mut Vec<Limit>,
) {
    let n = layout.ranks as f64;
    let g = layout.per_node();
    let several = layout.nodes > 1 && network;
    // a domain over several nodes is one node to NVLink
    let together = if several { layout.per_node() as usize } else { layout.ranks };
    let v = gpu.ring_in_node(together);
    if together < 2 {
        return;
    }
    let nvlink = gpu.reach != Reach::None && v > gpu.pcie;
    let what = if nvlink { "NVLink" } else { "PCIe" };
    let share = 2.0 * (n - 1.0) / n;
    let switch = gpu.nvls_share.is_some();
    let busbw = match (collective, algorithm) {
        (Collective::AllReduce, Algorithm::Ring) if several => v * g / (g - 1.0),
        (Collective::AllReduce, Algorithm::Tree | Algorithm::CollnetChain) => v * (n - 1.0) / n,
        (Collective::AllReduce, Algorithm::NvlsTree | Algorithm::Nvls) if several && switch => {
            gpu.nvlink_raw * share * g / (g + 1.0)
        }
        (Collective::AllReduce, Algorithm::CollnetDirect) if switch => {
            gpu.nvlink_raw * share * g / (2.0 * (g - 1.0))
        }
        (Collective::AllReduce, Algorithm::Nvls) => gpu.nvls(together).unwrap_or(v),
        (Collective::AllGather | Collective::ReduceScatter, Algorithm::Nvls) if switch => {
            gpu.nvlink_raw * (g - 1.0) / g
        }
        _ => v,
    };
    limits.push(Limit { what, busbw });
    if several
        && matches!(algorithm, Algorithm::NvlsTree)
        && let Some((two, more)) = gpu.nvls_tree
    {
        let per_channel = if layout.nodes == 2 { two } else { more };
        limits.push(Limit { what: "NCCL's model of NVLSTree", busbw: HEADS * per_channel });
    }
    if several
        && algorithm == Algorithm::Nvls
        && let Some(model) = gpu.nvls(together)
    {
        limits.push(Limit { what: "NCCL's model of NVLS", busbw: model });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busbw(
        c: Collective,
        a: Algorithm,
        (nodes, g): (usize, usize),
        gpu: &str,
        nics: Option<(usize, f64)>,
    ) -> f64 {
        let nics = nics.map(|(count, gbit)| Nics { count, gbit, link: Link::InfiniBand });
        let layout = Layout { ranks: nodes * g, nodes };
        ceiling(c, a, layout, Gpu::from_name(gpu), nics.as_ref()).busbw
    }

    #[test]
    fn worked_figures_of_the_model() {
        use Algorithm::{Nvls, NvlsTree, Ring, Tree};
        use Collective::AllReduce;
        for (a, shape, gpu, nics, want) in [
            (Ring, (1, 8), "H100", None, 370.0),
            (Nvls, (1, 8), "H100", None, 476.0),
            (NvlsTree, (2, 8), "H100", Some((8, 400.0)), 461.0),
            (NvlsTree, (4, 8), "H100", Some((8, 400.0)), 364.0),
            (Ring, (2, 8), "A100", Some((8, 200.0)), 192.0),
            (Nvls, (1, 8), "B200", None, 932.0),
            (Ring, (1, 8), "A100", None, 240.0),
            (Ring, (1, 8), "L40S", None, 24.0),
            (Ring, (1, 2), "A40", None, 48.0),
            (Ring, (1, 4), "A40", None, 24.0),
            (Tree, (2, 8), "A100", Some((4, 100.0)), 0.92 * 93.75 * 0.9937),
        ] {
            let got = busbw(AllReduce, a, shape, gpu, nics);
            assert!((got - want).abs() < 1.0, "{a} {shape:?} {gpu}: {got} != {want}");
        }
    }

    #[test]
    fn a_model_is_never_above_the_physical_limit() {
        for gpu in super::super::gpu::GPUS {
            for a in [Algorithm::Ring, Algorithm::Tree, Algorithm::NvlsTree, Algorithm::Nvls] {
                for nodes in 1..6 {
                    for c in Collective::ALL {
                        let layout = Layout { ranks: nodes * 8, nodes };
                        let nics = Nics { count: 8, gbit: 400.0, link: Link::InfiniBand };
                        let nics = (nodes > 1).then_some(nics);
                        let got = ceiling(c, a, layout, Some(gpu), nics.as_ref());
                        assert!(
                            got.busbw > 0.0 && got.busbw <= 1400.0,
                            "{c} {a} {nodes} {}",
                            gpu.name
                        );
                        assert!(got.limits.is_sorted_by(|x, y| x.busbw <= y.busbw));
                    }
                }
            }
        }
    }
}
