//! `gpu-not-reserved`: a Compose service uses GPUs and reserves none.
//!
//! ## What
//!
//! A service sets NVIDIA_VISIBLE_DEVICES or settings of NCCL, or starts several ranks, without `gpus:`, a
//! reservation or `runtime: nvidia`.
//!
//! ## Why
//!
//! Docker gives no GPU unless asked. NVIDIA_VISIBLE_DEVICES alone works only on hosts whose default
//! runtime is NVIDIA's.
//!
//! ## Example
//!
//! `service train sets NVIDIA_VISIBLE_DEVICES and reserves no GPU`
//!
//! ## Remedy
//!
//! Write `gpus: all`, or a reservation under `deploy.resources.reservations.devices`.
//!
//! ## Source
//!
//! Compose specification; NVIDIA Container Toolkit.

use crate::documents::{Documents, Platform};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "gpu-not-reserved",
        Severity::Warning,
        "a Compose service uses GPUs and reserves none",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        if pod.platform != Platform::Compose
            || container.gpus.is_some()
            || container.privileged.is_some()
            || container.runtime.as_ref().is_some_and(|r| r.text == "nvidia")
            || container.devices.iter().any(|d| d.text.contains("nvidia"))
        {
            continue;
        }
        let Some(block) = set.settings(container) else { continue };
        let Some(sign) = block.settings.iter().find(|s| {
            matches!(s.name.text.as_str(), "NVIDIA_VISIBLE_DEVICES" | "CUDA_VISIBLE_DEVICES")
                && !matches!(s.value.text.as_str(), "" | "none" | "void" | "-1")
        }) else {
            continue;
        };
        findings.push(set.say(
            &RULE,
            Confidence::Likely,
            &sign.name.at,
            format!("{} sets {} and reserves no GPU", pod.title(), sign.name.text),
            "Docker gives a container no GPU unless it asks; the variable alone works only where \
             NVIDIA's is the default runtime",
            "write `gpus: all` in the service, or a reservation with `driver: nvidia` and \
             `capabilities: [gpu]`",
        ));
    }
}
