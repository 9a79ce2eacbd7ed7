//! `net-plugin-init-failed`: a network plugin loads, but its set-up fails.
//!
//! ## What
//!
//! The plugin's library was loaded and then refused to start.
//!
//! ## Why
//!
//! The devices, daemons or settings that it needs are not there. NCCL then goes on with its own
//! transports, or fails where the plugin is forced.
//!
//! ## Example
//!
//! `h1: plugin AWS Libfabric was loaded and failed to initialise`
//!
//! ## Remedy
//!
//! Read the plugin's own lines just before; check its devices and daemon inside the container.
//!
//! ## Source
//!
//! NCCL src/plugin/net.cc (2.27.3 and later: `Failed to initialize NET plugin <name>`).

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "net-plugin-init-failed",
        Severity::Error,
        "a network plugin loads, but its set-up fails",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let own = ["IB", "Socket"];
    let failed: Vec<_> = incident
        .notices(&[
            "Failed to initialize NET plugin ",
            "NET/OFI Initialization failed",
            "plugin initialization failed",
            "NET/Plugin: Failed to init",
        ])
        .into_iter()
        .filter(|n| {
            n.text
                .split("Failed to initialize NET plugin ")
                .nth(1)
                .is_none_or(|name| !own.contains(&name.trim()))
        })
        .collect();
    let Some(first) = failed.first() else { return };
    let host = incident.process(first).map_or("a host", |p| p.host.as_str());
    let name = first
        .text
        .split("NET plugin ")
        .nth(1)
        .or_else(|| first.text.strip_prefix("NET/").and_then(|t| t.split([' ', ':']).next()))
        .unwrap_or("the plugin");
    let before: Vec<_> = incident
        .log
        .notices
        .iter()
        .filter(|n| n.process == first.process && n.at.line < first.at.line)
        .filter(|n| n.text.starts_with("NET/") && n.level == ncclctl_nccl::log::Level::Warn)
        .collect();
    let mut places = vec![&first.at];
    places.extend(before.iter().rev().take(2).map(|n| &n.at));
    findings.push(RULE.found(
        Confidence::Certain,
        format!("{host}: plugin {name} was loaded and failed to initialise"),
        "the devices, daemon or settings that the plugin needs are not there in this container",
        "read the plugin's own lines just before; check its devices and daemon inside the container",
        incident.exhibits(places, 4),
    ));
}
