//! How many bytes an algorithm must move: out of a node, and out of a rank.
//!
//! Both the ceilings and the proof by wire counters rest on these figures.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::collective::Collective;

/// How a collective is carried out. NCCL's own names, and those of CPU engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// A ring of all ranks; also a pipelined chain, for rooted collectives.
    Ring,
    /// NCCL's double binary tree.
    Tree,
    /// NVLink SHARP in each node, trees between nodes.
    NvlsTree,
    /// NVLink SHARP; over several nodes together with reduction in the fabric.
    Nvls,
    /// Reduction in the fabric (SHARP), every GPU to every NIC.
    CollnetDirect,
    /// Reduction in the fabric (SHARP), a chain in the node.
    CollnetChain,
    /// NCCL's parallel aggregated trees, for all-gather and reduce-scatter.
    Pat,
    /// Recursive doubling: the whole buffer in each of log2(n) exchanges.
    Doubling,
    /// Recursive halving and doubling (Rabenseifner): as many bytes as a ring.
    Halving,
    /// Every rank straight to every other.
    Direct,
    /// A binomial tree for rooted collectives: log2(n) rounds of the whole buffer at the root.
    Binomial,
}

/// Ranks over nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Layout {
    /// Ranks in all.
    pub ranks: usize,
    /// Nodes; ranks are spread over them evenly and in order.
    pub nodes: usize,
}

/// Bytes through the NICs of the busiest node, per byte of the size column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeBytes {
    /// Sent.
    pub out: f64,
    /// Received.
    pub inward: f64,
}

impl Layout {
    /// Ranks per node.
    pub fn per_node(self) -> f64 {
        self.ranks as f64 / self.nodes.max(1) as f64
    }
}

impl Algorithm {
    /// Reads a name as engines and NCCL's log write it: `ring`, `RING`, `NVLSTree`,
    /// `recursive-doubling`, `COLLNET_DIRECT`, …
    pub fn from_name(name: &str) -> Option<Self> {
        let flat: String = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .collect();
        Some(match flat.as_str() {
            "ring" | "chain" | "pipeline" | "pipelinedchain" | "neighbour" => Self::Ring,
            "tree" => Self::Tree,
            "nvlstree" => Self::NvlsTree,
            "nvls" => Self::Nvls,
            "collnetdirect" | "collnet" => Self::CollnetDirect,
            "collnetchain" => Self::CollnetChain,
            "pat" => Self::Pat,
            _ if flat.contains("halving") || flat.contains("rabenseifner") => Self::Halving,
            _ if flat.contains("doubling") => Self::Doubling,
            _ if flat.contains("ring") || flat.contains("chain") => Self::Ring,
            _ if flat.contains("binomial") => Self::Binomial,
            _ if ["direct", "pairwise", "linear", "flat", "spread", "sendrecv"]
                .iter()
                .any(|w| flat.contains(w)) =>
            {
                Self::Direct
            }
            _ => return None,
        })
    }

