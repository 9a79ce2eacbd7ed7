//! `gid-table-empty`: no GID in the pod at all.
//!
//! ## What
//!
//! A RoCE queue pair could not be moved on because its GID slot is empty, and nothing pins the
//! slot.
//!
//! ## Why
//!
//! A GID exists for each address of the RoCE interface in the pod's network namespace. Without such
//! an interface the table is empty.
//!
//! ## Example
//!
//! `rdma-1: no GID on mlx5_0 (No such device)`
//!
//! ## Remedy
//!
//! Attach the RoCE interface to the pod (secondary network of the RDMA CNI), or use host
//! networking.
//!
//! ## Source
//!
//! NCCL src/transport/net_ib; kernel ib_query_gid.

use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;
use ncclctl_facts::Facts;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    incident: Some(look),
    ..Rule::new("gid-table-empty", Severity::Error, "no GID in the pod at all")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let pinned = incident.setting("NCCL_IB_GID_INDEX").is_some();
    for notice in incident.notices(&["ibv_modify_qp failed", "ibv_query_gid failed"]) {
        let absent = notice.text.contains("No such device")
            || notice.text.contains("ibv_query_gid")
            || notice.text.contains("local GID ::,");
        let Some(p) = incident.process(notice) else { continue };
        if !absent || pinned || p.ports.value.iter().any(|d| d.layer == "IB") {
            continue;
        }
        findings.push(RULE.found(
            Confidence::Likely,
            format!("{}: no usable GID on its RDMA port", p.host),
            "the pod's network namespace has no interface of this RoCE device with an address, so \
             its GID table is empty here",
            "attach the RoCE interface to the pod (secondary network of the RDMA CNI), or use host \
             networking; `show_gids` inside the pod must list a v2 GID",
            incident.exhibits([&notice.at], 3),
        ));
        return;
    }
}

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    for node in nodes.iter().filter(|n| !n.gpus().is_empty()) {
        for device in node.rdma.iter().filter(|d| d.opened.as_deref() == Some("ok")) {
            for port in device.ports.iter().filter(|p| p.active() && p.is_roce()) {
                if !port.gids.is_empty() {
                    continue;
                }
                findings.push(RULE.found(
                    Confidence::Certain,
                    format!("{}: {} port {} has no GID here", node.name, device.name, port.number),
                    "a RoCE port's addresses are those of its interface, which is in another network \
                     namespace: there is nothing to connect with",
                    "give the pod an interface of this port (Multus with SR-IOV or macvlan), or the \
                     host's network",
                    vec![Exhibit::nic(&device.name, &node.name, "no entry of the GID table is readable")],
                ));
            }
        }
    }
}
