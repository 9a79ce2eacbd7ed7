//! `service-account-token`: workers hold a token of the cluster.
//!
//! ## What
//!
//! With `--pedantic`: a GPU pod does not set `automountServiceAccountToken: false`.
//!
//! ## Why
//!
//! A rank has no business with the API server; what runs in it can use the token.
//!
//! ## Example
//!
//! `Job train mounts a service account's token`
//!
//! ## Remedy
//!
//! Write `automountServiceAccountToken: false` in the pod's spec.
//!
//! ## Source
//!
//! Kubernetes: service accounts.

use crate::documents::{Documents, Platform};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("service-account-token", Severity::Info, "workers hold a token of the cluster")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for pod in set.pods.iter().filter(|p| p.platform == Platform::Kubernetes && set.pedantic) {
        let off = pod.automount_token.as_ref().is_some_and(|t| t.text == "false");
        if off
            || !pod.containers.iter().any(|c| c.gpu_spot().is_some())
            || pod.role.eq_ignore_ascii_case("launcher")
        {
            continue;
        }
        findings.push(set.say(
            &RULE,
            Confidence::Possible,
            &pod.at,
            format!("{} mounts a service account's token", pod.title()),
            "a rank does not speak to the API server; what runs in it could",
            "write `automountServiceAccountToken: false` in the pod's spec",
        ));
    }
}
