//! All-reduce: a ring where bandwidth counts, recursive doubling where latency does.

use super::super::job::{Algorithm, Job};
use super::super::{doubling, ring};

pub(super) static RING: Algorithm = Algorithm {
    name: "ring",
    edges: Job::ring_edges,
    run: |job, wires, buffers| {
        if job.ranks == 1 {
            buffers.copy_own(0, 0, job.bytes());
            return Ok(());
        }
        let (to, from) = (Some(job.next()), Some(job.previous()));
        wires.flow(&ring::AllReduce(*job), to, from, buffers, job.reduction())
    },
};

static DOUBLING: Algorithm =
    Algorithm { name: "recursive doubling", edges: doubling::edges, run: doubling::all_reduce };

/// Sizes up to this many bytes are exchanged whole (measured: docs/benchmarks/tcp-engine.md).
const WHOLE: u64 = 16 * 1024;

pub(super) fn choose(job: &Job) -> &'static Algorithm {
    if job.ranks > 1 && job.size <= WHOLE { &DOUBLING } else { &RING }
}
