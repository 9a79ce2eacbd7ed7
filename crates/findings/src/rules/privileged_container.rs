//! `privileged-container`: a container is privileged.
//!
//! ## What
//!
//! A container with GPUs, or with settings of NCCL, is `privileged`.
//!
//! ## Why
//!
//! Privileged gives every device and capability of the host. NCCL needs none of it: GPUs and RDMA devices
//! come by resources, locked memory by the memlock limit.
//!
//! ## Example
//!
//! `nccl-test is privileged`
//!
//! ## Remedy
//!
//! Take it out; ask for `nvidia.com/gpu`, an RDMA resource, and a memory volume on /dev/shm. `IPC_LOCK` only where
//! the memlock limit is small.
//!
//! ## Source
//!
//! Kubernetes: pod security standards; NCCL's needs: device nodes, memlock, /sys, /dev/shm.

use crate::documents::{Documents, Platform};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("privileged-container", Severity::Warning, "a container is privileged")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        let Some(privileged) = &container.privileged else { continue };
        // agents that set up a node need it
        if pod.kind == "DaemonSet" {
            continue;
        }
        let nccl = set.settings(container).is_some_and(|b| b.starting(&["NCCL_"]).is_some());
        if container.gpu_spot().is_none() && !nccl {
            continue;
        }
        let remedy = match pod.platform {
            Platform::Kubernetes => {
                "take `privileged` out; what NCCL needs at full speed: `nvidia.com/gpu: N`, an RDMA \
                 resource (`rdma/…: 1`), an emptyDir `{medium: Memory}` at /dev/shm, and `capabilities: \
                 {add: [IPC_LOCK]}` as root only where the node's memlock limit is small"
            }
            Platform::Compose if pod.is_command() => {
                "take --privileged out; what NCCL needs at full speed: `--gpus all --shm-size=8g`, and \
                 for RDMA `--device /dev/infiniband --cap-add IPC_LOCK --ulimit memlock=-1`"
            }
            Platform::Compose => {
                "take `privileged` out; what NCCL needs at full speed: `gpus: all`, `shm_size: 8gb`, and for \
                 RDMA `devices: [/dev/infiniband:/dev/infiniband]`, `cap_add: [IPC_LOCK]`, `ulimits: \
                 {memlock: -1}`"
            }
        };
        findings.push(set.say(
            &RULE,
            Confidence::Certain,
            &privileged.at,
            format!("{} is privileged", container.name.text),
            "it gives every device and capability of the host, and lets a job of one team end another's; \
             NCCL gains nothing by it",
            remedy,
        ));
    }
}
