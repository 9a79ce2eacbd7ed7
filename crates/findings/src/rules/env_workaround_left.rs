//! `env-workaround-left`: a work-around variable stayed behind.
//!
//! ## What
//!
//! A switch that turns a fast path off is in force.
//!
//! ## Why
//!
//! NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and their kin are for finding a fault; left in an image they
//! cost most of the speed.
//!
//! ## Example
//!
//! `NCCL_P2P_DISABLE=1 turns peer-to-peer off`
//!
//! ## Remedy
//!
//! Remove it and mend the fault that it was set for.
//!
//! ## Source
//!
//! NCCL user guide, environment variables.

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;
use ncclctl_nccl::doubt::work_around;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new("env-workaround-left", Severity::Warning, "a work-around variable stayed behind")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[work_around::left], findings);
}

/// Switches, the value that turns a path off, and what is lost.
const SWITCHES: &[(&str, &str, &str)] = &[
    ("NCCL_P2P_DISABLE", "1", "NVLink and PCIe copies between the GPUs of a node"),
    ("NCCL_SHM_DISABLE", "1", "shared memory between the ranks of a node"),
    ("NCCL_NET_GDR_LEVEL", "LOC", "GPUDirect RDMA"),
    ("NCCL_P2P_LEVEL", "LOC", "NVLink and PCIe copies between the GPUs of a node"),
];

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    for (name, off, lost) in SWITCHES {
        let Some((value, at)) = incident.setting(name) else { continue };
        if value != *off {
            continue;
        }
        findings.push(RULE.found(
            Confidence::Likely,
            format!("{name}={value} turns off {lost}"),
            "the switch is for finding a fault; left in force it costs most of the speed",
            format!("remove {name} and mend the fault that it was set for"),
            incident.exhibits([at], 1),
        ));
        return;
    }
}
