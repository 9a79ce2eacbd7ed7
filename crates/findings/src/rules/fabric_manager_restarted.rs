//! `fabric-manager-restarted`: fabric manager restarted without a GPU reset.
//!
//! ## What
//!
//! NVLS calls fail with `invalid argument`, or the log shows that fabric manager was restarted
//! under running GPUs.
//!
//! ## Why
//!
//! After a restart the GPUs' fabric registration is stale: NVLink works, multicast does not, until
//! the GPUs are reset.
//!
//! ## Example
//!
//! `hgx23x: NVLS call refused with invalid argument`
//!
//! ## Remedy
//!
//! Stop the GPU users, reset the GPUs (`nvidia-smi -r`) together with fabric manager, or reboot.
//!
//! ## Source
//!
//! NVIDIA Fabric Manager guide; NCCL src/transport/nvls.cc.

use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "fabric-manager-restarted",
        Severity::Error,
        "fabric manager restarted without a GPU reset",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let refused: Vec<_> = incident
        .log
        .warnings()
        .filter(|n| n.file.ends_with("nvls.cc") || n.text.contains("(NVLS) Multicast"))
        .filter(|n| n.text.contains("invalid argument"))
        .collect();
    let restarts = incident.log.signal(Signal::FabricManagerRestart);
    let nvls = incident.log.warnings().any(|n| n.file.ends_with("nvls.cc"));
    let mut places: Vec<_> = refused.iter().map(|n| &n.at).collect();
    if nvls || !refused.is_empty() {
        places.extend(restarts);
    }
    if places.is_empty() {
        return;
    }
    let host =
        refused.first().and_then(|n| incident.process(n)).map_or("a host", |p| p.host.as_str());
    findings.push(RULE.found(
        if restarts.is_empty() { Confidence::Likely } else { Confidence::Certain },
        format!("{host}: the GPUs refuse multicast as after a fabric manager restart"),
        "fabric manager was stopped and started under running GPUs; their fabric registration is \
         stale until a reset. `systemctl status nvidia-fabricmanager` against `uptime` settles it",
        "stop the GPU users and reset the GPUs together with fabric manager (`nvidia-smi -r`), or \
         reboot",
        incident.exhibits(places, 4),
    ));
}
