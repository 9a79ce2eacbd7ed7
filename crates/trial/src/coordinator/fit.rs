//! Sizes that fit into memory: what does not is left out and said, as nccl-tests does, instead of a
//! rank that is killed in the middle.

use std::collections::BTreeMap;

use ncclctl_nccl::size::Short;

use super::workers::Worker;
use crate::plan::TrialPlan;

/// Buffers of a rank: input, output, partial results.
const BUFFERS: u64 = 3;

/// The plan without the sizes that some host has no memory for, and what was left out in words.
pub(super) fn fitting(plan: &TrialPlan, workers: &[Worker]) -> (TrialPlan, Option<String>) {
    let mut plan = plan.clone();
    // buffers of a GPU engine are the GPU's
    if plan.engine != "tcp" {
        return (plan, None);
    }
    let mut ranks: BTreeMap<(&str, u64), (u64, u64)> = BTreeMap::new();
    for worker in workers {
        let host = &worker.hello.host;
        let Some(memory) = host.memory else { continue };
        let entry = ranks.entry((&host.boot_id, host.netns)).or_insert((0, memory));
        entry.0 += worker.hello.ranks as u64;
        entry.1 = entry.1.min(memory);
    }
    // a fifth stays free for everything else that lives there
    let most = ranks
        .values()
        .map(|(ranks, memory)| memory / 5 * 4 / (*ranks).max(1) / BUFFERS)
        .min()
        .unwrap_or(u64::MAX);
    let Some(greatest) = plan.cases.iter().map(|case| case.bytes).max() else {
        return (plan, None);
    };
    if greatest <= most {
        return (plan, None);
    }
    plan.cases.retain(|case| case.bytes <= most);
    let kept = plan.cases.iter().map(|case| case.bytes).max().unwrap_or(0);
    let text = format!(
        "sizes over {} left out, up to {}: a rank needs {BUFFERS} buffers, and there is memory for {} MiB each",
        Short(kept),
        Short(greatest),
        most >> 20
    );
    (plan, Some(text))
}
