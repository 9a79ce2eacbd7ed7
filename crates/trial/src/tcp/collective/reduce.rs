//! Reduce: a pipelined chain where bandwidth counts, a binomial tree where latency does.

use super::super::chain::ReduceTo;
use super::super::job::{Algorithm, Job};
use super::super::tree;
use super::super::wires::Edges;

static CHAIN: Algorithm = Algorithm {
    name: "chain",
    edges: |job| {
        let plan = ReduceTo(*job);
        Edges { out: plan.to().into_iter().collect(), input: plan.from().into_iter().collect() }
    },
    run: |job, wires, buffers| {
        let plan = ReduceTo(*job);
        wires.flow(&plan, plan.to(), plan.from(), buffers, job.reduction())
    },
};

static TREE: Algorithm =
    Algorithm { name: "binomial tree", edges: tree::edges_up, run: tree::reduce };

/// Sizes up to this many bytes go up a tree. The memory for it is set aside for this size.
pub(super) const SMALL: u64 = 32 * 1024;

pub(super) fn choose(job: &Job) -> &'static Algorithm {
    if job.size <= SMALL || job.ranks == 1 { &TREE } else { &CHAIN }
}
