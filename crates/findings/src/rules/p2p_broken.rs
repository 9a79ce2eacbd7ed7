//! `p2p-broken`: peer-to-peer between GPUs does not work.
//!
//! ## What
//!
//! The driver or CUDA refuses peer access between GPUs that should have it.
//!
//! ## Why
//!
//! A dead NVLink, fabric manager down, IOMMU or ACS in the way, a hypervisor that forbids it, or
//! consumer GPUs without P2P.
//!
//! ## Example
//!
//! `P2P is off between NVLink-connected GPUs 0 and 1`
//!
//! ## Remedy
//!
//! `nvidia-smi topo -p2p n`, `nvidia-smi nvlink -s`; mend what they show. NCCL_P2P_DISABLE=1 is a
//! stop-gap only.
//!
//! ## Source
//!
//! NCCL src/graph/paths.cc, src/transport/p2p.cc; NVML P2P status.

use ncclctl_facts::Facts;
use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    incident: Some(look),
    ..Rule::new("p2p-broken", Severity::Error, "peer-to-peer between GPUs does not work")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let hard = incident.notices(&[
        "P2P is disabled between NVLINK connected GPUs",
        "failed to peer with device",
        "peer access is not supported",
        "failed to open CUDA IPC handle",
        "failed to get CUDA IPC handle",
        "cudaIpcOpenMemHandle failed",
        "Cuda failure 217",
    ]);
    let mut places: Vec<_> = hard.iter().map(|n| &n.at).collect();
    places.extend(incident.log.signal(Signal::PeerAccess));
    if !places.is_empty() {
        let host =
            hard.first().and_then(|n| incident.process(n)).map_or("a host", |p| p.host.as_str());
        let text = hard.first().map_or("CUDA refuses peer access", |n| {
            n.text.split(['.', '\n']).next().unwrap_or(&n.text)
        });
        findings.push(RULE.found(
            Confidence::Certain,
            format!("{host}: {text}"),
            "the driver refuses peer access: a dead NVLink, fabric manager down, IOMMU or ACS in \
             the way, or a hypervisor that forbids it",
            "look at `nvidia-smi topo -p2p n`, `nvidia-smi nvlink -s` and fabric manager; \
             NCCL_P2P_DISABLE=1 is a stop-gap only",
            incident.exhibits(places, 3),
        ));
        return;
    }
    let diagnosis = incident
        .log
        .diagnostics
        .iter()
        .find(|at| at.text.contains("GPU-to-GPU peer accesses passed"));
    if let Some(at) = diagnosis {
        findings.push(RULE.found(
            Confidence::Likely,
            at.text.split("p2p: ").nth(1).unwrap_or("some peer accesses failed").to_owned(),
            "NCCL's own check of peer access between the GPUs did not pass on every pair",
            "look at `nvidia-smi topo -p2p n` for the pairs, then at IOMMU, ACS and NVLink state",
            incident.exhibits([at], 1),
        ));
    }
}

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    for node in nodes {
        let bridges = crate::nodes::redirecting(node);
        let nvlink = node
            .topology
            .paths
            .iter()
            .flatten()
            .any(|p| matches!(p, ncclctl_facts::topology::Path::Nvlink(_)));
        // redirected and translated: only with an IOMMU at work do packets go astray
        if bridges.is_empty() || nvlink || node.gpudirect.iommu == Some(false) {
            continue;
        }
        let Some((a, b)) = crate::nodes::first_gpus(node) else { continue };
        findings.push(
            RULE.found(
                Confidence::Likely,
                format!("{}: {a} and {b} reach each other over PCIe only, and ACS redirects that", node.name),
                "peer access is offered by the driver, its packets are sent to the root complex: an \
                 all-reduce hangs or is slow",
                "turn ACS off on the bridges above the GPUs; until then NCCL_P2P_DISABLE=1",
                bridges
                    .iter()
                    .map(|b| Exhibit::fact(format!("{}.pci.{b}.acs", node.name), "redirects"))
                    .collect(),
            )
            .at(Severity::Warning),
        );
    }
    for node in nodes {
        let Some(driver) = &node.gpu else { continue };
        for peers in &driver.peers {
            let linked = node.gpus().iter().any(|g| g.index == peers.a && g.nvlink_count() > 0);
            // without NVLink a driver refuses by design on many boards
            if !linked {
                continue;
            }
            findings.push(RULE.found(
                Confidence::Certain,
                format!(
                    "{}: the driver refuses peer access between GPU{} and GPU{} ({}), which have NVLink",
                    node.name, peers.a, peers.b, peers.read
                ),
                "NCCL ends init when GPUs that are joined by NVLink can not reach each other",
                "look at the kernel log for NVLink and Xid errors, restart the fabric manager, reset the GPUs",
                vec![Exhibit::fact(format!("{}.gpu.peers", node.name), &peers.read)],
            ));
            break;
        }
    }
}
