//! Broadcast: a pipelined chain where bandwidth counts, a binomial tree where latency does.

use super::super::chain::Broadcast;
use super::super::job::{Algorithm, Job};
use super::super::tree;
use super::super::wires::Edges;

static CHAIN: Algorithm = Algorithm {
    name: "chain",
    edges: |job| {
        let plan = Broadcast(*job);
        Edges { out: plan.to().into_iter().collect(), input: plan.from().into_iter().collect() }
    },
    run: |job, wires, buffers| {
        let plan = Broadcast(*job);
        if plan.from().is_none() {
            buffers.copy_own(0, 0, job.bytes());
        }
        wires.flow(&plan, plan.to(), plan.from(), buffers, job.reduction())
    },
};

static TREE: Algorithm =
    Algorithm { name: "binomial tree", edges: tree::edges_down, run: tree::broadcast };

/// Sizes up to this many bytes go down a tree.
const SMALL: u64 = 32 * 1024;

pub(super) fn choose(job: &Job) -> &'static Algorithm {
    if job.size <= SMALL { &TREE } else { &CHAIN }
}
