//! `mig-not-supported`: multi-rank job on MIG slices.
//!
//! ## What
//!
//! Ranks run on MIG instances with an NCCL that can not use several of them.
//!
//! ## Why
//!
//! NCCL identifies a slice by its parent GPU: two slices of one GPU count as one device, and there
//! is no peer-to-peer between slices. From 2.31 distinct instances are supported, one rank each, on
//! request.
//!
//! ## Example
//!
//! `two ranks on MIG slices of one GPU, NCCL 2.20.5`
//!
//! ## Remedy
//!
//! Use whole GPUs, or NCCL 2.31 with NCCL_MULTI_RANK_GPU_ENABLE=1 and NCCL_MNNVL_ENABLE=0.
//!
//! ## Source
//!
//! NVIDIA/nccl#1716; NCCL 2.31 release notes.

use ncclctl_facts::Facts;
use ncclctl_nccl::Version;
use ncclctl_nccl::log::Signal;

use crate::documents::Documents;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new("mig-not-supported", Severity::Error, "multi-rank job on MIG slices")
};

/// Speaks where a container gets several slices, or a slice in a job of several ranks.
fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        let slices: Vec<_> = container
            .limits
            .iter()
            .filter(|r| r.name.text.starts_with("nvidia.com/mig-"))
            .collect();
        let Some(first) = slices.first() else { continue };
        let count: u64 = slices.iter().filter_map(|r| r.amount.text.parse::<u64>().ok()).sum();
        let version = set.settings(container).and_then(|b| set.version(b)).or(set.target);
        if version.is_some_and(|v| v >= SUPPORTS) {
            continue;
        }
        let job = pod.several(set);
        if count < 2 && !job {
            continue;
        }
        let what = match count {
            0 | 1 => format!("{} is a job of several pods on MIG slices", pod.title()),
            n => format!("{} asks for {n} MIG slices", container.name.text),
        };
        findings.push(
            set.say(
                &RULE,
                if count > 1 { Confidence::Certain } else { Confidence::Likely },
                &first.name.at,
                what,
                "a CUDA process sees one slice, there is no peer access between slices, and NCCL before \
                 2.31 takes slices of one GPU for one device",
                "ask for whole GPUs: `nvidia.com/gpu`; or NCCL 2.31 with one rank a slice and \
                 NCCL_MNNVL_ENABLE=0",
            )
            .at(if count > 1 { Severity::Error } else { Severity::Warning }),
        );
    }
}

/// First version with support for MIG instances.
const SUPPORTS: Version = Version::new(2, 31, 0);

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let shown: Vec<_> = incident
        .log
        .signal(Signal::Mig)
        .iter()
        .filter(|at| {
            let text = &at.text;
            // a header of nvidia-smi has the letters too
            (text.contains("MIG 1g")
                || text.contains("MIG 2g")
                || text.contains("MIG 3g")
                || text.contains("MIG 4g")
                || text.contains("MIG 7g"))
                || text.contains("MIG-")
        })
        .collect();
    let table = incident.log.tables.iter().any(|t| t.text.contains(" MIG "));
    let refused = incident.log.signal(Signal::MigUnsupported);
    if (shown.is_empty() && !table && refused.is_empty())
        || incident.log.version().is_some_and(|v| v >= SUPPORTS && refused.is_empty())
    {
        return;
    }
    let several =
        incident.log.communicators.iter().any(|c| c.nranks > 1) || shown.len() > 1 || table;
    if !several && refused.is_empty() {
        return;
    }
    let mut places = shown;
    places.extend(refused);
    let with = incident.log.version().map_or(String::new(), |v| format!(", NCCL {v}"));
    let mut exhibits = incident.exhibits(places, 3);
    if exhibits.is_empty() {
        exhibits.extend(incident.table_lines(" MIG "));
    }
    findings.push(RULE.found(
        Confidence::Likely,
        format!("several ranks on MIG slices{with}"),
        "NCCL before 2.31 takes all slices of a GPU for one device, and there is no peer-to-peer \
         between slices",
        "use whole GPUs for NCCL jobs, or NCCL 2.31 with one rank a slice and NCCL_MNNVL_ENABLE=0",
        exhibits,
    ));
}

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    for node in nodes {
        let slices: u32 = node.gpus().iter().filter_map(|g| g.mig).sum();
        if slices < 2 {
            continue;
        }
        findings.push(
            RULE.found(
                Confidence::Likely,
                format!("{}: {slices} MIG slices are visible", node.name),
                "slices have no peer access, and before NCCL 2.31 two slices of one GPU count as the \
                 same GPU, which it refuses",
                "whole GPUs for jobs of several ranks, or NCCL 2.31 with one rank a slice and \
                 NCCL_MNNVL_ENABLE=0",
                vec![Exhibit::fact(format!("{}.gpu.mig", node.name), slices.to_string())],
            )
            .at(Severity::Warning),
        );
    }
}
