//! Binomial trees, for what is too small to be worth a pipeline.

use super::buffers::{Buffers, Place};
use super::job::Job;
use super::wires::{Edges, Wires};
use crate::engine::EngineError;

/// Parent and children in the order that starts with the root. Children come nearest last, so the
/// largest subtree is served first.
fn family(job: &Job) -> (Option<usize>, Vec<usize>) {
    let place = job.root_distance();
    let mut children = Vec::new();
    let mut bit = 1;
    while bit < job.ranks {
        if place & bit != 0 {
            children.reverse();
            return (Some(job.at_place(place - bit)), children);
        }
        if place + bit < job.ranks {
            children.push(job.at_place(place + bit));
        }
        bit <<= 1;
    }
    children.reverse();
    (None, children)
}

/// Links for data that flows down.
pub(super) fn edges_down(job: &Job) -> Edges {
    let (parent, children) = family(job);
    Edges { out: children, input: parent.into_iter().collect() }
}

/// Links for data that flows up.
pub(super) fn edges_up(job: &Job) -> Edges {
    let Edges { out, input } = edges_down(job);
    Edges { out: input, input: out }
}

/// The root's data to every rank.
pub(super) fn broadcast(
    job: &Job,
    wires: &mut Wires,
    buffers: &mut Buffers<'_>,
) -> Result<(), EngineError> {
    let (parent, children) = family(job);
    let bytes = job.bytes();
    match parent {
        Some(parent) => wires.receive(parent, buffers.write(Place::Recv, 0..bytes))?,
        None => buffers.copy_own(0, 0, bytes),
    }
    for child in children {
        wires.send(child, buffers.read(Place::Recv, 0..bytes))?;
    }
    Ok(())
}

/// Everything combined at the root. Needs temporary memory of the buffer's size.
pub(super) fn reduce(
    job: &Job,
    wires: &mut Wires,
    buffers: &mut Buffers<'_>,
) -> Result<(), EngineError> {
    let (parent, mut children) = family(job);
    children.reverse();
    let bytes = job.bytes();
    if job.ranks == 1 {
        buffers.copy_own(0, 0, bytes);
        return Ok(());
    }
    buffers.load_temp(0, 0, bytes);
    for (i, child) in children.iter().enumerate() {
        wires.receive(*child, &mut buffers.scratch[..bytes])?;
        let last = parent.is_none() && i + 1 == children.len();
        buffers.accumulate(job.reduction(), Place::Temp, 0, bytes, last);
    }
    match parent {
        Some(parent) => wires.send(parent, buffers.read(Place::Temp, 0..bytes)),
        None => {
            buffers.store_temp(0, 0, bytes);
            Ok(())
        }
    }
}
