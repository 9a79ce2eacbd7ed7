//! `k8s-env-not-expanded`: a variable reference stayed literal.
//!
//! ## What
//!
//! A setting holds the text of a reference instead of its value.
//!
//! ## Why
//!
//! Kubernetes expands only $(NAME), and only names defined before; docker env files expand nothing.
//!
//! ## Example
//!
//! `NCCL_SOCKET_IFNAME=$IFNAME`
//!
//! ## Remedy
//!
//! Write $(IFNAME) after its definition, or the value itself.
//!
//! ## Source
//!
//! Kubernetes: dependent environment variables.

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("k8s-env-not-expanded", Severity::Error, "a variable reference stayed literal")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    for p in &incident.log.processes {
        for (name, setting) in &p.settings {
            let value = setting.value.trim_start_matches(['^', '=']);
            if value.starts_with("$(")
                || value.starts_with("${")
                || (value.starts_with('$') && value.len() > 1)
            {
                findings.push(RULE.found(
                    Confidence::Certain,
                    format!("{name} is the literal text {} on {}", setting.value, p.host),
                    "nothing expanded the reference: Kubernetes expands $(NAME) only, for names \
                     defined before it; env files expand nothing",
                    "write $(NAME) after the definition of NAME, or the value itself",
                    incident.exhibits([&setting.at], 1),
                ));
                return;
            }
        }
    }
}
