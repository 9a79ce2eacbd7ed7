//! `ipc-lock-inert`: IPC_LOCK does nothing for a user who is not root.
//!
//! ## What
//!
//! IPC_LOCK is added to a container that runs as another user than root.
//!
//! ## Why
//!
//! Added capabilities reach the bounding and inheritable sets; a process of another user has none of them
//! in force, since Kubernetes sets no ambient capabilities. What counts is the memlock limit.
//!
//! ## Example
//!
//! `train runs as user 1000: IPC_LOCK is not in force`
//!
//! ## Remedy
//!
//! Let the container runtime give `LimitMEMLOCK=infinity`, and take the capability out.
//!
//! ## Source
//!
//! capabilities(7); Kubernetes enhancement 2763 (ambient capabilities), not in any release.

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "ipc-lock-inert",
        Severity::Warning,
        "IPC_LOCK does nothing for a user who is not root",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (_, container) in set.containers() {
        let Some(lock) = container.capabilities.iter().find(|c| c.text.ends_with("IPC_LOCK"))
        else {
            continue;
        };
        let user = container.user.as_ref().map(|u| u.text.as_str());
        let name = user.map(|u| u.split(':').next().unwrap_or(u));
        let root = matches!(name, Some("0" | "root")) || container.privileged.is_some();
        let other =
            name.is_some_and(|u| !matches!(u, "0" | "root")) || container.non_root == Some(true);
        if root || !other {
            continue;
        }
        let who = name.map_or("as another user than root".to_owned(), |u| format!("as user {u}"));
        findings.push(set.say(
            &RULE,
            Confidence::Likely,
            &lock.at,
            format!("{} runs {who}: IPC_LOCK is not in force", container.name.text),
            "a capability that is added is only in force for root; what counts for another user is the \
             memlock limit that the container runtime gives",
            "take IPC_LOCK out and see to `LimitMEMLOCK=infinity` in the unit of the container runtime; \
             `ulimit -l` in the container must say unlimited",
        ));
    }
}
