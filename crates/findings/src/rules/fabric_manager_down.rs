//! `fabric-manager-down`: nvidia-fabricmanager is not running.
//!
//! ## What
//!
//! CUDA says `system not yet initialized` (802): the NVSwitch fabric was never set up.
//!
//! ## Why
//!
//! On HGX and DGX machines CUDA waits for fabric manager. After a reboot or a driver update it is
//! often disabled or of another version.
//!
//! ## Example
//!
//! `hgx-r1-02: CUDA is not initialised (802)`
//!
//! ## Remedy
//!
//! `systemctl enable --now nvidia-fabricmanager`, of exactly the driver's version.
//!
//! ## Source
//!
//! cudaErrorSystemNotReady (802).

use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("fabric-manager-down", Severity::Error, "nvidia-fabricmanager is not running")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let notices = incident.notices(&["system not yet initialized", "uda failure 802"]);
    let mut places: Vec<_> = notices.iter().map(|n| &n.at).collect();
    places.extend(incident.log.signal(Signal::FabricNotReady));
    places.extend(incident.log.signal(Signal::FabricManagerDown));
    let Some(first) = places.first() else { return };
    let host = notices
        .first()
        .and_then(|n| incident.process(n))
        .map(|p| p.host.clone())
        .or_else(|| {
            let head = first.text.trim_start().split(':').next()?;
            (!head.contains(' ') && !head.is_empty()).then(|| head.to_owned())
        })
        .unwrap_or_else(|| "a host".to_owned());
    findings.push(RULE.found(
        Confidence::Likely,
        format!("{host}: the GPUs wait for fabric manager (CUDA error 802)"),
        "on machines with NVSwitch CUDA is not ready before nvidia-fabricmanager has set up the \
         fabric; it is stopped, or of another version than the driver",
        "`systemctl enable --now nvidia-fabricmanager` (same version as the driver), check \
         `nvidia-smi -q | grep -A2 Fabric` for state Completed",
        incident.exhibits(places, 4),
    ));
}
