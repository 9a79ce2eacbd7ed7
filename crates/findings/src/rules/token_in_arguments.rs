//! `token-in-arguments`: a secret on a command line.
//!
//! ## What
//!
//! A container's command or arguments hold a token or password after its flag.
//!
//! ## Why
//!
//! Arguments are seen in `ps`, in `kubectl get -o yaml` and in logs.
//!
//! ## Example
//!
//! `--hf-token is given on the command line`
//!
//! ## Remedy
//!
//! Give it by a Secret in the environment or a file.
//!
//! ## Source
//!
//! Kubernetes: Secrets.

use crate::documents::Documents;
use crate::documents::secrets::{FLAGS, stands_in};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("token-in-arguments", Severity::Warning, "a secret on a command line")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (_, container) in set.containers() {
        for (index, word) in container.command.iter().enumerate() {
            let (flag, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
            if !FLAGS.contains(&flag) {
                continue;
            }
            let value = if value.is_empty() {
                container.command.get(index + 1).map_or("", |t| t.text.as_str())
            } else {
                value
            };
            if stands_in(value) {
                continue;
            }
            findings.push(set.say(
                &RULE,
                Confidence::Likely,
                &word.at,
                format!("{flag} is given on the command line"),
                "arguments are seen by everybody who may list processes or read the object",
                "give it by a Secret: `env` with secretKeyRef, and $(NAME) in the argument",
            ));
        }
    }
}
