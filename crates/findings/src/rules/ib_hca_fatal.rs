//! `ib-hca-fatal`: the HCA reported a fatal error.
//!
//! ## What
//!
//! The RDMA device itself failed.
//!
//! ## Why
//!
//! Firmware assertion, PCIe error or loss of the device. All its connections are gone.
//!
//! ## Example
//!
//! `container-e301-000112: local catastrophic error`
//!
//! ## Remedy
//!
//! Take the node out; read `dmesg` for mlx5 health and AER lines; check firmware and PCIe slot.
//!
//! ## Source
//!
//! IBV_EVENT_DEVICE_FATAL; mlx5_core health.c.

use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("ib-hca-fatal", Severity::Error, "the HCA reported a fatal error")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let events: Vec<_> = incident
        .notices(&["local catastrophic error", "device fatal", "DEVICE_FATAL", "device error"])
        .into_iter()
        .filter(|n| n.text.contains("event") || n.text.contains("fatal"))
        .collect();
    let kernel = incident.log.signal(Signal::MlxHealth);
    if events.is_empty() && kernel.is_empty() {
        return;
    }
    let host = events
        .first()
        .and_then(|n| incident.process(n))
        .map_or("an RDMA device", |p| p.host.as_str());
    let mut places: Vec<_> = events.iter().map(|n| &n.at).collect();
    places.extend(kernel);
    findings.push(RULE.found(
        Confidence::Certain,
        format!("{host}: the HCA reported a fatal error"),
        "firmware assertion, PCIe error or loss of the device: all its connections are gone",
        "take the node out; read `dmesg` for mlx5 health and PCIe AER lines; check the HCA's \
         firmware and its slot",
        incident.exhibits(places, 4),
    ));
}
