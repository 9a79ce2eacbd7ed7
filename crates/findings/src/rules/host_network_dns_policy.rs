//! `host-network-dns-policy`: hostNetwork without ClusterFirstWithHostNet.
//!
//! ## What
//!
//! A pod of a job of several pods shares the host's network, and its DNS policy is the default.
//!
//! ## Why
//!
//! With hostNetwork the default policy ClusterFirst falls back to the node's resolver, which knows no
//! Services and no host names of pods.
//!
//! ## Example
//!
//! `Job lm-mpi-job mpiworker: hostNetwork with the default DNS policy`
//!
//! ## Remedy
//!
//! Write `dnsPolicy: ClusterFirstWithHostNet` beside `hostNetwork: true`.
//!
//! ## Source
//!
//! Kubernetes: DNS for Services and Pods, pod's DNS policy.

use crate::documents::{Documents, Platform};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "host-network-dns-policy",
        Severity::Warning,
        "hostNetwork without ClusterFirstWithHostNet",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for pod in set.pods.iter().filter(|p| p.platform == Platform::Kubernetes && p.on_host_network())
    {
        let set_right = pod
            .dns_policy
            .as_ref()
            .is_some_and(|p| matches!(p.text.as_str(), "ClusterFirstWithHostNet" | "None"));
        if set_right {
            continue;
        }
        let Some(network) = &pod.host_network else { continue };
        let several = pod.several(set);
        let gpus = pod.containers.iter().any(|c| c.gpu_spot().is_some());
        // a lone pod may need no name at all
        if !several && (!gpus || !set.pedantic) {
            continue;
        }
        let at = pod.dns_policy.as_ref().map_or(&network.at, |p| &p.at);
        let fix = match &pod.dns_policy {
            Some(policy) => set.replace(&policy.at, &policy.text, "ClusterFirstWithHostNet", true),
            None => set.insert_beside(&network.at, "dnsPolicy: ClusterFirstWithHostNet"),
        };
        let found = set
            .say(
                &RULE,
                if several { Confidence::Likely } else { Confidence::Possible },
                at,
                match &pod.dns_policy {
                    Some(p) => format!("{}: hostNetwork with dnsPolicy {}", pod.title(), p.text),
                    None => format!("{}: hostNetwork with the default DNS policy", pod.title()),
                },
                "with hostNetwork, ClusterFirst means the node's resolver, which knows no Services and no \
                 host names of pods: workers and the master do not resolve",
                "write `dnsPolicy: ClusterFirstWithHostNet` beside hostNetwork: true",
            )
            .at(if several { Severity::Warning } else { Severity::Info });
        findings.push(set.fixed(found, fix));
    }
}
