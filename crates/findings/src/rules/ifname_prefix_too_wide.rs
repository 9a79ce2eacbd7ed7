//! `ifname-prefix-too-wide`: a prefix takes more interfaces than meant.
//!
//! ## What
//!
//! NCCL_SOCKET_IFNAME names an interface, and other interfaces whose names begin the same way were
//! taken too.
//!
//! ## Why
//!
//! Without `=` every entry is a prefix: `bond0` also takes `bond0.2093`. The socket transport then
//! stripes data over all of them, also over one without a route.
//!
//! ## Example
//!
//! `NCCL_SOCKET_IFNAME=bond0 also takes bond0.2093`
//!
//! ## Remedy
//!
//! Use the exact form: NCCL_SOCKET_IFNAME==bond0.
//!
//! ## Source
//!
//! NCCL src/misc/socket.cc matchIfList.

use crate::documents::Documents;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;
use ncclctl_facts::Facts;
use ncclctl_nccl::doubt::interface;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new(
        "ifname-prefix-too-wide",
        Severity::Warning,
        "a prefix takes more interfaces than meant",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[interface::prefix], findings);
}

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    for p in &incident.log.processes {
        let Some(setting) = p.setting("NCCL_SOCKET_IFNAME") else { continue };
        if setting.value.starts_with(['^', '=']) {
            continue;
        }
        let taken: Vec<&str> = p
            .sockets
            .value
            .iter()
            .chain(&p.bootstrap.value)
            .map(|b| b.interface.as_str())
            .collect();
        for entry in setting.value.split(',').filter(|e| e.len() > 1) {
            // a bare prefix such as `eth` is meant as one
            if !taken.contains(&entry) {
                continue;
            }
            let mut more: Vec<&str> =
                taken.iter().copied().filter(|t| *t != entry && t.starts_with(entry)).collect();
            more.dedup();
            if more.is_empty() {
                continue;
            }
            findings.push(RULE.found(
                Confidence::Certain,
                format!("NCCL_SOCKET_IFNAME={} on {} also takes {}", setting.value, p.host, more.join(", ")),
                "without `=` an entry is a prefix, so interfaces whose names go on are used as well",
                format!("write the exact form: NCCL_SOCKET_IFNAME=={entry}"),
                incident.exhibits([&setting.at, &p.sockets.at], 2),
            ));
            return;
        }
    }
}

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    for node in nodes {
        let Some(value) = node.environment.get("NCCL_SOCKET_IFNAME") else { continue };
        if value.starts_with(['^', '=']) {
            continue;
        }
        let names: Vec<&str> =
            node.interfaces.iter().filter(|i| i.running).map(|i| i.name.as_str()).collect();
        for entry in value.split(',').filter(|e| e.len() > 1) {
            // a bare prefix such as `eth` is meant as one
            if !names.contains(&entry) {
                continue;
            }
            let more: Vec<&str> =
                names.iter().copied().filter(|n| *n != entry && n.starts_with(entry)).collect();
            if more.is_empty() {
                continue;
            }
            findings.push(RULE.found(
                Confidence::Certain,
                format!("NCCL_SOCKET_IFNAME={value} on {} also takes {}", node.name, more.join(", ")),
                "without `=` an entry is a prefix, so interfaces whose names go on are used as well",
                format!("write the exact form: NCCL_SOCKET_IFNAME=={entry}"),
                more.iter()
                    .map(|n| Exhibit::nic(*n, &node.name, format!("taken by the prefix {entry}")))
                    .collect(),
            ));
            return;
        }
    }
}
