//! `env-not-effective-with-plugin`: a variable of the built-in transport has no effect because an external plugin is used.
//!
//! ## What
//!
//! NCCL_IB_ settings are in force while an external network plugin carries the data.
//!
//! ## Why
//!
//! The OFI, TCPX and other plugins read their own variables; NCCL_IB_* and NCCL_SOCKET_NTHREADS
//! rule only NCCL's own transports.
//!
//! ## Example
//!
//! `NCCL_IB_TIMEOUT has no effect with AWS Libfabric`
//!
//! ## Remedy
//!
//! Remove it, or use the plugin's own variable.
//!
//! ## Source
//!
//! NCCL src/transport/net_ib; aws-ofi-nccl README.

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "env-not-effective-with-plugin",
        Severity::Info,
        "a variable of the built-in transport has no effect because an external plugin is used",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    for p in &incident.log.processes {
        let network = p.network.value.as_str();
        if network.is_empty() || network == "Socket" || Incident::uses_verbs(p) {
            continue;
        }
        let idle = p.settings.iter().find(|(name, _)| {
            name.starts_with("NCCL_IB_") && name.as_str() != "NCCL_IB_DISABLE"
                || matches!(name.as_str(), "NCCL_SOCKET_NTHREADS" | "NCCL_NSOCKS_PERTHREAD")
        });
        let Some((name, setting)) = idle else { continue };
        findings.push(
            RULE.found(
                Confidence::Likely,
                format!("{name}={} has no effect with {network}", setting.value),
                "the plugin carries the data and reads its own variables; this one belongs to NCCL's \
                 built-in transport",
                "remove it, or use the plugin's own variable",
                incident.exhibits([&setting.at, &p.network.at], 2),
            )
            .at(Severity::Warning),
        );
        return;
    }
}
