//! The collectives, with the sizes, counts and bandwidth factors of nccl-tests.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::datatype::DataType;

/// A collective operation, or the neighbour send/recv pattern that nccl-tests calls `sendrecv`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Collective {
    /// Every rank ends with the reduction of all inputs.
    AllReduce,
    /// Every rank ends with the blocks of all ranks, in rank order.
    AllGather,
    /// Rank r ends with block r of the reduction.
    ReduceScatter,
    /// The root's buffer is copied to every rank.
    Broadcast,
    /// The root ends with the reduction of all inputs.
    Reduce,
    /// Rank r sends block p to rank p, for every p.
    #[serde(rename = "alltoall")]
    AllToAll,
    /// The root ends with the blocks of all ranks.
    Gather,
    /// Rank r ends with block r of the root's buffer.
    Scatter,
    /// Rank r sends to r+1 and receives from r-1.
    #[serde(rename = "sendrecv")]
    SendRecv,
}

/// How one collective uses its buffers at one size.
///
/// `size` is the figure of the size column. The other fields are elements of the data type.
/// Source: nccl-tests 2.19.6, `src/*.cu`, functions `*GetCollByteCount`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The count column: elements per rank, or per peer for alltoall.
    pub count: usize,
    /// Elements that a rank puts in.
    pub send: usize,
    /// Elements that a rank gets out.
    pub recv: usize,
    /// Bytes as printed in the size column (the asked size, rounded down to whole blocks).
    pub size: u64,
}

/// A name that is no collective.
#[derive(Debug, thiserror::Error)]
#[error("unknown collective `{0}`; expected one of {list}", list = Collective::names())]
pub struct UnknownCollective(String);

impl Collective {
    /// All collectives, in the order in which `--collective all` runs them.
    pub const ALL: [Self; 9] = [
        Self::AllReduce,
        Self::AllGather,
        Self::ReduceScatter,
        Self::Broadcast,
        Self::Reduce,
        Self::AllToAll,
        Self::Gather,
        Self::Scatter,
        Self::SendRecv,
    ];

    /// The name used on the command line, in JSON and in nccl-tests' binaries (`NAME_perf`).
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::AllToAll => "alltoall",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::SendRecv => "sendrecv",
        }
    }

    fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Whether elements are combined, so that a reduction operation applies.
    pub const fn reduces(self) -> bool {
        matches!(self, Self::AllReduce | Self::ReduceScatter | Self::Reduce)
    }

    /// Whether one rank has a special part, so that a root applies.
    pub const fn has_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce | Self::Gather | Self::Scatter)
    }

    /// Whether nccl-tests checks the in-place result (`N/A` in the table where it does not).
    pub const fn checked_in_place(self) -> bool {
        !matches!(self, Self::AllToAll | Self::SendRecv)
    }

    /// busbw = algbw × this factor, for `n` ranks. Source: nccl-tests 2.19.6 `*GetBw`.
    pub fn busbw_factor(self, n: usize) -> f64 {
        let n = n as f64;
        match self {
            Self::AllReduce => 2.0 * (n - 1.0) / n,
            Self::AllGather
            | Self::ReduceScatter
            | Self::AllToAll
            | Self::Gather
            | Self::Scatter => (n - 1.0) / n,
            Self::Broadcast | Self::Reduce | Self::SendRecv => 1.0,
        }
    }

    /// Buffer shape for a requested size in bytes over `n` ranks.
    ///
    /// Counts are rounded down so that each rank's block is a multiple of 16 bytes where the
    /// collective is made of blocks; a tiny size can therefore end as 0.
    pub fn layout(self, bytes: u64, dtype: DataType, n: usize) -> Layout {
        let width = dtype.size() as u64;
        let n64 = n.max(1) as u64;
        match self {
            Self::AllReduce | Self::Broadcast | Self::Reduce | Self::SendRecv => {
                let count = bytes / width;
                Layout {
                    count: count as usize,
                    send: count as usize,
                    recv: count as usize,
                    size: count * width,
                }
            }
            Self::AllGather
            | Self::ReduceScatter
            | Self::AllToAll
            | Self::Gather
            | Self::Scatter => {
                let block = (bytes / n64) / 16 * 16 / width;
                let (send, recv) = match self {
                    Self::AllGather | Self::Gather => (block, block * n64),
                    Self::ReduceScatter | Self::Scatter => (block * n64, block),
                    _ => (block * n64, block * n64),
                };
                Layout {
                    count: block as usize,
                    send: send as usize,
                    recv: recv as usize,
                    size: block * n64 * width,
                }
            }
        }
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Collective {
    type Err = UnknownCollective;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|c| c.name() == text || c.name().replace('_', "") == text.replace(['_', '-'], ""))
            .ok_or_else(|| UnknownCollective(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_in_every_spelling() {
        for c in Collective::ALL {
            assert_eq!(c.name().parse::<Collective>().unwrap(), c);
            assert_eq!(c.name().replace('_', "-").parse::<Collective>().unwrap(), c);
        }
        assert!("allreduces".parse::<Collective>().is_err());
    }

    #[test]
    fn layout_follows_nccl_tests() {
        let l = Collective::AllGather.layout(1000, DataType::Float32, 3);
        // 1000/3 = 333 bytes, down to 320 = 80 floats a rank
        assert_eq!((l.count, l.send, l.recv, l.size), (80, 80, 240, 960));
        let l = Collective::AllReduce.layout(1001, DataType::Float16, 3);
        assert_eq!((l.count, l.size), (500, 1000));
        assert_eq!(Collective::AllToAll.layout(8, DataType::Float32, 4).size, 0);
    }

    #[test]
    fn busbw_factors() {
        assert!((Collective::AllReduce.busbw_factor(8) - 1.75).abs() < 1e-12);
        assert!((Collective::AllGather.busbw_factor(8) - 0.875).abs() < 1e-12);
        assert!((Collective::Broadcast.busbw_factor(8) - 1.0).abs() < 1e-12);
    }
}
