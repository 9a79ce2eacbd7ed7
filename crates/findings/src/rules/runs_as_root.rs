//! `runs-as-root`: a container runs as root.
//!
//! ## What
//!
//! With `--pedantic`: a container with GPUs, or an image, does not say that it runs as another user.
//!
//! ## Why
//!
//! NCCL needs no root where the memlock limit is unlimited.
//!
//! ## Example
//!
//! `train runs as root`
//!
//! ## Remedy
//!
//! Write `securityContext: {runAsNonRoot: true, runAsUser: 1000}`; `USER` in a Dockerfile.
//!
//! ## Source
//!
//! Kubernetes: pod security standards, restricted.

use crate::documents::{Documents, Platform};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("runs-as-root", Severity::Info, "a container runs as root")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    if !set.pedantic {
        return;
    }
    for (pod, container) in set.containers() {
        let root = container.user.as_ref().is_none_or(|u| u.text == "0" || u.text == "root");
        if pod.platform != Platform::Kubernetes || container.gpu_spot().is_none() || !root {
            continue;
        }
        if container.non_root == Some(true) {
            continue;
        }
        findings.push(set.say(
            &RULE,
            Confidence::Possible,
            &container.name.at,
            format!("{} runs as root, unless its image says otherwise", container.name.text),
            "NCCL needs no root where the container runtime gives an unlimited memlock limit",
            "write `securityContext: {runAsNonRoot: true, runAsUser: 1000}`",
        ));
    }
}
