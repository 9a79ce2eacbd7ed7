//! A barrier by dissemination: after round k, each rank knows of 2^(k+1) others.

use super::wires::{Edges, Wires};
use crate::engine::EngineError;

fn rounds(ranks: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1usize), |d| Some(d * 2)).take_while(move |d| *d < ranks)
}

/// Links that the barrier uses.
pub(super) fn edges(rank: usize, ranks: usize) -> Edges {
    Edges {
        out: rounds(ranks).map(|d| (rank + d) % ranks).collect(),
        input: rounds(ranks).map(|d| (rank + ranks - d) % ranks).collect(),
    }
}

/// Returns once every rank has entered.
pub(super) fn wait(rank: usize, ranks: usize, wires: &mut Wires) -> Result<(), EngineError> {
    for d in rounds(ranks) {
        wires.send((rank + d) % ranks, &[d as u8])?;
        wires.receive((rank + ranks - d) % ranks, &mut [0])?;
    }
    Ok(())
}
