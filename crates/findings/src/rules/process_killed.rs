//! `process-killed`: a rank was killed for host memory.
//!
//! ## What
//!
//! The kernel or the kubelet killed a process that used too much memory.
//!
//! ## Why
//!
//! Signal 9 leaves no message in the rank's own log; the others see closed connections.
//!
//! ## Example
//!
//! `a process was killed for memory (OOM)`
//!
//! ## Remedy
//!
//! Raise the memory limit of the container, or lower pinned memory and data-loader workers.
//!
//! ## Source
//!
//! Linux OOM killer; Kubernetes `OOMKilled`.

use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("process-killed", Severity::Error, "a rank was killed for host memory")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    // signal 9 alone is also what ends a pod that is deleted
    let number = |text: &str| text.to_ascii_lowercase().replace(' ', "").contains("exitcode");
    let lines = incident.log.signal(Signal::HostMemory);
    let (signal9, killed): (Vec<_>, Vec<_>) = lines.iter().partition(|at| number(&at.text));
    if killed.is_empty() && incident.finished() {
        return;
    }
    let (places, confidence) = if killed.is_empty() {
        (signal9, Confidence::Possible)
    } else {
        (killed, Confidence::Certain)
    };
    if places.is_empty() {
        return;
    }
    findings.push(RULE.found(
        confidence,
        if confidence == Confidence::Certain {
            "a rank was killed with signal 9: out of host memory"
        } else {
            "a rank was killed with signal 9: host memory, unless somebody stopped it"
        },
        "the kernel's OOM killer or the container's memory limit ended the process; the other ranks \
         only see its closed connections",
        "look at `dmesg | grep -i oom` and the pod's last state; raise the memory limit, or lower \
         pinned memory, data-loader workers and the size of a memory-backed /dev/shm",
        incident.exhibits(places, 3),
    ));
}
