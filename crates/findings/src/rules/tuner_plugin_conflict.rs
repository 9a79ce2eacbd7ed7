//! `tuner-plugin-conflict`: the tuner plugin refuses the algorithm or protocol that is set.
//!
//! ## What
//!
//! A tuner plugin is loaded, and NCCL_ALGO or NCCL_PROTO is set too.
//!
//! ## Why
//!
//! Old versions of the OFI tuner refuse to start then; with others no algorithm is left for a
//! function.
//!
//! ## Example
//!
//! `p4-668: the tuner can not be loaded when NCCL_ALGO or NCCL_PROTO is set`
//!
//! ## Remedy
//!
//! Unset NCCL_ALGO and NCCL_PROTO (some plugins set them themselves), or NCCL_TUNER_PLUGIN=none.
//!
//! ## Source
//!
//! aws-ofi-nccl src/tuner; NCCL src/enqueue.cc.

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "tuner-plugin-conflict",
        Severity::Error,
        "the tuner plugin refuses the algorithm or protocol that is set",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let refused =
        incident.notices(&["tuner plugin can not be loaded", "tuner plugin cannot be loaded"]);
    let none = incident.notices(&["o algorithm/protocol available"]);
    let tuner =
        incident.notices(&["TUNER/Plugin: Using ", "Using tuner plugin", "TUNER/Plugin: Loaded"]);
    let set = incident.setting("NCCL_ALGO").or_else(|| incident.setting("NCCL_PROTO"));
    let first = refused
        .first()
        .or_else(|| none.first().filter(|_| tuner.iter().any(|t| !t.text.contains("internal"))));
    let Some(first) = first else { return };
    let host = incident.process(first).map_or("a host", |p| p.host.as_str());
    let mut places = vec![&first.at];
    places.extend(set.map(|(_, at)| at));
    places.extend(tuner.first().map(|n| &n.at));
    places.extend(
        incident.notices(&["Adding NCCL_PROTO", "Adding NCCL_ALGO"]).first().map(|n| &n.at),
    );
    findings.push(RULE.found(
        Confidence::Certain,
        format!("{host}: the tuner plugin and a fixed algorithm or protocol do not go together"),
        "NCCL_ALGO or NCCL_PROTO is set (by the user, or by the network plugin itself) while a tuner \
         plugin is loaded that refuses it or leaves nothing usable",
        "unset NCCL_ALGO and NCCL_PROTO, update the plugin, or NCCL_TUNER_PLUGIN=none",
        incident.exhibits(places, 4),
    ));
}
