//! `secret-in-env`: a secret in plain text.
//!
//! ## What
//!
//! A variable whose name says token, password or key has a literal value in a Dockerfile, Compose file,
//! manifest or env file of a container. The value is not shown.
//!
//! ## Why
//!
//! Whoever reads the file, the image's history or `kubectl get -o yaml` has it.
//!
//! ## Example
//!
//! `HF_TOKEN stands in plain text`
//!
//! ## Remedy
//!
//! Use a Secret with `secretKeyRef`, a Compose secret, or `RUN --mount=type=secret`.
//!
//! ## Source
//!
//! Kubernetes: Secrets; Docker: build secrets.

use crate::documents::secrets::{is_secret, stands_in};
use crate::documents::{Documents, Origin};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new("secret-in-env", Severity::Warning, "a secret in plain text")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for block in &set.blocks {
        // a Secret is the place for it, an env file of a host too
        if matches!(
            block.origin,
            Origin::ConfigMap | Origin::EnvFile | Origin::Shell | Origin::Python
        ) {
            let psk = block.get("NCCL_PSK").filter(|_| block.origin == Origin::ConfigMap);
            if psk.is_none() {
                continue;
            }
        }
        for setting in block.settings.iter().filter(|s| !s.open) {
            if !is_secret(&setting.name.text) || stands_in(&setting.value.text) {
                continue;
            }
            findings.push(set.say(
                &RULE,
                Confidence::Likely,
                &setting.name.at,
                format!("{} stands in plain text", setting.name.text),
                match block.origin {
                    Origin::Image => "it is in the image's history, for everybody who can pull it",
                    _ => "everybody who may read the file or the object has it",
                },
                match block.origin {
                    Origin::Image => "take it out, and give it when the container starts; at build time `RUN --mount=type=secret`",
                    Origin::Compose => "use `secrets:`, or `${NAME}` from the shell",
                    _ => "write `valueFrom: {secretKeyRef: {name: NAME, key: KEY}}`",
                },
            ));
        }
    }
}
