//! `topo-file-other-machine`: the topology or graph file describes another machine.
//!
//! ## What
//!
//! The file that NCCL was given names devices that are not here.
//!
//! ## Why
//!
//! NCCL_TOPO_FILE and NCCL_GRAPH_FILE come from /etc/nccl.conf or an image; they fit one machine
//! type and one set of GPUs.
//!
//! ## Example
//!
//! `XML Import Channel : dev 3 not found`
//!
//! ## Remedy
//!
//! Unset NCCL_GRAPH_FILE and NCCL_TOPO_FILE (also in /etc/nccl.conf), or use the file of this
//! machine type.
//!
//! ## Source
//!
//! NCCL src/graph/search.cc, topo.cc.

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "topo-file-other-machine",
        Severity::Error,
        "the topology or graph file describes another machine",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let said = incident.notices(&["XML Import Channel", "but that NIC is not available for rank"]);
    let file = incident.setting("NCCL_TOPO_FILE").or_else(|| incident.setting("NCCL_GRAPH_FILE"));
    let lost = incident.notices(&["Could not find a path for pattern"]);
    let first = said.first().copied().or_else(|| lost.first().copied().filter(|_| file.is_some()));
    let Some(first) = first else { return };
    let host = incident.process(first).map_or("a host", |p| p.host.as_str());
    let mut places = vec![&first.at];
    places.extend(file.map(|(_, at)| at));
    findings.push(RULE.found(
        if said.is_empty() { Confidence::Possible } else { Confidence::Certain },
        format!("{host}: {}", first.text),
        "the topology or graph file in force was made for another machine type or another set of GPUs",
        "unset NCCL_TOPO_FILE and NCCL_GRAPH_FILE (look into /etc/nccl.conf and ~/.nccl.conf too), or \
         use the file of this machine type",
        incident.exhibits(places, 3),
    ));
}
