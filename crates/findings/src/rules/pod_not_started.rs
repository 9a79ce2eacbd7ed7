//! `pod-not-started`: Kubernetes could not start a pod of the job.
//!
//! ## What
//!
//! An event or a pod's status says that a pod found no node, no volume, no network or no image.
//!
//! ## Why
//!
//! The other ranks are up and wait for this one: their logs show set-up that never ends, names that
//! do not resolve, or connections that are refused.
//!
//! ## Example
//!
//! `train-worker-1 found no node: 3 Insufficient nvidia.com/gpu`
//!
//! ## Remedy
//!
//! As the finding says; `kubectl describe pod` shows the newest event.
//!
//! ## Source
//!
//! Kubernetes: events of the scheduler and the kubelet, waiting reasons of a container's state.

use ncclctl_nccl::log::{At, Signal};

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("pod-not-started", Severity::Error, "Kubernetes could not start a pod of the job")
};

/// What Kubernetes says, what it means, and what to do.
struct Reason {
    marks: &'static [&'static str],
    what: &'static str,
    remedy: &'static str,
}

const REASONS: &[Reason] = &[
    Reason {
        marks: &["FailedScheduling", "nodes are available: "],
        what: "found no node",
        remedy: "read which resource is short: free the GPUs or RDMA devices (`kubectl describe node | \
                 grep -A9 Allocated`), check that the device plugin runs, or ask for less; schedule the \
                 job as a gang, so that half of it does not hold GPUs and wait",
    },
    Reason {
        marks: &["FailedMount"],
        what: "got a volume that does not mount",
        remedy: "create the ConfigMap, Secret or claim that the event names, in the pod's namespace; a \
                 hostPath needs its path on every node",
    },
    Reason {
        marks: &["FailedCreatePodSandBox"],
        what: "got no network",
        remedy: "look at the CNI plugin that the event names (Multus, SR-IOV): does the attachment exist \
                 in this namespace, has its address pool free addresses, has the node free functions",
    },
    Reason {
        marks: &["ErrImagePull", "ImagePullBackOff", "Failed to pull image"],
        what: "got no image",
        remedy: "check name, tag and imagePullSecrets; `crictl pull` on the node shows the registry's answer",
    },
    Reason {
        marks: &["UnexpectedAdmissionError"],
        what: "was refused by its node's device plugin",
        remedy: "restart the device plugin of that node and look at its log: it promised devices that it \
                 could not hand out",
    },
    Reason {
        marks: &["CreateContainerConfigError", "RunContainerError"],
        what: "has a container that does not start",
        remedy: "`kubectl describe pod` names the missing ConfigMap, Secret, runtime class or program",
    },
    Reason {
        marks: &["The node was low on resource"],
        what: "was evicted",
        remedy: "ask for the memory or ephemeral storage that it uses; keep datasets and logs off the \
                 container's own file system",
    },
];

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    // events stay for an hour: a run that went through outlived them
    if incident.finished() {
        return;
    }
    let lines = incident.log.signal(Signal::Pod);
    for reason in REASONS {
        let said: Vec<_> = lines
            .iter()
            .filter(|at| reason.marks.iter().any(|m| at.text.contains(m)))
            .filter(|at| !started(incident, at))
            .collect();
        let Some(first) = said.first() else { continue };
        let mut pods: Vec<&str> = said.iter().filter_map(|at| pod(&at.text)).collect();
        pods.sort_unstable();
        pods.dedup();
        let who = match pods.as_slice() {
            [] => "a pod".to_owned(),
            [one] => (*one).to_owned(),
            [one, more @ ..] => format!("{one} and {} more", more.len()),
        };
        findings.push(RULE.found(
            Confidence::Likely,
            format!("{who} {}{}", reason.what, short(&first.text)),
            "a job is complete only with all its pods: the ranks that are up wait for this one",
            reason.remedy,
            incident.exhibits(said.iter().copied(), 3),
        ));
    }
}

/// Whether the pod of an event got going after all; a description is of one pod and does not name it.
fn started(incident: &Incident, event: &At) -> bool {
    incident
        .log
        .signal(Signal::PodStarted)
        .iter()
        .any(|at| at.source == event.source && pod(&at.text) == pod(&event.text))
}

/// `pod/train-0` of the table of `kubectl get events`.
fn pod(text: &str) -> Option<&str> {
    text.split_whitespace().find_map(|word| word.strip_prefix("pod/")).filter(|n| !n.is_empty())
}

/// The resource that is short, where the line tells it.
fn short(text: &str) -> String {
    let Some(at) = text.find("Insufficient ") else { return String::new() };
    let resource = text[at + 13..].split([' ', ',', '\'']).next().unwrap_or("");
    format!(": too little {}", resource.trim_end_matches('.'))
}
