//! `nic-half-duplex`: a NIC in use runs in half duplex.
//!
//! ## What
//!
//! The driver reports half duplex for an interface that carries data.
//!
//! ## Why
//!
//! Negotiation failed on one side (often a fixed speed on the switch). Collectives send and receive
//! at the same time, which half duplex turns into collisions: a small fraction of the rate is left.
//!
//! ## Example
//!
//! `eth0 of h2 runs in half duplex`
//!
//! ## Remedy
//!
//! Let both sides negotiate: `ethtool -s eth0 autoneg on`, and the same on the switch port.
//!
//! ## Source
//!
//! IEEE 802.3 clause 28.

use crate::evidence::Evidence;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::paths::host_name;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    ..Rule::new("nic-half-duplex", Severity::Warning, "a NIC runs in half duplex")
};

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    for (host, nic) in super::chosen_nics(evidence) {
        if !nic.half_duplex {
            continue;
        }
        let name = host_name(evidence, host);
        let finding = RULE.found(
            Confidence::Certain,
            format!("{} of {name} runs in half duplex", nic.name),
            "speed negotiation failed on one side; sending and receiving at once then collide",
            format!(
                "ethtool -s {} autoneg on on {name}, and automatic negotiation on its switch port",
                nic.name
            ),
            vec![Exhibit::nic(&nic.name, &name, "half duplex")],
        );
        findings.push(super::between_hosts(evidence, finding));
    }
}
