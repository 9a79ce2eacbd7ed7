//! `rdma-registration-kernel`: the kernel refuses RDMA memory registration.
//!
//! ## What
//!
//! Registration fails although the locked-memory limit is not the reason.
//!
//! ## Why
//!
//! GPU memory without peermem or DMA-BUF support, an IOMMU or kernel bug, or a device limit on
//! regions.
//!
//! ## Example
//!
//! `h1: ibv_reg_mr_iova2 failed: Bad address`
//!
//! ## Remedy
//!
//! Check nvidia_peermem or the open kernel modules (DMA-BUF), kernel version, and `dmesg`;
//! NCCL_NET_GDR_LEVEL=LOC confirms it.
//!
//! ## Source
//!
//! ibv_reg_mr(3), ibv_reg_dmabuf_mr(3).

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "rdma-registration-kernel",
        Severity::Error,
        "the kernel refuses RDMA memory registration",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let refused: Vec<_> = incident
        .notices(&["ibv_reg_mr", "ibv_reg_dmabuf_mr", "fi_mr_reg"])
        .into_iter()
        .filter(|n| n.text.contains("fail"))
        .filter(|n| {
            let memory = n.text.contains("Cannot allocate memory");
            !memory || incident.memlock_unlimited()
        })
        .collect();
    let Some(first) = refused.first() else { return };
    let host = incident.process(first).map_or("a host", |p| p.host.as_str());
    let what = ncclctl_nccl::log::failure::call(&first.text)
        .map_or(first.text.clone(), |(name, error)| format!("{name} failed: {error}"));
    findings.push(RULE.found(
        Confidence::Likely,
        format!("{host}: {what}"),
        "the kernel refused to register this memory, and the locked-memory limit is not the reason: \
         GPU memory without peermem or DMA-BUF, an IOMMU or kernel fault, or too many regions",
        "check `lsmod | grep nvidia_peermem` or the open kernel modules (DMA-BUF), and `dmesg`; a run \
         with NCCL_NET_GDR_LEVEL=LOC that works confirms it",
        incident.exhibits(refused.iter().map(|n| &n.at), 3),
    ));
}
