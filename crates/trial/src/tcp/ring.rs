//! Plans of the ring: each rank only ever sends to the next and receives from the one before.
//!
//! The buffer is worked through in segments, so that a block is still in the cache when it comes
//! round. Streams do not stop between segments: items of the next one follow at once.

use std::ops::Range;

use super::buffers::Place;
use super::flow::{In, Out, Plan, Reduce};
use super::job::{Job, part};

/// Reduce-scatter, then all-gather, segment by segment.
pub(super) struct AllReduce(pub(super) Job);
/// Partial results travel round; the last rank to add is the owner.
pub(super) struct ReduceScatter(pub(super) Job);
/// Blocks travel round.
pub(super) struct AllGather(pub(super) Job);

/// Blocks of partial results that may be on their way through a rank.
const SLOTS: usize = 4;

/// `rank - back` on a ring.
fn behind(job: &Job, back: usize) -> usize {
    (job.rank + job.ranks - back % job.ranks) % job.ranks
}

impl AllReduce {
    /// Segment and step of an item.
    fn place(&self, item: usize) -> Option<(usize, usize)> {
        let steps = 2 * (self.0.ranks - 1);
        let (segment, step) = (item / steps, item % steps);
        (segment * self.segment() < self.0.count).then_some((segment, step))
    }

    fn segment(&self) -> usize {
        self.0.segment_block() * self.0.ranks
    }

    /// Byte range of a block of a segment.
    fn block(&self, segment: usize, block: usize) -> Range<usize> {
        let start = segment * self.segment();
        let count = (self.0.count - start).min(self.segment());
        let range = part(count, self.0.ranks, block);
        let width = self.0.width();
        (start + range.start) * width..(start + range.end) * width
    }
}

impl Plan for AllReduce {
    fn out(&self, item: usize) -> Option<Out> {
        let (segment, step) = self.place(item)?;
        let range = self.block(segment, behind(&self.0, step));
        let first = step == 0;
        Some(Out {
            place: if first { Place::Send } else { Place::Recv },
            at: range.start,
            bytes: range.len(),
            after: (!first).then(|| item - 1),
        })
    }

    fn input(&self, item: usize) -> Option<In> {
        let (segment, step) = self.place(item)?;
        let range = self.block(segment, behind(&self.0, step + 1));
        let last = self.0.ranks - 2;
        let reduce = (step <= last).then_some(Reduce { own_at: range.start, last: step == last });
        Some(In { place: Place::Recv, at: range.start, bytes: range.len(), reduce, after_sent: 0 })
    }
}

/// Segment, step, and byte range inside every block, for collectives made of blocks.
fn blockwise(job: &Job, item: usize) -> Option<(usize, usize, Range<usize>)> {
    let steps = job.ranks - 1;
    let (segment, step) = (item / steps, item % steps);
    let start = segment * job.segment_block();
    let end = (start + job.segment_block()).min(job.count);
    (start < job.count).then(|| (segment, step, start * job.width()..end * job.width()))
}

impl Plan for ReduceScatter {
    fn out(&self, item: usize) -> Option<Out> {
        let job = &self.0;
        let (_, step, range) = blockwise(job, item)?;
        let (place, at) = if step == 0 {
            (Place::Send, behind(job, 1) * job.bytes() + range.start)
        } else {
            (Place::Temp, slot(job, item - 1))
        };
        Some(Out { place, at, bytes: range.len(), after: (step > 0).then(|| item - 1) })
    }

    fn input(&self, item: usize) -> Option<In> {
        let job = &self.0;
        let (_, step, range) = blockwise(job, item)?;
        let last = step == job.ranks - 2;
        let (place, at) =
            if last { (Place::Recv, range.start) } else { (Place::Temp, slot(job, item)) };
        let own_at = behind(job, step + 2) * job.bytes() + range.start;
        // what came SLOTS items ago left this slot as the item after it
        let after_sent = if last { 0 } else { sent_before(item) };
        Some(In {
            place,
            at,
            bytes: range.len(),
            reduce: Some(Reduce { own_at, last }),
            after_sent,
        })
    }
}

/// Offset of the temporary slot that incoming item `item` goes to.
pub(super) fn slot(job: &Job, item: usize) -> usize {
    item % SLOTS * job.segment_block() * job.width()
}

/// Items that must have left before incoming item `item` may overwrite its slot.
pub(super) fn sent_before(item: usize) -> usize {
    (item + 2).saturating_sub(SLOTS)
}

/// Temporary memory that a reduce-scatter or a chain of reductions needs, bytes.
pub(super) fn temp_bytes(job: &Job) -> usize {
    SLOTS * job.segment_block() * job.width()
}

impl Plan for AllGather {
    fn out(&self, item: usize) -> Option<Out> {
        let job = &self.0;
        let (_, step, range) = blockwise(job, item)?;
        let (place, at) = if step == 0 {
            (Place::Send, range.start)
        } else {
            (Place::Recv, behind(job, step) * job.bytes() + range.start)
        };
        Some(Out { place, at, bytes: range.len(), after: (step > 0).then(|| item - 1) })
    }

    fn input(&self, item: usize) -> Option<In> {
        let job = &self.0;
        let (_, step, range) = blockwise(job, item)?;
        let at = behind(job, step + 1) * job.bytes() + range.start;
        Some(In { place: Place::Recv, at, bytes: range.len(), reduce: None, after_sent: 0 })
    }
}
