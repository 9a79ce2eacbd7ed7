//! `gloo-ifname-syntax`: GLOO_SOCKET_IFNAME holds NCCL syntax.
//!
//! ## What
//!
//! Gloo looked for an interface whose name is an NCCL pattern.
//!
//! ## Why
//!
//! Gloo takes one or more exact names; `^`, `=` and prefixes are NCCL's own.
//!
//! ## Example
//!
//! `gloo finds no interface named ^lo,docker0`
//!
//! ## Remedy
//!
//! Write an exact name: GLOO_SOCKET_IFNAME=eth0.
//!
//! ## Source
//!
//! gloo transport/tcp/device.cc: `Unable to find address for`.

use ncclctl_nccl::log::Signal;

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;
use ncclctl_nccl::doubt::interface;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new("gloo-ifname-syntax", Severity::Error, "GLOO_SOCKET_IFNAME holds NCCL syntax")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[interface::gloo], findings);
}

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    for at in incident.log.signal(Signal::GlooInterface) {
        let value = at.text.split(" for: ").nth(1).unwrap_or("").trim();
        let value = value.split([' ', '\'', '"']).next().unwrap_or(value);
        if value.starts_with(['^', '=']) || value.contains('*') {
            findings.push(RULE.found(
                Confidence::Certain,
                format!("gloo finds no interface named {value}"),
                "gloo takes exact interface names; ^, = and prefixes are NCCL's syntax",
                "write the name: GLOO_SOCKET_IFNAME=eth0 (`ip -br addr`)",
                incident.exhibits([at], 1),
            ));
            return;
        }
    }
}
