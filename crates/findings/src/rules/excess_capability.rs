//! `excess-capability`: a capability that NCCL has no use for.
//!
//! ## What
//!
//! A container with GPUs adds ALL, SYS_ADMIN, NET_ADMIN, SYS_MODULE, SYS_RAWIO or DAC_READ_SEARCH (a warning),
//! or SYS_PTRACE, NET_RAW, SYS_RESOURCE (for information).
//!
//! ## Why
//!
//! SYS_ADMIN and ALL are nearly the same as privileged. NCCL uses IPC_LOCK where the memlock limit is small,
//! and SYS_NICE only for memory on a NUMA node in host buffers.
//!
//! ## Example
//!
//! `SYS_ADMIN is added to train`
//!
//! ## Remedy
//!
//! Leave IPC_LOCK alone, if that.
//!
//! ## Source
//!
//! capabilities(7); NCCL 2.30.7, system calls in use.

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("excess-capability", Severity::Warning, "a capability that NCCL has no use for")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        if pod.kind == "DaemonSet" || container.gpu_spot().is_none() {
            continue;
        }
        for capability in &container.capabilities {
            let upper = capability.text.to_ascii_uppercase();
            let severity = match upper.strip_prefix("CAP_").unwrap_or(&upper) {
                "ALL" | "SYS_ADMIN" | "NET_ADMIN" | "SYS_MODULE" | "SYS_RAWIO"
                | "DAC_READ_SEARCH" => Severity::Warning,
                "SYS_PTRACE" | "NET_RAW" | "SYS_RESOURCE" => Severity::Info,
                _ => continue,
            };
            findings.push(
                set.say(
                    &RULE,
                    Confidence::Certain,
                    &capability.at,
                    format!("{} is added to {}", capability.text, container.name.text),
                    "NCCL has no use for it: it wants device nodes, locked memory and /dev/shm",
                    "take it out; IPC_LOCK is enough for RDMA, and only where the memlock limit is small",
                )
                .at(severity),
            );
        }
    }
}
