//! `gdr-disabled`: GPUDirect RDMA is not used.
//!
//! ## What
//!
//! RDMA carries the data, and it goes through host memory.
//!
//! ## Why
//!
//! The chain must hold as a whole: plugin support, peermem module or DMA-BUF, IOMMU off or passed
//! through, GPU and NIC under one PCIe switch (or NCCL_NET_GDR_LEVEL raised), and a GPU that has
//! it.
//!
//! ## Example
//!
//! `no connection of h1 uses GPUDirect: the driver has no peermem for mlx5_0`
//!
//! ## Remedy
//!
//! `modprobe nvidia_peermem`, or DMA-BUF (open kernel modules, kernel 5.12+); check ACS, IOMMU and
//! NCCL_NET_GDR_LEVEL.
//!
//! ## Source
//!
//! NCCL src/transport/net_ib ncclIbGdrSupport, src/graph/paths.cc ncclTopoCheckGdr.

use ncclctl_facts::Facts;
use ncclctl_nccl::log::Transport;

use crate::documents::Documents;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;
use ncclctl_nccl::doubt::verbs;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    documents: Some(documents),
    nodes: Some(nodes),
    ..Rule::new("gdr-disabled", Severity::Warning, "GPUDirect RDMA is not used")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[verbs::gdr_off], findings);
}

/// RDMA ports that work, GPUs, and no way between them.
fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    for node in nodes {
        let g = &node.gpudirect;
        let missing = g.reasons.iter().find(|r| r.starts_with("neither nvidia_peermem"));
        let active = node.rdma.iter().any(|d| d.ports.iter().any(|p| p.active()));
        let (Some(missing), true, Some(false)) = (missing, active, g.ready) else { continue };
        findings.push(RULE.found(
            Confidence::Likely,
            format!("{}: no GPUDirect RDMA: {missing}", node.name),
            "data between GPU and NIC goes through host memory: PCIe and memory are crossed twice, \
             and the processor's side limits the rate",
            "`modprobe nvidia_peermem` on the host, or the open kernel modules with kernel 5.12+",
            vec![Exhibit::fact(format!("{}.gpudirect", node.name), "not ready")],
        ));
    }
}

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    for p in &incident.log.processes {
        if !Incident::uses_verbs(p) {
            continue;
        }
        let net: Vec<_> =
            p.edges.iter().filter(|e| matches!(e.transport, Transport::Net { .. })).collect();
        let used = net.iter().any(|e| e.gdr);
        let off = p.gdr.iter().find(|(_, (enabled, _))| !enabled);
        let level = p.setting("NCCL_NET_GDR_LEVEL").filter(|s| s.value == "LOC" || s.value == "0");
        if used || (net.is_empty() && off.is_none()) {
            continue;
        }
        // sends through host memory are the rule on older GPUs: what is received decides
        if off.is_none() && !net.iter().any(|e| e.send != Some(true)) {
            continue;
        }
        let elsewhere = incident
            .log
            .processes
            .iter()
            .any(|o| o.host == p.host && o.edges.iter().any(|e| e.gdr));
        if elsewhere {
            continue;
        }
        let why = match (off, level) {
            (_, Some(s)) => format!("NCCL_NET_GDR_LEVEL={} forbids it", s.value),
            (Some((device, _)), _) => format!("neither peermem nor DMA-BUF works for {device}"),
            (None, None) if p.gdr.values().any(|(on, _)| *on) => {
                "the driver has it, and GPU and NIC are further apart than NCCL_NET_GDR_LEVEL allows".to_owned()
            }
            (None, None) => "no peermem or DMA-BUF, or GPU and NIC are too far apart".to_owned(),
        };
        let mut places = Vec::new();
        places.extend(off.map(|(_, (_, at))| at));
        places.extend(p.edge_at.get("NET"));
        places.extend(level.map(|s| &s.at));
        findings.push(RULE.found(
            if off.is_some() || level.is_some() { Confidence::Certain } else { Confidence::Likely },
            format!("no connection of {} uses GPUDirect RDMA: {why}", p.host),
            "data between GPU and NIC goes through host memory: PCIe and memory are crossed twice, \
             and the processor's side limits the rate",
            "`modprobe nvidia_peermem` on the host, or DMA-BUF (open kernel modules, kernel 5.12+); \
             check ACS and IOMMU, and the GPU-NIC distance in `nvidia-smi topo -m`",
            incident.exhibits(places, 3),
        ));
        return;
    }
}
