//! `master-addr-other-network`: the rendezvous address does not lead to the other pods.
//!
//! ## What
//!
//! MASTER_ADDR is a loopback address in a job of several pods, or an address of Docker's own bridge.
//!
//! ## Why
//!
//! Every worker then looks for rank 0 on itself, and waits until the time is out.
//!
//! ## Example
//!
//! `MASTER_ADDR=127.0.0.1 in a job of 4 pods`
//!
//! ## Remedy
//!
//! Write the name of the master's Service or pod, or take the line out where the operator sets it.
//!
//! ## Source
//!
//! PyTorch: torch.distributed, environment variable initialization.

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "master-addr-other-network",
        Severity::Warning,
        "the rendezvous address does not lead to the other pods",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        let Some(setting) = set.value(container, "MASTER_ADDR") else { continue };
        let address = setting.value.text.as_str();
        let local = address == "localhost" || address.starts_with("127.") || address == "::1";
        let bridge = address.starts_with("172.17.");
        if address == "0.0.0.0" || !(local || bridge) || !pod.several(set) {
            continue;
        }
        let pods: u64 = pod.together(set).iter().map(|p| p.replicas.unwrap_or(1)).sum();
        findings.push(
            set.say(
                &RULE,
                Confidence::Certain,
                &setting.value.at,
                format!("MASTER_ADDR={address} in a job of {pods} pods"),
                if local {
                    "each pod looks for rank 0 on itself"
                } else {
                    "172.17.0.0/16 is Docker's bridge, which no other host reaches"
                },
                "write the name of the master's pod or headless Service, or take it out: PyTorchJob, \
                 TrainJob and JobSet set it",
            )
            .at(Severity::Error),
        );
    }
}
