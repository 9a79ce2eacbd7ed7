//! `mnnvl-init-crash`: a rank crashes while multi-node NVLink is set up.
//!
//! ## What
//!
//! A process died with a segmentation fault, and the last that NCCL said was about the NVLink
//! domain.
//!
//! ## Why
//!
//! Seen on large NVLink domains (GB200 NVL72) with NCCL 2.27 to 2.30 when many ranks of a clique
//! enrol.
//!
//! ## Example
//!
//! `gb-07 crashed after its MNNVL lines`
//!
//! ## Remedy
//!
//! To confirm: NCCL_MNNVL_ENABLE=0. Update NCCL; check IMEX and fabric health.
//!
//! ## Source
//!
//! NVIDIA/nccl reports of crashes in clique enrolment; NCCL src/init.cc, mnnvl.cc.

use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "mnnvl-init-crash",
        Severity::Error,
        "a rank crashes while multi-node NVLink is set up",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let crash = incident.log.signal(Signal::Crash);
    let Some(crashed) = crash.first() else { return };
    let domain = incident.notices(&["fabric UUID", "MNNVL 1", "cliqueSize", "cliqueId"]);
    // a fabric id of zero is a machine without such a domain
    let Some(last) = domain.iter().rev().find(|n| !n.text.contains("UUID 0.0 ")) else { return };
    if incident
        .log
        .processes
        .iter()
        .any(|p| p.complete && p.host == incident.process(last).map_or("", |p| p.host.as_str()))
    {
        return;
    }
    let host = incident.process(last).map_or("a host", |p| p.host.as_str());
    findings.push(RULE.found(
        Confidence::Likely,
        format!("{host} crashed while the NVLink domain was set up"),
        "NCCL was enrolling the ranks of a multi-node NVLink clique when the process died",
        "run once with NCCL_MNNVL_ENABLE=0 to confirm; update NCCL; check `nvidia-imex-ctl -N` and \
         the fabric state in `nvidia-smi -q`",
        incident.exhibits([&last.at, crashed], 3),
    ));
}
