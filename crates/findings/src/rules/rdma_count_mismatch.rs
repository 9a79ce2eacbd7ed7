//! `rdma-count-mismatch`: fewer network devices than the machine type has.
//!
//! ## What
//!
//! The pod is bound to an AWS instance type whose number of EFA devices is known, takes all its GPUs, and asks
//! for another number of `vpc.amazonaws.com/efa`.
//!
//! ## Why
//!
//! NCCL uses the devices that the container sees: with fewer, the others' bandwidth lies idle.
//!
//! ## Example
//!
//! `4 EFA devices, p5.48xlarge has 32`
//!
//! ## Remedy
//!
//! Ask for all of them.
//!
//! ## Source
//!
//! AWS: EFA-supported instance types, network interfaces.

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "rdma-count-mismatch",
        Severity::Warning,
        "fewer network devices than the machine type has",
    )
};

/// Instance type, GPUs, EFA interfaces.
const TYPES: [(&str, u64, u64); 8] = [
    ("p4d.24xlarge", 8, 4),
    ("p4de.24xlarge", 8, 4),
    ("p5.48xlarge", 8, 32),
    ("p5e.48xlarge", 8, 32),
    ("p5en.48xlarge", 8, 16),
    ("p6-b200.48xlarge", 8, 8),
    ("g5.48xlarge", 8, 1),
    ("g6e.48xlarge", 8, 4),
];

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        let kind =
            pod.node_labels.iter().find(|(k, _)| k.text.ends_with("kubernetes.io/instance-type"));
        let Some((name, gpus, devices)) =
            kind.and_then(|(_, v)| TYPES.iter().find(|t| t.0 == v.text))
        else {
            continue;
        };
        let Some(efa) = container.efa() else { continue };
        let Ok(asked) = efa.amount.text.parse::<u64>() else { continue };
        if container.gpu_count() != Some(*gpus) || asked == *devices {
            continue;
        }
        findings.push(set.say(
            &RULE,
            Confidence::Certain,
            &efa.amount.at,
            format!("{asked} EFA devices, {name} has {devices}"),
            if asked < *devices {
                "the devices that are not asked for are not in the container: their bandwidth lies idle"
            } else {
                "no node of this type can give so many: the pod is never placed"
            },
            format!("write vpc.amazonaws.com/efa: {devices}"),
        ));
    }
}
