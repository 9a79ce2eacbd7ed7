//! One operation on seeded data, and the count of wrong elements.

use ncclctl_nccl::{Collective, RedOp};

use super::check;
use super::job::{Algorithm, Job};
use super::memory::{self, Memory};
use super::wires::Wires;
use crate::engine::EngineError;

/// What the output holds before the operation.
const POISON: u8 = 0xa5;

/// Fills, runs, counts. Room has been made for the job.
pub(super) fn run(
    job: &Job,
    in_place: bool,
    algorithm: &Algorithm,
    wires: &mut Wires,
    memory: &mut Memory,
) -> Result<u64, EngineError> {
    if job.count == 0 {
        return Ok(0);
    }
    let (send_bytes, recv_bytes) = memory::extent(job);
    let (send_base, recv_base) = if in_place { memory::in_place(job) } else { (0, 0) };
    let table = if job.collective.reduces() {
        check::operand(job.reduction(), job.rank)
    } else {
        check::payload(job.dtype, job.rank)
    };
    memory.recv.fill(POISON);
    let own = if in_place { &mut memory.recv } else { &mut memory.send };
    check::fill(&mut own[send_base..send_base + send_bytes], &table, job.width(), 0);

    let mut buffers = memory.buffers(job, in_place);
    (algorithm.run)(job, wires, &mut buffers)?;

    let result = &memory.recv[recv_base..recv_base + recv_bytes];
    Ok(count_wrong(job, result))
}

fn count_wrong(job: &Job, result: &[u8]) -> u64 {
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
