//! `shm-too-small`: /dev/shm is too small for the ranks of one node.
//!
//! ## What
//!
//! NCCL could not create or grow a shared-memory segment: the file system behind /dev/shm was full.
//!
//! ## Why
//!
//! Ranks of one node that can not use peer-to-peer copies exchange data through /dev/shm, some 4 to
//! 10 MB a connection and direction. Docker and containerd give a container 64 MiB unless told
//! otherwise; a Kubernetes pod gets the same.
//!
//! ## Example
//!
//! `/dev/shm is full: a segment of 9637888 bytes could not be made on trainer-worker-0`
//!
//! ## Remedy
//!
//! Docker: `--shm-size=8g` or `--ipc=host`; Compose: `shm_size: 8gb`; Kubernetes: an emptyDir with
//! `medium: Memory` mounted on /dev/shm.
//!
//! ## Source
//!
//! NCCL src/misc/shmutils.cc (2.12 and later), include/shm.h before; messages of 2.4 to 2.32.

use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("shm-too-small", Severity::Error, "/dev/shm is too small for the ranks of one node")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let full: Vec<_> = incident
        .notices(&[
            "failed to extend",
            "Failed to extend",
            "posix_fallocate",
            "shared memory segment",
            "Unable to allocate shared memory",
            "allocate shared memory",
        ])
        .into_iter()
        .filter(|n| is_full(&n.text))
        .collect();
    let mut places: Vec<_> = full.iter().map(|n| &n.at).collect();
    places.extend(
        incident
            .log
            .signal(Signal::SharedMemory)
            .iter()
            .filter(|at| !at.text.contains("unable to open shared memory object")),
    );
    if places.is_empty() {
        return;
    }
    let size = full.iter().find_map(|n| segment(&n.text));
    let host = full
        .first()
        .and_then(|n| incident.process(n))
        .map_or(String::new(), |p| format!(" on {}", p.host));
    let what = size.map_or("a segment could not be made".to_owned(), |s| {
        format!("a segment of {s} bytes could not be made")
    });
    findings.push(RULE.found(
        if full.is_empty() { Confidence::Likely } else { Confidence::Certain },
        format!("/dev/shm is full: {what}{host}"),
        "the container's /dev/shm (64 MiB unless set) is too small for the connections between the \
         ranks of one node",
        "give the container a larger /dev/shm: docker `--shm-size=8g` or `--ipc=host`, Compose \
         `shm_size: 8gb`, Kubernetes an emptyDir `{medium: Memory}` mounted at /dev/shm",
        incident.exhibits(places, 4),
    ));
}

fn is_full(text: &str) -> bool {
    // a segment that a peer has removed, or that lies on another /dev/shm, is another matter
    let other = ["No such file", "Permission denied", "Read-only", "File exists"];
    !other.iter().any(|o| text.contains(o))
        && (text.contains("No space left on device")
            || text.contains("extend")
            || text.contains("fallocate")
            || text.contains("Cannot allocate memory")
            || !text.contains("error:"))
}

fn segment(text: &str) -> Option<u64> {
    ["(size ", " to "].iter().find_map(|key| {
        let rest = &text[text.find(key)? + key.len()..];
        rest[..rest.find(|c: char| !c.is_ascii_digit())?].parse().ok()
    })
}
