//! `cpu-affinity-restricted`: the CPU set of the container keeps NCCL threads on few or wrong cores.
//!
//! ## What
//!
//! NCCL's threads of a GPU may run on very few processors.
//!
//! ## Why
//!
//! Each GPU has a proxy thread and, with sockets, helper threads; on one or two cores they hold
//! each other up.
//!
//! ## Example
//!
//! `h1 GPU 0: NCCL's threads have 1 processor`
//!
//! ## Remedy
//!
//! mpirun `--bind-to none`, a larger cpuset, or NCCL_IGNORE_CPU_AFFINITY=1 when the set is the
//! launcher's.
//!
//! ## Source
//!
//! NCCL src/graph/topo.cc ncclTopoGetCpuAffinity.

use crate::documents::{Documents, Platform};
use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new(
        "cpu-affinity-restricted",
        Severity::Warning,
        "the CPU set of the container keeps NCCL threads on few or wrong cores",
    )
};

/// A CPU set, or a limit, of fewer processors than GPUs.
fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        let Some(gpus) = container.gpu_count().filter(|n| *n > 0) else { continue };
        let (cpus, at, what) = if pod.platform == Platform::Compose {
            let Some(cpuset) = &container.cpuset else { continue };
            let Some(cpus) = processors(&cpuset.text) else { continue };
            (f64::from(cpus), &cpuset.at, format!("cpuset {}", cpuset.text))
        } else {
            let Some(limit) = container.limits.iter().find(|r| r.name.text == "cpu") else {
                continue;
            };
            let Some(cpus) = quantity(&limit.amount.text) else { continue };
            (cpus, &limit.amount.at, format!("cpu limit {}", limit.amount.text))
        };
        // one for the rank, one for NCCL's proxy
        if cpus >= 2.0 * gpus as f64 {
            continue;
        }
        let starved = cpus < gpus as f64;
        findings.push(
            set.say(
                &RULE,
                if starved { Confidence::Likely } else { Confidence::Possible },
                at,
                format!("{}: {what} for {gpus} GPUs", container.name.text),
                "each rank has a busy thread of its own and NCCL's proxy thread beside it, which moves \
                 everything that goes over the network; held back, bandwidth falls and steps jitter",
                format!("give it {} or more, or take the limit out and keep the request", gpus * 4),
            )
            .at(if starved { Severity::Warning } else { Severity::Info }),
        );
    }
}

/// `4`, `500m`.
fn quantity(text: &str) -> Option<f64> {
    match text.strip_suffix('m') {
        Some(milli) => milli.parse::<f64>().ok().map(|m| m / 1000.0),
        None => text.parse().ok(),
    }
}

/// Fewer processors than this for the threads of one GPU hold it up.
const LEAST: u32 = 3;

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let lines = incident.notices(&["Setting affinity for GPU", "Affinity for GPU"]);
    let tight: Vec<_> = lines
        .iter()
        .filter_map(|n| Some((*n, processors(&n.text)?)))
        .filter(|(_, count)| (1..LEAST).contains(count))
        .collect();
    let Some((first, count)) = tight.first() else { return };
    let host = incident.process(first).map_or("a host", |p| p.host.as_str());
    let what = if *count == 1 { "1 processor".to_owned() } else { format!("{count} processors") };
    findings.push(RULE.found(
        Confidence::Likely,
        format!("{host}: NCCL's threads of a GPU have {what}"),
        "the launcher or the container's cpuset binds the process to so few cores that proxy and \
         helper threads hold each other up",
        "mpirun `--bind-to none` (or `--map-by` with more cores), a larger CPU request with a static \
         policy; NCCL_IGNORE_CPU_AFFINITY=1 lets NCCL use the GPU's own node",
        incident.exhibits(tight.iter().map(|(n, _)| &n.at), 3),
    ));
}

/// Processors of a mask (`01,00000001`) or of a list (`0-3,8`).
fn processors(text: &str) -> Option<u32> {
    let set = match text.split("CPU affinity = ").nth(1) {
        Some(rest) => rest.split([')', ' ']).next()?,
        None => text.split(" to ").nth(1)?.split_whitespace().next()?.trim_end_matches('.'),
    };
    let hex = set.split(',').all(|g| !g.is_empty() && g.bytes().all(|b| b.is_ascii_hexdigit()));
    let groups = set.split(',').skip(1).all(|g| g.len() == 8);
    // a list of numbers such as `0,1` has no group of eight
    if hex && groups && !set.contains('-') {
        return set.split(',').map(|g| u64::from_str_radix(g, 16).ok().map(u64::count_ones)).sum();
    }
    set.split(',')
        .map(|part| match part.split_once('-') {
            Some((a, b)) => Some(b.parse::<u32>().ok()?.checked_sub(a.parse().ok()?)? + 1),
            None => part.parse::<u32>().ok().map(|_| 1),
        })
        .sum()
}
