//! Send/recv: every rank sends to the next and receives from the one before.

use super::super::job::{Algorithm, Job};
use super::super::pairwise::Exchange;

static NEIGHBOUR: Algorithm = Algorithm {
    name: "neighbour",
    edges: Job::ring_edges,
    run: |job, wires, buffers| {
        let bytes = job.bytes();
        if job.ranks == 1 {
            buffers.copy_own(0, 0, bytes);
            return Ok(());
        }
        let plan = Exchange { out_at: 0, out: Some(bytes), in_at: 0, input: Some(bytes) };
        let (to, from) = (Some(job.next()), Some(job.previous()));
        wires.flow(&plan, to, from, buffers, job.reduction())
    },
};

pub(super) fn choose(_: &Job) -> &'static Algorithm {
    &NEIGHBOUR
}