    /// Name in NCCL's manner.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Tree => "tree",
            Self::NvlsTree => "nvlstree",
            Self::Nvls => "nvls",
            Self::CollnetDirect => "collnetdirect",
            Self::CollnetChain => "collnetchain",
            Self::Pat => "pat",
            Self::Doubling => "recursive doubling",
            Self::Halving => "recursive halving",
            Self::Direct => "direct",
            Self::Binomial => "binomial tree",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn rounds(n: f64) -> f64 {
    n.max(1.0).log2().ceil()
}

/// Bytes through the NICs of the busiest node per byte of size. Zero on one node.
///
/// Trees: each of the two trees carries half of the buffer; a node that is inner in one and leaf
/// in the other sends S in all, up and down, twice over; with two nodes each tree is one edge.
pub fn node_bytes(collective: Collective, algorithm: Algorithm, layout: Layout) -> NodeBytes {
    let n = layout.ranks as f64;
    let g = layout.per_node();
    let nodes = layout.nodes;
    if nodes < 2 || layout.ranks < 2 {
        return NodeBytes { out: 0.0, inward: 0.0 };
    }
    let same = |bytes| NodeBytes { out: bytes, inward: bytes };
    let foreign = (n - g) / n;
    match collective {
        Collective::AllReduce => same(match algorithm {
            Algorithm::Tree | Algorithm::NvlsTree => {
                if nodes == 2 {
                    1.0
                } else {
                    2.0
                }
            }
            Algorithm::Nvls | Algorithm::CollnetDirect | Algorithm::CollnetChain => 1.0,
            Algorithm::Doubling => g * rounds(nodes as f64),
            Algorithm::Direct => 2.0 * g * foreign,
            _ => 2.0 * (n - 1.0) / n,
        }),
        Collective::AllGather | Collective::ReduceScatter => match algorithm {
            Algorithm::Direct | Algorithm::Doubling | Algorithm::Halving => same(g * foreign),
            Algorithm::Nvls | Algorithm::CollnetDirect | Algorithm::Pat => same(foreign),
            _ => same((n - 1.0) / n),
        },
        Collective::Broadcast | Collective::Reduce => match algorithm {
            // the root, or the node of the root, is the busiest one
            Algorithm::Binomial => {
                let bytes = rounds(nodes as f64);
                if collective == Collective::Broadcast {
                    NodeBytes { out: bytes, inward: 1.0 }
                } else {
                    NodeBytes { out: 1.0, inward: bytes }
                }
            }
            Algorithm::Direct => {
                let bytes = n - g;
                if collective == Collective::Broadcast {
                    NodeBytes { out: bytes, inward: g }
                } else {
                    NodeBytes { out: g, inward: bytes }
                }
            }
            _ => same(1.0),
        },
        Collective::AllToAll => same(g * foreign),
        Collective::SendRecv => same(1.0),
        Collective::Gather => NodeBytes { out: g / n, inward: foreign },
        Collective::Scatter => NodeBytes { out: foreign, inward: g / n },
    }
}

/// Bytes that the busiest rank sends or receives (whichever is more) per byte of size, and the
/// share of them that is reduced: the `f` in `1 / (1/path + f/reduce)`.
pub fn rank_bytes(collective: Collective, algorithm: Algorithm, ranks: usize) -> (f64, f64) {
    let n = ranks as f64;
    if ranks < 2 {
        return (0.0, 0.0);
    }
    match (collective, algorithm) {
        (Collective::AllReduce, Algorithm::Doubling) => (rounds(n), 1.0),
        (Collective::AllReduce, _) => (2.0 * (n - 1.0) / n, 0.5),
        (Collective::ReduceScatter, _) => ((n - 1.0) / n, 1.0),
        (Collective::Reduce, Algorithm::Binomial) => (rounds(n), 1.0),
        (Collective::Reduce, Algorithm::Direct) => (n - 1.0, 1.0),
        (Collective::Reduce, _) => (1.0, 1.0),
        (Collective::Broadcast, Algorithm::Binomial) => (rounds(n), 0.0),
        (Collective::Broadcast, Algorithm::Direct) => (n - 1.0, 0.0),
        (Collective::Broadcast | Collective::SendRecv, _) => (1.0, 0.0),
        (
            Collective::AllGather | Collective::AllToAll | Collective::Gather | Collective::Scatter,
            _,
        ) => ((n - 1.0) / n, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(c: Collective, a: Algorithm, nodes: usize, g: usize, b: f64) -> f64 {
        let layout = Layout { ranks: nodes * g, nodes };
        let bytes = node_bytes(c, a, layout);
        b * c.busbw_factor(layout.ranks) / bytes.out.max(bytes.inward)
    }

    #[test]
    fn worked_figures() {
        use Algorithm::{Direct, NvlsTree, Ring, Tree};
        use Collective::{AllReduce, AllToAll};
        for (c, a, nodes, g, b, want) in [
            (AllReduce, Ring, 2, 8, 400.0, 400.0),
            (AllReduce, Tree, 2, 8, 400.0, 750.0),
            (AllReduce, NvlsTree, 2, 8, 400.0, 750.0),
            (AllToAll, Direct, 2, 8, 400.0, 93.75),
            (AllReduce, Ring, 4, 8, 400.0, 400.0),
            (AllReduce, Tree, 4, 8, 400.0, 387.5),
            (AllToAll, Direct, 4, 8, 400.0, 64.6),
            (AllReduce, Ring, 16, 8, 200.0, 200.0),
            (AllToAll, Direct, 16, 8, 200.0, 26.5),
            (AllReduce, Ring, 2, 8, 12.5, 12.5),
        ] {
            let got = limit(c, a, nodes, g, b);
            assert!((got - want).abs() < 0.05, "{c} {a} {nodes}x{g}: {got} != {want}");
        }
    }

    #[test]
    fn one_node_needs_no_nic() {
        let layout = Layout { ranks: 8, nodes: 1 };
        for c in Collective::ALL {
            assert!(node_bytes(c, Algorithm::Ring, layout).out.abs() < f64::EPSILON);
        }
    }

    #[test]
    fn names_of_engines_and_logs() {
        for (name, want) in [
            ("ring", Some(Algorithm::Ring)),
            ("RING", Some(Algorithm::Ring)),
            ("NVLSTree", Some(Algorithm::NvlsTree)),
            ("NVLS_TREE", Some(Algorithm::NvlsTree)),
            ("CollNetDirect", Some(Algorithm::CollnetDirect)),
            ("recursive-doubling", Some(Algorithm::Doubling)),
            ("recursive halving and doubling", Some(Algorithm::Halving)),
            ("binomial tree", Some(Algorithm::Binomial)),
            ("pairwise", Some(Algorithm::Direct)),
            ("", None),
            ("magic", None),
        ] {
            assert_eq!(Algorithm::from_name(name), want, "{name}");
        }
    }
}
