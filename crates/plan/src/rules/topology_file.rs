//! A topology file for virtual machines that hide the PCI tree.

use super::Rule;
use crate::draft::{Because, Draft};
use crate::look::Look;
use crate::node::Provider;

pub(super) const RULE: Rule =
    Rule { id: "topology-file", about: "NCCL_TOPO_FILE: for VMs that hide the PCI tree", plan };

const NAME: &str = "NCCL_TOPO_FILE";

/// Read by NCCL 2.10.3 and later without being asked.
const READ_BY_ITSELF: &str = "/var/run/nvidia-topologyd/virtualTopology.xml";

fn plan(look: &Look<'_>, draft: &mut Draft) {
    let hidden: Vec<_> = look
        .nodes
        .iter()
        .filter(|n| n.hypervisor.is_some() && n.flat_pci == Some(true) && n.gpus.len() > 1)
        .collect();
    if hidden.is_empty() {
        if look.nodes.iter().all(|n| n.flat_pci == Some(false)) {
            draft.leave(NAME, "the PCI tree is to be seen: NCCL reads the real one");
        }
        return;
    }
    if hidden.iter().all(|n| n.topology_files.iter().any(|f| f == READ_BY_ITSELF)) {
        draft.leave(NAME, format!("NCCL reads {READ_BY_ITSELF} by itself"));
        return;
    }
    let azure = hidden.iter().all(|n| matches!(n.provider, Provider::Azure(_)));
    let file = look.one_answer(|n| {
        let mut known = n.topology_files.iter().filter(|f| *f != READ_BY_ITSELF);
        known.next().cloned().filter(|_| known.next().is_none())
    });
    match file.flatten() {
        Some(file) => draft.set(
            NAME,
            file.clone(),
            Because {
                reason: if azure {
                    "the provider's own file for this size".into()
                } else {
                    "the machine hides its PCI tree, and this file describes it".into()
                },
                without: "every GPU looks equally far from every NIC: rails are mixed up and \
                          GPUDirect RDMA stays off"
                    .into(),
                facts: hidden
                    .iter()
                    .map(|n| {
                        let hypervisor = n.hypervisor.as_deref().unwrap_or_default();
                        format!("{}: {hypervisor}, flat PCI tree, {file}", n.name)
                    })
                    .collect(),
            },
        ),
        None => draft.leave(
            NAME,
            "the machine hides its PCI tree and no file that describes it is there: \
             `ncclctl render topo` writes one to complete, your provider may have one",
        ),
    }
}
