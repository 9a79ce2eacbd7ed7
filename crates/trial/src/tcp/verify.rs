//! One operation on seeded data, and the count of wrong elements.

use ncclctl_nccl::{Collective, RedOp};

use super::check;
use super::job::{Algorithm, Job};
use super::memory::{self, Memory};
use super::wires::Wires;
use crate::engine::EngineError;

/// What the output holds before the operation.
const POISON: u8 = 0xa5;

/// Fills the buffers and runs the operation. Room has been made for the job.
pub(super) fn run(
    job: &Job,
    in_place: bool,
    algorithm: &Algorithm,
    wires: &mut Wires,
    memory: &mut Memory,
) -> Result<(), EngineError> {
    if job.count == 0 {
        return Ok(());
    }
    let (bytes, _) = memory::extent(job);
    let base = if in_place { memory::in_place(job).0 } else { 0 };
    let table = if job.collective.reduces() {
        check::operand(job.reduction(), job.rank)
    } else {
        check::payload(job.dtype, job.rank)
    };
    memory.recv.fill(POISON);
    let own = if in_place { &mut memory.recv } else { &mut memory.send };
    check::fill(&mut own[base..base + bytes], &table, job.width(), 0);
    (algorithm.run)(job, wires, &mut memory.buffers(job, in_place))
}

/// Counts wrong elements of this rank's result. A rank that gets no result has none.
pub(super) fn count_wrong(job: &Job, in_place: bool, memory: &Memory) -> u64 {
    if job.count == 0 {
        return 0;
    }
    let (_, recv_bytes) = memory::extent(job);
    let base = if in_place { memory::in_place(job).1 } else { 0 };
    let result = &memory.recv[base..base + recv_bytes];
    let bytes = job.bytes();
    let moved = |block: &[u8], from: usize, first: usize| {
        check::wrong(block, &check::payload(job.dtype, from), job.dtype, first, false)
    };
    let rounded = job.op == RedOp::Avg;
    let reduced = |block: &[u8], first: usize| {
        check::wrong(block, &check::expected(job.reduction()), job.dtype, first, rounded)
    };
    let root = job.rank == job.root;
    let own_block = job.rank * job.count;
    match job.collective {
        Collective::AllReduce => reduced(result, 0),
        Collective::Reduce if root => reduced(result, 0),
        Collective::ReduceScatter => reduced(result, own_block),
        Collective::Broadcast => moved(result, job.root, 0),
        Collective::Scatter => moved(result, job.root, own_block),
        Collective::SendRecv => moved(result, job.previous(), 0),
        Collective::AllGather => {
            result.chunks_exact(bytes).enumerate().map(|(from, b)| moved(b, from, 0)).sum()
        }
        Collective::Gather if root => {
            result.chunks_exact(bytes).enumerate().map(|(from, b)| moved(b, from, 0)).sum()
        }
        Collective::AllToAll => {
            result.chunks_exact(bytes).enumerate().map(|(from, b)| moved(b, from, own_block)).sum()
        }
        Collective::Reduce | Collective::Gather => 0,
    }
}
