//! `hca-prefix-too-wide`: a prefix takes more RDMA devices than meant.
//!
//! ## What
//!
//! NCCL_IB_HCA names a device, and others whose names begin the same way are used too.
//!
//! ## Why
//!
//! Without `=` every entry is a prefix: `mlx5_1` also takes `mlx5_10` to `mlx5_19`, often storage
//! or management ports.
//!
//! ## Example
//!
//! `NCCL_IB_HCA=mlx5_1 also takes mlx5_10, mlx5_11`
//!
//! ## Remedy
//!
//! Use the exact form: NCCL_IB_HCA==mlx5_1.
//!
//! ## Source
//!
//! NCCL src/transport/net_ib (ncclIbInit), src/misc/utils.cc matchIfList.

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;
use ncclctl_nccl::doubt::verbs;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new(
        "hca-prefix-too-wide",
        Severity::Warning,
        "a prefix takes more RDMA devices than meant",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[verbs::hca_prefix], findings);
}

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    for p in &incident.log.processes {
        let Some(setting) = p.setting("NCCL_IB_HCA") else { continue };
        if setting.value.starts_with(['^', '=']) {
            continue;
        }
        for entry in setting.value.split(',') {
            let name = entry.split(':').next().unwrap_or(entry);
            // `mlx5` and `ibp` are meant as prefixes; a number at the end means one device
            if !name.ends_with(|c: char| c.is_ascii_digit()) || name.ends_with("mlx5") {
                continue;
            }
            let more: Vec<&str> = p
                .ports
                .value
                .iter()
                .map(|d| d.device.as_str())
                .filter(|d| {
                    d.strip_prefix(name)
                        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
                })
                .collect();
            let exact = p.ports.value.iter().any(|d| d.device == name);
            if more.is_empty() || !exact {
                continue;
            }
            findings.push(RULE.found(
                Confidence::Certain,
                format!(
                    "NCCL_IB_HCA={} on {} also takes {}",
                    setting.value,
                    p.host,
                    more.join(", ")
                ),
                "without `=` an entry is a prefix, so devices whose numbers go on are used as well",
                format!("write the exact form: NCCL_IB_HCA=={}", setting.value),
                incident.exhibits([&setting.at, &p.ports.at], 2),
            ));
            return;
        }
    }
}
