//! `single-nic-used`: one NIC of several carries the traffic.
//!
//! ## What
//!
//! A host has several NICs for data, and all but one are idle (under 5% of the busiest) while the
//! trial runs.
//!
//! ## Why
//!
//! `NCCL_IB_HCA` or `NCCL_SOCKET_IFNAME` names one of them, only one has a working address, or the
//! topology that the container sees puts all GPUs next to one NIC. The others' bandwidth is lost.
//!
//! ## Example
//!
//! `only mlx5_0 of 4 NICs of h1 carries traffic`
//!
//! ## Remedy
//!
//! Name all of them (`NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_2,mlx5_3`), or name none.
//!
//! ## Source
//!
//! Byte counters of each NIC over the steady part.

use crate::evidence::Evidence;
use crate::figures::gbs;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::paths::host_name;
use crate::rule::Rule;
use ncclctl_nccl::log::Transport;
use std::collections::BTreeSet;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    incident: Some(incident),
    ..Rule::new("single-nic-used", Severity::Warning, "one NIC of several carries the traffic")
};

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    for host in 0..evidence.hosts.len() {
        let rates = super::nic_rates(evidence, host);
        let Some((busiest, most)) = rates.first() else { continue };
        let idle = rates.iter().skip(1).filter(|r| r.1 < super::IDLE_SHARE * most).count();
        if rates.len() < 2 || *most <= 0.0 || idle + 1 < rates.len() {
            continue;
        }
        let name = host_name(evidence, host);
        let why = ["NCCL_IB_HCA", "NCCL_SOCKET_IFNAME"]
            .iter()
            .find_map(|k| evidence.settings.get(*k).map(|v| format!("{k}={v} is set")));
        findings.push(RULE.found(
            Confidence::Likely,
            format!("only {busiest} of {} NICs of {name} carries traffic", rates.len()),
            why.unwrap_or_else(|| {
                "the others are not selected, have no address, or are far from every GPU".to_owned()
            }),
            "name all NICs, or none, in NCCL_IB_HCA (NCCL_SOCKET_IFNAME for sockets)",
            rates.iter().map(|(nic, rate)| Exhibit::nic(nic, &name, gbs(rate / 1e9))).collect(),
        ));
    }
}

fn incident(incident: &Incident, findings: &mut Vec<Finding>) {
    for (host, processes) in incident.by_host() {
        let Some(p) = processes.iter().find(|p| Incident::uses_verbs(p)) else { continue };
        let ports: BTreeSet<&str> = processes
            .iter()
            .flat_map(|p| p.ports.value.iter())
            .map(|d| d.device.as_str())
            .collect();
        let mut used = BTreeSet::new();
        let mut channels = BTreeSet::new();
        let mut senders = BTreeSet::new();
        for e in processes.iter().flat_map(|p| &p.edges) {
            if let Transport::Net { device, .. } = e.transport {
                used.insert(device);
                channels.insert(e.channel);
                senders.insert(if e.send == Some(true) { e.from } else { e.to });
            }
        }
        // a single ring on one channel says nothing; two channels and more must spread
        if ports.len() < 2 || used.len() != 1 || channels.len() < 2 || processes.len() < 2 {
            continue;
        }
        let Some(at) =
            p.edge_at.get("NET").or_else(|| processes.iter().find_map(|p| p.edge_at.get("NET")))
        else {
            continue;
        };
        findings.push(RULE.found(
            Confidence::Likely,
            format!(
                "{host}: {} channels all use device {}, of {} RDMA devices",
                channels.len(),
                used.first().copied().unwrap_or(0),
                ports.len()
            ),
            "all GPUs take the same NIC for the nearest one (hidden PCIe tree, unfit topology file), or \
             the search found rings for one NIC only",
            "look at the GPU-NIC distances (`nvidia-smi topo -m`); in a VM set NCCL_TOPO_FILE; check \
             NCCL_IB_HCA and that all ports are active",
            incident.exhibits([at, &p.ports.at], 3),
        ));
        return;
    }
}
