//! The collectives: for each, the algorithms and when which is used.

use ncclctl_nccl::Collective;

use super::job::{Algorithm, Job};

mod all_gather;
mod all_reduce;
mod alltoall;
mod broadcast;
mod gather;
mod reduce;
mod reduce_scatter;
mod scatter;
mod sendrecv;

/// Chooses the algorithm for a job.
type Choose = fn(&Job) -> &'static Algorithm;

/// Every collective with its choice.
const COLLECTIVES: [(Collective, Choose); 9] = [
    (Collective::AllReduce, all_reduce::choose),
    (Collective::AllGather, all_gather::choose),
    (Collective::ReduceScatter, reduce_scatter::choose),
    (Collective::Broadcast, broadcast::choose),
    (Collective::Reduce, reduce::choose),
    (Collective::AllToAll, alltoall::choose),
    (Collective::Gather, gather::choose),
    (Collective::Scatter, scatter::choose),
    (Collective::SendRecv, sendrecv::choose),
];

/// The algorithm for a job.
pub(super) fn choose(job: &Job) -> &'static Algorithm {
    COLLECTIVES
        .iter()
        .find(|(collective, _)| *collective == job.collective)
        .map_or(&all_reduce::RING, |(_, choose)| choose(job))
}
