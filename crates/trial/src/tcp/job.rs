//! One case as one thread of one rank sees it.

use ncclctl_nccl::{Collective, DataType, RedOp};

use super::buffers::Buffers;
use super::kernel::Reduction;
use super::wires::{Edges, Wires};
use crate::engine::EngineError;

/// What to do, in elements of this thread's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) rank: usize,
    pub(super) ranks: usize,
    pub(super) collective: Collective,
    pub(super) dtype: DataType,
    pub(super) op: RedOp,
    pub(super) root: usize,
    /// Elements: the whole buffer, or one rank's block where the collective is made of blocks.
    pub(super) count: usize,
    /// Bytes in the size column, over all threads: what algorithms are chosen by.
    pub(super) size: u64,
    /// Bytes of a segment's block, the same on every rank (see [`super::block`]).
    pub(super) block: usize,
}

/// A way to do a collective.
pub(super) struct Algorithm {
    /// Name for the evidence.
    pub(super) name: &'static str,
    /// Links it needs.
    pub(super) edges: fn(&Job) -> Edges,
    /// Does it.
    pub(super) run: fn(&Job, &mut Wires, &mut Buffers<'_>) -> Result<(), EngineError>,
}

impl Job {
    /// Bytes per element.
    pub(super) fn width(&self) -> usize {
        self.dtype.size()
    }

    /// Bytes of `count` elements.
    pub(super) fn bytes(&self) -> usize {
        self.count * self.width()
    }

    pub(super) fn next(&self) -> usize {
        (self.rank + 1) % self.ranks
    }

    pub(super) fn previous(&self) -> usize {
        (self.rank + self.ranks - 1) % self.ranks
    }

    /// This rank's place in an order that starts with the root.
    pub(super) fn root_distance(&self) -> usize {
        (self.rank + self.ranks - self.root) % self.ranks
    }

    /// The rank at a place in the order that starts with the root.
    pub(super) fn at_place(&self, place: usize) -> usize {
        (self.root + place) % self.ranks
    }

    pub(super) fn reduction(&self) -> Reduction {
        Reduction { dtype: self.dtype, op: self.op, ranks: self.ranks }
    }

    /// Links of the ring.
    pub(super) fn ring_edges(&self) -> Edges {
        if self.ranks < 2 {
            return Edges::default();
        }
        Edges { out: vec![self.next()], input: vec![self.previous()] }
    }

    /// Elements of a block of a segment: how much is in flight between two ranks before the
    /// stream turns to the next part of the buffer.
    pub(super) fn segment_block(&self) -> usize {
        self.block / self.width()
    }
}

/// Bounds of part `index` of `count` elements cut into `parts` nearly equal parts.
pub(super) fn part(count: usize, parts: usize, index: usize) -> std::ops::Range<usize> {
    let (base, more) = (count / parts, count % parts);
    let start = |i: usize| i * base + i.min(more);
    start(index)..start(index + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_tile_the_whole(count in 0usize..10_000, parts in 1usize..40) {
            let mut at = 0;
            for i in 0..parts {
                let p = part(count, parts, i);
                prop_assert_eq!(p.start, at);
                prop_assert!(p.len().abs_diff(count / parts) <= 1);
                at = p.end;
            }
            prop_assert_eq!(at, count);
        }
    }
}
