//! `host-device-path`: all devices of the host are mounted.
//!
//! ## What
//!
//! A pod with GPUs mounts /dev of the host.
//!
//! ## Why
//!
//! With privilege it opens every disk of the node, without it none of the devices; it also hides the
//! container's own /dev/shm.
//!
//! ## Example
//!
//! `/dev of the host is mounted in train`
//!
//! ## Remedy
//!
//! Take it out; GPUs and RDMA devices come by resources.
//!
//! ## Source
//!
//! Kubernetes: pod security standards, host path volumes.

use crate::documents::{Documents, Source};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("host-device-path", Severity::Warning, "all devices of the host are mounted")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        if pod.kind == "DaemonSet" || container.gpu_spot().is_none() {
            continue;
        }
        for volume in &pod.volumes {
            let Source::HostPath(path) = &volume.source else { continue };
            let mounted = container.mounts.iter().any(|m| m.volume == volume.name.text);
            if mounted && matches!(path.text.trim_end_matches('/'), "/dev" | "") {
                findings.push(set.say(
                    &RULE,
                    Confidence::Certain,
                    &path.at,
                    format!("{} of the host is mounted in {}", path.text, container.name.text),
                    "with privilege it opens every disk of the node; the container's own /dev/shm is hidden",
                    "take the volume out; GPUs and RDMA devices come by resources",
                ));
            }
        }
    }
}
