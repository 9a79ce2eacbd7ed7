//! How far GPUDirect RDMA may reach.

use super::Rule;
use crate::draft::{Because, Draft};
use crate::look::Look;
use crate::result::{Goal, Transport};

pub(super) const RULE: Rule =
    Rule { id: "gdr-level", about: "NCCL_NET_GDR_LEVEL: how far GPUDirect RDMA reaches", plan };

const NAME: &str = "NCCL_NET_GDR_LEVEL";

fn plan(look: &Look<'_>, draft: &mut Draft) {
    if !matches!(look.transport, Transport::Infiniband | Transport::Roce) {
        return;
    }
    if look.nodes.iter().any(|n| n.gdr_ready == Some(false)) {
        draft.leave(NAME, "GPUDirect RDMA can not work here: no level makes a difference");
        return;
    }
    let near = |path: &str| !matches!(path, "PHB" | "SYS");
    let paths: Vec<String> = look
        .nodes
        .iter()
        .flat_map(|node| look.ports(node).into_iter().filter_map(|h| h.path.clone()))
        .collect();
    if paths.is_empty() {
        draft.leave(NAME, "the paths between GPUs and RDMA ports are not known");
        return;
    }
    if paths.iter().any(|p| near(p)) {
        draft.leave(NAME, "ports sit beside GPUs under one switch: the default (PXB) reaches them");
        return;
    }
    if paths.iter().any(|p| p == "SYS") {
        draft.leave(NAME, "ports are behind another socket: staging through the host is faster");
        return;
    }
    // every path goes through the CPU of the same socket
    let flat = look.nodes.iter().any(|n| n.flat_pci == Some(true));
    if flat {
        draft.leave(NAME, "the PCI tree is hidden: give NCCL a topology file first");
    } else if look.goal == Some(Goal::Throughput)
        && look.nodes.iter().all(|n| n.gdr_ready == Some(true))
    {
        draft.set(
            NAME,
            "PHB",
            Because {
                reason: "no PCIe switch: every port is reached through the CPU of its own socket, \
                         and GPUDirect RDMA is ready"
                    .into(),
                without: "data is staged through host memory; measure both, older CPUs are slower \
                          with it"
                    .into(),
                facts: paths,
            },
        );
    } else {
        draft.leave(
            NAME,
            "every path goes through the CPU (PHB), where GPUDirect RDMA is off by default; \
             --goal throughput sets PHB, and `ncclctl bench` says whether that is faster",
        );
    }
}
