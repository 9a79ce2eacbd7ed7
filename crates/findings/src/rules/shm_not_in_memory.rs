//! `shm-not-in-memory`: the volume on /dev/shm is on a disk.
//!
//! ## What
//!
//! A container with GPUs mounts an emptyDir without `medium: Memory`, or a path of the host other than
//! /dev/shm, at /dev/shm.
//!
//! ## Why
//!
//! NCCL and the frameworks take /dev/shm for memory: on a disk every exchange between ranks of the node
//! goes through a file system, and pinning it may fail.
//!
//! ## Example
//!
//! `volume dshm on /dev/shm is on the node's disk`
//!
//! ## Remedy
//!
//! Write `emptyDir: {medium: Memory, sizeLimit: 8Gi}`.
//!
//! ## Source
//!
//! Kubernetes: volumes, emptyDir; NCCL src/misc/shmutils.cc.

use crate::documents::{Documents, Source};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("shm-not-in-memory", Severity::Warning, "the volume on /dev/shm is on a disk")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        if container.gpu_spot().is_none() {
            continue;
        }
        let Some((_, Some(volume))) = pod.mounted(container, "/dev/shm") else { continue };
        let disk = match &volume.source {
            Source::EmptyDir { medium, .. } => medium.as_ref().is_none_or(|m| m.text != "Memory"),
            Source::HostPath(path) => !path.text.starts_with("/dev/shm"),
            _ => false,
        };
        if disk {
            findings.push(set.say(
                &RULE,
                Confidence::Certain,
                &volume.name.at,
                format!("volume {} on /dev/shm is on the node's disk", volume.name.text),
                "an emptyDir without a medium is a folder of the node; ranks of the node exchange data \
                 through it",
                "write `emptyDir: {medium: Memory, sizeLimit: 8Gi}`",
            ));
        }
    }
}
