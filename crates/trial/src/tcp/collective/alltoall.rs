//! All-to-all: in round i every rank sends to the one i behind it and hears from the one i before.

use super::super::job::{Algorithm, Job};
use super::super::pairwise::Exchange;
use super::super::wires::Edges;

static PAIRWISE: Algorithm = Algorithm {
    name: "pairwise",
    edges: |job| {
        let others = || (0..job.ranks).filter(|r| *r != job.rank).collect();
        Edges { out: others(), input: others() }
    },
    run: |job, wires, buffers| {
        let bytes = job.bytes();
        buffers.copy_own(job.rank * bytes, job.rank * bytes, bytes);
        for round in 1..job.ranks {
            let to = (job.rank + round) % job.ranks;
            let from = (job.rank + job.ranks - round) % job.ranks;
            let plan = Exchange {
                out_at: to * bytes,
                out: Some(bytes),
                in_at: from * bytes,
                input: Some(bytes),
            };
            wires.flow(&plan, Some(to), Some(from), buffers, job.reduction())?;
        }
        Ok(())
    },
};

pub(super) fn choose(_: &Job) -> &'static Algorithm {
    &PAIRWISE
}
