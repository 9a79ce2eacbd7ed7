//! `acs-enabled`: PCIe access control redirects peer traffic through the root complex.
//!
//! ## What
//!
//! ACS request or completion redirection is on at a bridge above a GPU.
//!
//! ## Why
//!
//! Peer-to-peer packets then go up to the root complex and the IOMMU instead of straight through
//! the switch: slow, or lost.
//!
//! ## Example
//!
//! `ACS redirection is on at 40:03.1`
//!
//! ## Remedy
//!
//! Turn ACS off on the bridges (`setpci -s BRIDGE ECAP_ACS+0x6.w=0000`, or in the BIOS).
//!
//! ## Source
//!
//! PCI Express specification, ACS capability; NCCL troubleshooting guide.

use ncclctl_facts::Facts;
use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    incident: Some(look),
    ..Rule::new(
        "acs-enabled",
        Severity::Warning,
        "PCIe access control redirects peer traffic through the root complex",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let redirect = incident.log.signal(Signal::AcsRedirect);
    let said: Vec<_> = incident
        .log
        .diagnostics
        .iter()
        .filter(|at| {
            let text = at.text.to_ascii_lowercase();
            text.contains("acs") && (text.contains("enabled") || text.contains("[info]"))
        })
        .collect();
    let mut places: Vec<_> = redirect.iter().collect();
    places.extend(said);
    if places.is_empty() {
        return;
    }
    findings.push(RULE.found(
        Confidence::Certain,
        format!("ACS redirection is on at {} PCIe bridges", places.len()),
        "packets between GPUs (and to NICs) go up to the root complex and the IOMMU instead of \
         straight through the switch: slow, and on some boards lost",
        "turn ACS off on the bridges (`setpci -s BRIDGE ECAP_ACS+0x6.w=0000`, or in the BIOS); \
         NCCL_P2P_DISABLE=1 only as a stop-gap",
        incident.exhibits(places, 4),
    ));
}

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    for node in nodes {
        let bridges = crate::nodes::redirecting(node);
        if bridges.is_empty() || node.gpus().len().max(crate::nodes::gpus_in_tree(node)) < 2 {
            continue;
        }
        let exhibits = bridges
            .iter()
            .map(|b| Exhibit::fact(format!("{}.pci.{b}.acs", node.name), "redirects"))
            .collect();
        findings.push(RULE.found(
            Confidence::Certain,
            format!(
                "{}: ACS redirection is on at {} PCIe bridges above GPUs",
                node.name,
                bridges.len()
            ),
            "packets between GPUs (and to NICs) go up to the root complex and the IOMMU instead of \
             straight through the switch: slow, and on some boards lost",
            format!(
                "turn ACS off on the bridges (`setpci -s {} ECAP_ACS+0x6.w=0000`, or in the BIOS); \
                 NCCL_P2P_DISABLE=1 only as a stop-gap",
                bridges[0]
            ),
            exhibits,
        ));
    }
}
