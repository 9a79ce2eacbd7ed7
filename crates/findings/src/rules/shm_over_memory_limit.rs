//! `shm-over-memory-limit`: /dev/shm may grow over the container's memory limit.
//!
//! ## What
//!
//! The limit of the memory volume on /dev/shm is at or over the memory limit of the container (a
//! warning), or, with `--pedantic`, it has none.
//!
//! ## Why
//!
//! Pages of a memory volume count as memory of the containers that wrote them: the kernel ends a process
//! before the volume is full.
//!
//! ## Example
//!
//! `/dev/shm may take 64Gi, the container 32Gi`
//!
//! ## Remedy
//!
//! Give the volume a `sizeLimit` well under `resources.limits.memory`.
//!
//! ## Source
//!
//! Kubernetes: emptyDir with medium Memory.

use super::shm_too_small::bytes;
use crate::documents::{Documents, Source};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "shm-over-memory-limit",
        Severity::Info,
        "/dev/shm may grow over the container's memory limit",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        let Some((_, Some(volume))) = pod.mounted(container, "/dev/shm") else { continue };
        let Source::EmptyDir { medium: Some(medium), limit } = &volume.source else { continue };
        if medium.text != "Memory" {
            continue;
        }
        let memory = container.limits.iter().find(|r| r.name.text == "memory").map(|r| &r.amount);
        match (limit, memory) {
            (Some(limit), Some(memory)) => {
                let (Some(l), Some(m)) = (bytes(&limit.text), bytes(&memory.text)) else {
                    continue;
                };
                if l >= m {
                    findings.push(
                        set.say(
                            &RULE,
                            Confidence::Certain,
                            &limit.at,
                            format!("/dev/shm may take {}, {} {}", limit.text, container.name.text, memory.text),
                            "pages of the volume count as the container's memory: it is ended for want of \
                             memory before the volume is full",
                            "write a sizeLimit well under resources.limits.memory",
                        )
                        .at(Severity::Warning),
                    );
                }
            }
            (None, _) if set.pedantic => findings.push(set.say(
                &RULE,
                Confidence::Possible,
                &volume.name.at,
                format!("volume {} on /dev/shm has no limit", volume.name.text),
                "without a sizeLimit it may take what the pod, or else the node, has",
                "write a sizeLimit, like 8Gi",
            )),
            _ => {}
        }
    }
}
