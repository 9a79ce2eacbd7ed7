//! Reduce-scatter: partial results travel round the ring.

use super::super::job::{Algorithm, Job};
use super::super::ring;

static RING: Algorithm = Algorithm {
    name: "ring",
    edges: Job::ring_edges,
    run: |job, wires, buffers| {
        if job.ranks == 1 {
            buffers.copy_own(0, 0, job.bytes());
            return Ok(());
        }
        let (to, from) = (Some(job.next()), Some(job.previous()));
        wires.flow(&ring::ReduceScatter(*job), to, from, buffers, job.reduction())
    },
};

pub(super) fn choose(_: &Job) -> &'static Algorithm {
    &RING
}
