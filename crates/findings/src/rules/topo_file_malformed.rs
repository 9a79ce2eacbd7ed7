//! `topo-file-malformed`: the topology file lacks attributes.
//!
//! ## What
//!
//! NCCL could not read the topology XML that it was given.
//!
//! ## Why
//!
//! The file must give what detection can not fill in on this machine: arch and affinity of every
//! cpu node, busid of every pci node.
//!
//! ## Example
//!
//! `Attribute arch of node cpu not found`
//!
//! ## Remedy
//!
//! Use the provider's file for this instance type and NCCL version, or dump one with
//! NCCL_TOPO_DUMP_FILE.
//!
//! ## Source
//!
//! NCCL src/graph/xml.h, xml.cc.

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("topo-file-malformed", Severity::Error, "the topology file lacks attributes")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let said: Vec<_> = incident
        .notices(&[
            "Attribute ",
            "XML Parse",
            "XML Mismatch",
            "has wrong version",
            "XML parser is limited",
            "too many XML",
            "could not find CPU numa ID",
        ])
        .into_iter()
        .filter(|n| n.level == ncclctl_nccl::log::Level::Warn)
        .filter(|n| !n.text.starts_with("Attribute") || n.text.contains("not found"))
        .collect();
    let Some(first) = said.first() else { return };
    let host = incident.process(first).map_or("a host", |p| p.host.as_str());
    let file = incident.setting("NCCL_TOPO_FILE");
    let plugin = incident.notices(&["NCCL_TOPO_FILE", "Loading topology file"]);
    let named = file.map_or(String::new(), |(v, _)| format!(" in {v}"));
    let mut places: Vec<_> = said.iter().map(|n| &n.at).take(2).collect();
    places.extend(file.map(|(_, at)| at));
    places.extend(plugin.first().map(|n| &n.at));
    findings.push(RULE.found(
        Confidence::Certain,
        format!("{host}: {}{named}", first.text),
        "the topology file (set by hand, by /etc/nccl.conf, or by the network plugin) lacks what \
         detection can not fill in here",
        "use the provider's file for this instance type and NCCL version, unset NCCL_TOPO_FILE, or \
         make one with NCCL_TOPO_DUMP_FILE",
        incident.exhibits(places, 4),
    ));
}
