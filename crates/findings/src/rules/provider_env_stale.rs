//! `provider-env-stale`: a provider's variable that its present software does not need.
//!
//! ## What
//!
//! Variables of old guides for EFA, beside an EFA resource or FI_PROVIDER=efa.
//!
//! ## Why
//!
//! Libfabric and aws-ofi-nccl choose these themselves now; some of the old values cost speed.
//!
//! ## Example
//!
//! `FI_EFA_USE_DEVICE_RDMA=1 is chosen by libfabric itself`
//!
//! ## Remedy
//!
//! Take it out.
//!
//! ## Source
//!
//! aws-ofi-nccl and libfabric EFA provider documentation.

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "provider-env-stale",
        Severity::Info,
        "a provider's variable that its present software does not need",
    )
};

/// Variable, and why it is not needed.
const OLD: [(&str, &str); 4] = [
    ("FI_EFA_USE_DEVICE_RDMA", "libfabric 1.18 and later use RDMA wherever the device can"),
    ("FI_EFA_FORK_SAFE", "kernels from 5.13 on are safe; where it acts, registration gets slower"),
    ("RDMAV_FORK_SAFE", "kernels from 5.13 on are safe; where it acts, registration gets slower"),
    ("FI_EFA_ENABLE_SHM_TRANSFER", "NCCL moves data within a node itself"),
];

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for block in &set.blocks {
        let efa = block.get("FI_PROVIDER").is_some_and(|s| s.value.text == "efa")
            || block
                .container
                .and_then(|(p, c)| set.pods.get(p)?.containers.get(c))
                .is_some_and(|c| c.efa().is_some());
        if !efa {
            continue;
        }
        for (name, why) in OLD {
            let Some(setting) = block.get(name) else { continue };
            findings.push(set.say(
                &RULE,
                Confidence::Possible,
                &setting.name.at,
                format!("{name}={} is of an old guide", setting.value.text),
                why,
                format!("take {name} out, where the image has a present EFA installer"),
            ));
        }
    }
}
