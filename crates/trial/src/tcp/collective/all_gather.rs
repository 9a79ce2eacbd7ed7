//! All-gather: blocks travel round the ring.

use super::super::job::{Algorithm, Job};
use super::super::ring;

static RING: Algorithm = Algorithm {
    name: "ring",
    edges: Job::ring_edges,
    run: |job, wires, buffers| {
        buffers.copy_own(0, job.rank * job.bytes(), job.bytes());
        if job.ranks == 1 {
            return Ok(());
        }
        let (to, from) = (Some(job.next()), Some(job.previous()));
        wires.flow(&ring::AllGather(*job), to, from, buffers, job.reduction())
    },
};

pub(super) fn choose(_: &Job) -> &'static Algorithm {
    &RING
}
