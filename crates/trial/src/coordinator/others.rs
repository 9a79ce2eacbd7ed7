//! Paths over interfaces that the ranks did not choose: a measured ceiling sinks together with the
//! result when the wrong interface was chosen, streams over the others show it.

use std::time::Duration;

use ncclctl_findings::Evidence;
use ncclctl_findings::evidence::{Alternative, Phase};

use super::workers::Workers;
use super::{blame, measure};
use crate::error::TrialError;
use crate::plan::TrialPlan;

/// More than this many are not tried: each costs fresh ranks and half a second.
const MOST: usize = 3;

/// Streaming time over one interface.
const STREAM: Duration = Duration::from_millis(400);

/// How long a rank may wait for a peer over an interface that may lead nowhere.
const DEADLINE: Duration = Duration::from_secs(3);

/// Streams over all ring edges by each other interface. Comes last: ranks are started afresh, and
/// an interface that does not work ends it without harm to what was measured.
pub(super) async fn measure(plan: &TrialPlan, workers: &mut Workers, evidence: &mut Evidence) {
    for interface in ncclctl_findings::verdict::other_interfaces(evidence).into_iter().take(MOST) {
        if let Err(error) = one(plan, workers, evidence, &interface).await {
            evidence.not_measured.push(format!("paths over {interface}: {}", error.message));
            return;
        }
    }
}

async fn one(
    plan: &TrialPlan,
    workers: &mut Workers,
    evidence: &mut Evidence,
    interface: &str,
) -> Result<(), TrialError> {
    workers.stop_ranks().await?;
    let mut plan = plan.clone();
    plan.settings.insert("NCCL_SOCKET_IFNAME".to_owned(), format!("={interface}"));
    plan.deadline = plan.deadline.min(DEADLINE);
    let size = workers.list.len();
    measure::start(&plan, workers, size, &mut |_| {}).await?;
    let ranks = evidence.ranks.len();
    let ring = (0..ranks).map(|rank| (rank, (rank + 1) % ranks)).collect();
    let paths = blame::stream(workers, ring, STREAM, Phase::After).await?;
    evidence.alternatives.extend(paths.into_iter().map(|path| Alternative {
        interface: interface.to_owned(),
        from: path.from,
        to: path.to,
        rate_bps: path.rate_bps,
    }));
    Ok(())
}
