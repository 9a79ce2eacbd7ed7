//! `hca-baked-into-image`: RDMA devices of one machine type are fixed in an image.
//!
//! ## What
//!
//! A Dockerfile sets NCCL_IB_HCA to device names with a number or port.
//!
//! ## Why
//!
//! Names and numbers of devices differ between machine types (mlx5_0, ibp24s0, rocep1s0f0). Where none
//! matches, NCCL takes sockets without a warning.
//!
//! ## Example
//!
//! `NCCL_IB_HCA=mlx5_0:1,mlx5_1:1 is fixed in the image`
//!
//! ## Remedy
//!
//! Take it out, or leave a prefix: `NCCL_IB_HCA=mlx5`.
//!
//! ## Source
//!
//! NCCL src/transport/net_ib/init.cc.

use crate::documents::{Documents, Origin};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "hca-baked-into-image",
        Severity::Warning,
        "RDMA devices of one machine type are fixed in an image",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for block in set.blocks.iter().filter(|b| b.origin == Origin::Image) {
        let Some(setting) = block.get("NCCL_IB_HCA") else { continue };
        let value = setting.value.text.as_str();
        let body = value.trim_start_matches(['^', '=']);
        let numbered = body.split(',').any(|e| {
            let name = e.split(':').next().unwrap_or_default();
            e.contains(':')
                || name.rsplit('_').next().is_some_and(|t| t.parse::<u32>().is_ok())
                    && name.contains('_')
        });
        if !numbered || value.contains('$') {
            continue;
        }
        findings.push(set.say(
            &RULE,
            Confidence::Likely,
            &setting.value.at,
            format!("NCCL_IB_HCA={value} is fixed in the image"),
            "numbers of devices are a matter of the machine; where none matches, NCCL takes sockets \
             without a warning",
            "take it out of the image and set it per cluster, or leave the prefix alone: NCCL_IB_HCA=mlx5",
        ));
    }
}
