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

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "cpu-affinity-restricted",
        Severity::Warning,
        "the CPU set of the container keeps NCCL threads on few or wrong cores",
    )
};

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
