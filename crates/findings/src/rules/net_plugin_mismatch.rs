//! `net-plugin-mismatch`: the network plugin differs between hosts.
//!
//! ## What
//!
//! Some ranks use one network, others another.
//!
//! ## Why
//!
//! All ranks must use the same network: the two do not speak to each other, and set-up waits for
//! ever or fails.
//!
//! ## Example
//!
//! `h1 uses IBext_v8, h2 uses IB`
//!
//! ## Remedy
//!
//! Use the same image and plugin on all hosts, or force one: NCCL_NET=IB with NCCL_NET_PLUGIN=none.
//!
//! ## Source
//!
//! NCCL src/plugin/net.cc.

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("net-plugin-mismatch", Severity::Error, "the network plugin differs between hosts")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let mut seen: Vec<(&str, &str, &ncclctl_nccl::log::At)> = Vec::new();
    for p in &incident.log.processes {
        let network = p.network.value.as_str();
        if network.is_empty() || network == "Socket" || p.host.is_empty() {
            continue;
        }
        if !seen.iter().any(|(n, _, _)| *n == network) {
            seen.push((network, &p.host, &p.network.at));
        }
    }
    let [(a, host_a, at_a), (b, host_b, at_b), ..] = seen.as_slice() else { return };
    if host_a == host_b {
        return;
    }
    findings.push(RULE.found(
        Confidence::Certain,
        format!("{host_a} uses {a}, {host_b} uses {b}"),
        "all ranks must use the same network; these two do not speak to each other",
        "use the same image and plugin on all hosts, or force one (NCCL_NET=IB with \
         NCCL_NET_PLUGIN=none)",
        incident.exhibits([*at_a, *at_b], 2),
    ));
}
