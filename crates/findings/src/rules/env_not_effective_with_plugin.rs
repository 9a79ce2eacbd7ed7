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

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new(
        "env-not-effective-with-plugin",
        Severity::Info,
        "a variable of the built-in transport has no effect because an external plugin is used",
    )
};

/// Where the document shows that EFA or Google's plug-ins carry the data.
fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (_, container) in set.containers() {
        let Some(block) = set.settings(container) else { continue };
        let plugin = if container.efa().is_some() {
            "EFA (aws-ofi-nccl)"
        } else if block.starting(&["NCCL_FASTRAK_"]).is_some() {
            "GPUDirect-TCPXO"
        } else if block.starting(&["NCCL_GPUDIRECTTCPX_"]).is_some() {
            "GPUDirect-TCPX"
        } else {
            continue;
        };
        let Some(idle) = block
            .settings
            .iter()
            .find(|s| s.name.text.starts_with("NCCL_IB_") && s.name.text != "NCCL_IB_DISABLE")
        else {
            continue;
        };
        findings.push(
            set.say(
                &RULE,
                Confidence::Likely,
                &idle.name.at,
                format!("{} has no effect with {plugin}", idle.name.text),
                "the plug-in carries the data and reads its own variables; NCCL_IB_* rule only NCCL's \
                 verbs transport",
                format!("take {} out", idle.name.text),
            )
            .at(Severity::Warning),
        );
    }
}

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
