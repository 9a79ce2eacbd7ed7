//! `statefulset-ordered-start`: pods that need each other are started one after the other.
//!
//! ## What
//!
//! A StatefulSet of several pods with GPUs whose `podManagementPolicy` is OrderedReady: a warning where a
//! readiness probe makes the first wait for the others.
//!
//! ## Why
//!
//! The second pod is made when the first is ready. A rank that waits for its peers is not ready, so that
//! neither comes.
//!
//! ## Example
//!
//! `StatefulSet trainer starts its 4 pods one after the other`
//!
//! ## Remedy
//!
//! Write `podManagementPolicy: Parallel`.
//!
//! ## Source
//!
//! Kubernetes: StatefulSet, pod management policies.

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "statefulset-ordered-start",
        Severity::Info,
        "pods that need each other are started one after the other",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for pod in
        set.pods.iter().filter(|p| p.kind == "StatefulSet" && p.replicas.is_some_and(|r| r > 1))
    {
        let parallel = pod.management.as_ref().is_some_and(|m| m.text == "Parallel");
        let gpus = pod.containers.iter().any(|c| c.gpu_spot().is_some());
        if parallel || !gpus {
            continue;
        }
        let waits = pod.containers.iter().any(|c| c.readiness);
        let at = pod.management.as_ref().map_or(&pod.owner.at, |m| &m.at);
        findings.push(
            set.say(
                &RULE,
                if waits { Confidence::Likely } else { Confidence::Possible },
                at,
                format!("{} starts its {} pods one after the other", pod.title(), pod.replicas.unwrap_or(1)),
                "the next pod is made when the one before is ready; ranks that wait for their peers are not",
                "write `podManagementPolicy: Parallel` in the spec of the StatefulSet",
            )
            .at(if waits { Severity::Warning } else { Severity::Info }),
        );
    }
}
