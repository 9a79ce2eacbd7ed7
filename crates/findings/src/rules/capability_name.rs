//! `capability-name`: a capability by a name that the runtime does not know.
//!
//! ## What
//!
//! A capability of a Kubernetes container is written with `CAP_`, or a name that no kernel has.
//!
//! ## Why
//!
//! The container runtime puts `CAP_` before each name: CAP_IPC_LOCK becomes CAP_CAP_IPC_LOCK, which does
//! not exist and is left out. Docker takes both forms.
//!
//! ## Example
//!
//! `CAP_IPC_LOCK is not given: Kubernetes takes IPC_LOCK`
//!
//! ## Remedy
//!
//! Write the name without `CAP_`.
//!
//! ## Source
//!
//! Kubernetes: security context, capabilities; containerd pkg/cap.

use crate::documents::{Documents, Platform};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "capability-name",
        Severity::Error,
        "a capability by a name that the runtime does not know",
    )
};

/// Names of capabilities(7).
const KNOWN: [&str; 42] = [
    "ALL",
    "AUDIT_CONTROL",
    "AUDIT_READ",
    "AUDIT_WRITE",
    "BLOCK_SUSPEND",
    "BPF",
    "CHECKPOINT_RESTORE",
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "IPC_LOCK",
    "IPC_OWNER",
    "KILL",
    "LEASE",
    "LINUX_IMMUTABLE",
    "MAC_ADMIN",
    "MAC_OVERRIDE",
    "MKNOD",
    "NET_ADMIN",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_RAW",
    "PERFMON",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYSLOG",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_CHROOT",
    "SYS_MODULE",
    "SYS_NICE",
    "SYS_PACCT",
    "SYS_PTRACE",
    "SYS_RAWIO",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "WAKE_ALARM",
];

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        for capability in &container.capabilities {
            let upper = capability.text.to_ascii_uppercase();
            let bare = upper.strip_prefix("CAP_").unwrap_or(&upper);
            let prefixed = bare.len() != upper.len();
            let unknown = !KNOWN.contains(&bare);
            if !unknown && (!prefixed || pod.platform == Platform::Compose) {
                continue;
            }
            if upper.contains('$') || upper.contains('{') {
                continue;
            }
            let (message, remedy, fix) = if unknown {
                let squeezed = bare.replace(['-', '_'], "");
                let near = KNOWN.iter().find(|k| k.replace('_', "") == squeezed);
                let remedy =
                    near.map_or("see capabilities(7)".to_owned(), |n| format!("write {n}"));
                (format!("no capability is called {}", capability.text), remedy, None)
            } else {
                let at = capability.at.clone();
                let edit = set.replace(&at, &capability.text, bare, true);
                (
                    format!("{} is not given: Kubernetes takes {bare}", capability.text),
                    format!("write {bare}"),
                    edit,
                )
            };
            let found = set.say(
                &RULE,
                Confidence::Certain,
                &capability.at,
                message,
                "the container runtime puts CAP_ before the name itself, and leaves out what does not \
                 exist; RDMA then fails as if it had not been asked for",
                remedy,
            );
            findings.push(set.fixed(found, fix));
        }
    }
}
