//! All-reduce by recursive doubling: log2(n) exchanges of the whole buffer.
//!
//! Where the number of ranks is no power of two, each rank above it first gives its data to one
//! below and gets the result back at the end.

use super::buffers::{Buffers, Place};
use super::job::Job;
use super::wires::{Edges, Wires};
use crate::engine::EngineError;

/// Greatest power of two that is not above `n`.
fn power(n: usize) -> usize {
    1 << n.max(1).ilog2()
}

fn partners(rank: usize, ranks: usize) -> impl Iterator<Item = usize> {
    let power = power(ranks);
    (0..power.ilog2()).map(move |bit| rank ^ (1 << bit))
}

/// Links that it uses.
pub(super) fn edges(job: &Job) -> Edges {
    let power = power(job.ranks);
    let mut peers: Vec<usize> = Vec::new();
    if job.rank >= power {
        peers.push(job.rank - power);
    } else {
        peers.extend(partners(job.rank, job.ranks));
        if job.rank + power < job.ranks {
            peers.push(job.rank + power);
        }
    }
    Edges { out: peers.clone(), input: peers }
}

/// Does it.
pub(super) fn all_reduce(
    job: &Job,
    wires: &mut Wires,
    buffers: &mut Buffers<'_>,
) -> Result<(), EngineError> {
    let bytes = job.bytes();
    let power = power(job.ranks);
    if job.rank >= power {
        wires.send(job.rank - power, buffers.read(Place::Send, 0..bytes))?;
        return wires.receive(job.rank - power, buffers.write(Place::Recv, 0..bytes));
    }
    buffers.copy_own(0, 0, bytes);
    let extra = job.rank + power;
    if extra < job.ranks {
        wires.receive(extra, &mut buffers.scratch[..bytes])?;
        buffers.accumulate(job.reduction(), Place::Recv, 0, bytes, false);
    }
    let rounds = power.ilog2();
    for (round, partner) in partners(job.rank, job.ranks).enumerate() {
        wires.send(partner, buffers.read(Place::Recv, 0..bytes))?;
        wires.receive(partner, &mut buffers.scratch[..bytes])?;
        let last = round as u32 + 1 == rounds;
        buffers.accumulate(job.reduction(), Place::Recv, 0, bytes, last);
    }
    if extra < job.ranks {
        wires.send(extra, buffers.read(Place::Recv, 0..bytes))?;
    }
    Ok(())
}
