//! `nvls-multicast-failed`: NVLink SHARP multicast set-up failed.
//!
//! ## What
//!
//! NCCL could not bind or create NVLS multicast memory.
//!
//! ## Why
//!
//! Fabric manager or an NVSwitch is in a bad state, all multicast slots are taken by other
//! processes, or the GPUs were not reset after a fabric manager restart.
//!
//! ## Example
//!
//! `h100-ci-07: NVLS bind failed with CUDA error 401`
//!
//! ## Remedy
//!
//! Restart fabric manager with a GPU reset, or reboot; take the host out if it comes back.
//! NCCL_NVLS_ENABLE=0 only hides it.
//!
//! ## Source
//!
//! NCCL src/transport/nvls.cc, 2.17 and later.

use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("nvls-multicast-failed", Severity::Error, "NVLink SHARP multicast set-up failed")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let mut places: Vec<_> = incident
        .log
        .warnings()
        .filter(|n| {
            n.text.contains("NVLink SHARP (NVLS) Multicast")
                || (n.file.ends_with("nvls.cc") && n.text.contains("uda failure"))
        })
        .map(|n| (incident.process(n).map(|p| p.host.as_str()), &n.at, n.text.as_str()))
        .collect();
    for at in incident.log.signal(Signal::NvlsMulticast) {
        if at.text.contains("Failed to bind") {
            places.push((None, at, &at.text));
        }
    }
    let Some((host, _, text)) = places.first().copied() else { return };
    let error = ["error ", "failure "]
        .iter()
        .find_map(|k| text.split(k).nth(1))
        .map_or(String::new(), |e| format!(" with CUDA error {}", e.trim_end_matches('.')));
    findings.push(RULE.found(
        Confidence::Certain,
        format!("{}: NVLS multicast set-up failed{error}", host.unwrap_or("a host")),
        "fabric manager or an NVSwitch is in a bad state, multicast slots are exhausted, or the \
         GPUs were not reset after fabric manager restarted",
        "stop the GPU users, restart nvidia-fabricmanager with a GPU reset (`nvidia-smi -r`), or \
         reboot; NCCL_NVLS_ENABLE=0 only hides it, and costs rate",
        incident.exhibits(places.iter().map(|(_, at, _)| *at), 4),
    ));
}
