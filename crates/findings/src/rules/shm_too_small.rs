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

use ncclctl_facts::Facts;
use ncclctl_nccl::log::Signal;

use crate::documents::{Container, Documents, Platform, Pod, Source, Text};
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new("shm-too-small", Severity::Error, "/dev/shm is too small for the ranks of one node")
};

/// What several ranks of a node need at least; less has failed with two GPUs.
const LEAST_BYTES: u64 = 1 << 30;

/// Speaks where a container has several GPUs (or says that it starts several ranks), and what is
/// behind its /dev/shm is said, or is the runtime's 64 MiB because nothing is said.
fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        let several = container.gpu_count().is_some_and(|n| n > 1)
            || (container.gpu_spot().is_some() && container.ranks().is_some_and(|n| n > 1));
        if !several {
            continue;
        }
        let gpus = container.gpu_count().or(container.ranks()).unwrap_or(2);
        let Some((at, has)) = too_small(pod, container) else { continue };
        let at = at.map_or_else(
            || container.gpu_spot().cloned().unwrap_or_default(),
            |text| text.at.clone(),
        );
        let remedy = match pod.platform {
            Platform::Compose if pod.is_command() => {
                "add `--shm-size=8g` (or `--ipc=host`, which shares it with the host)".to_owned()
            }
            Platform::Compose => {
                "write `shm_size: 8gb` in the service (or `ipc: host`, which shares it with the host)"
                    .to_owned()
            }
            Platform::Kubernetes => format!(
                "mount a volume at /dev/shm: `volumes: [{{name: dshm, emptyDir: {{medium: Memory, \
                 sizeLimit: 8Gi}}}}]` and `volumeMounts: [{{name: dshm, mountPath: /dev/shm}}]` in \
                 {}; hostIPC is not needed for it",
                container.name.text
            ),
        };
        findings.push(
            set.say(
                &RULE,
                Confidence::Likely,
                &at,
                format!("{} has {gpus} GPUs and {has} of /dev/shm", container.name.text),
                "ranks of one node that can not use peer access speak through /dev/shm, some 10 MB a \
                 connection, and frameworks put batches there: full, it ends the job with `Error while \
                 creating shared memory segment` or a bus error. From 2.24 with driver 12.6 NCCL \
                 needs less of it",
                remedy,
            )
            .at(Severity::Warning),
        );
    }
}

/// What it has where that is too little, and the text that says so.
fn too_small<'a>(pod: &'a Pod, container: &'a Container) -> Option<(Option<&'a Text>, String)> {
    let of = |text: &'a Text| match bytes(&text.text) {
        Some(n) if n < LEAST_BYTES => Some((Some(text), text.text.clone())),
        _ => None,
    };
    if pod.host_ipc.as_ref().is_some_and(|t| t.is_true() || t.text == "host") {
        return None;
    }
    match pod.platform {
        Platform::Compose => match &container.shm_size {
            _ if container.shm_mounted => None,
            _ if pod
                .host_ipc
                .as_ref()
                .is_some_and(|t| t.text != "private" && t.text != "shareable") =>
            {
                None
            }
            Some(size) => of(size),
            None => Some((None, "Docker's 64 MiB".to_owned())),
        },
        Platform::Kubernetes => match pod.mounted(container, "/dev/shm") {
            None => Some((None, "the runtime's 64 MiB".to_owned())),
            Some((_, Some(volume))) => match &volume.source {
                Source::EmptyDir { limit: Some(limit), .. } => of(limit),
                _ => None,
            },
            Some(_) => None,
        },
    }
}

/// `8gb`, `8Gi`, `512m`, `1073741824`.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text.get(..end)?.parse().ok()?;
    let factor = match text.get(end..)?.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" | "ki" | "kib" => 1024.0,
        "m" | "mb" | "mi" | "mib" => 1024.0 * 1024.0,
        "g" | "gb" | "gi" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "t" | "tb" | "ti" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some((number * factor) as u64)
}

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

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    for node in nodes {
        let Some(shm) = node.container.shm else { continue };
        let gpus = node.gpus().len() as u64;
        // each rank keeps some tens of MiB of buffers there; the default of the engines is 64 MiB
        if gpus < 2 || shm >= gpus * (64 << 20) {
            continue;
        }
        findings.push(RULE.found(
            Confidence::Likely,
            format!(
                "{}: /dev/shm is {} for {gpus} GPUs",
                node.name,
                ncclctl_facts::difference::size(shm)
            ),
            "ranks of one host share their buffers there; when it is full, init fails, or a rank dies \
             with a bus error",
            "docker --shm-size=8g, `shm_size: 8gb` in Compose, an emptyDir of medium Memory on /dev/shm \
             in a pod",
            vec![Exhibit::fact(
                format!("{}.container.shm", node.name),
                ncclctl_facts::difference::size(shm),
            )],
        ));
    }
}
