//! Plans of the pipelined chain: from the root down the ring, or up to it.

use std::ops::Range;

use super::buffers::Place;
use super::flow::{In, Out, Plan, Reduce};
use super::job::Job;
use super::ring::{sent_before, slot};

/// The root's data passes through every rank.
pub(super) struct Broadcast(pub(super) Job);
/// Partial results pass through every rank and end at the root.
pub(super) struct ReduceTo(pub(super) Job);

fn piece(job: &Job, item: usize) -> Option<Range<usize>> {
    let start = item * job.segment_block();
    let end = (start + job.segment_block()).min(job.count);
    (start < job.count).then(|| start * job.width()..end * job.width())
}

impl Broadcast {
    /// The rank before, unless this is the root.
    pub(super) fn from(&self) -> Option<usize> {
        (self.0.root_distance() > 0).then(|| self.0.previous())
    }

    /// The rank behind, unless this is the last.
    pub(super) fn to(&self) -> Option<usize> {
        (self.0.root_distance() + 1 < self.0.ranks).then(|| self.0.next())
    }
}

impl Plan for Broadcast {
    fn out(&self, item: usize) -> Option<Out> {
        self.to()?;
        let range = piece(&self.0, item)?;
        let root = self.from().is_none();
        Some(Out {
            place: if root { Place::Send } else { Place::Recv },
            at: range.start,
            bytes: range.len(),
            after: (!root).then_some(item),
        })
    }

    fn input(&self, item: usize) -> Option<In> {
        self.from()?;
        let range = piece(&self.0, item)?;
        Some(In {
            place: Place::Recv,
            at: range.start,
            bytes: range.len(),
            reduce: None,
            after_sent: 0,
        })
    }
}

impl ReduceTo {
    /// The rank before: none for the one behind the root, where the chain starts.
    pub(super) fn from(&self) -> Option<usize> {
        (self.0.root_distance() != 1).then(|| self.0.previous())
    }

    /// The rank behind, unless this is the root.
    pub(super) fn to(&self) -> Option<usize> {
        (self.0.root_distance() != 0).then(|| self.0.next())
    }
}

impl Plan for ReduceTo {
    fn out(&self, item: usize) -> Option<Out> {
        self.to()?;
        let range = piece(&self.0, item)?;
        let start = self.from().is_none();
        let (place, at) =
            if start { (Place::Send, range.start) } else { (Place::Temp, slot(&self.0, item)) };
        Some(Out { place, at, bytes: range.len(), after: (!start).then_some(item) })
    }

    fn input(&self, item: usize) -> Option<In> {
        self.from()?;
        let range = piece(&self.0, item)?;
        let root = self.to().is_none();
        let (place, at, after_sent) = if root {
            (Place::Recv, range.start, 0)
        } else {
            // item i leaves as item i, so the slot is free one item earlier than on the ring
            (Place::Temp, slot(&self.0, item), sent_before(item).saturating_sub(1))
        };
        let reduce = Some(Reduce { own_at: range.start, last: root });
        Some(In { place, at, bytes: range.len(), reduce, after_sent })
    }
}
