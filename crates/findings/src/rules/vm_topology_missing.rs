//! `vm-topology-missing`: a virtual machine hides the PCIe tree, and no topology file is set.
//!
//! ## What
//!
//! A node runs under a hypervisor, has several GPUs and NICs, every NIC is equally far from every GPU
//! (PHB), and neither NCCL_TOPO_FILE nor a provider's topology file is there.
//!
//! ## Why
//!
//! The guest sees all passed-through devices on one bus level. NCCL then takes each path for one
//! through the processor: it chooses any NIC for any GPU and, at its default levels, no GPUDirect
//! RDMA.
//!
//! ## Example
//!
//! `vm-7: every NIC is PHB from every GPU, as a hypervisor shows it, and no topology file is set`
//!
//! ## Remedy
//!
//! Set NCCL_TOPO_FILE to an XML file with the host's PCIe tree and the guest's bus ids; clouds bring
//! one for each of their machine types.
//!
//! ## Source
//!
//! NCCL `src/graph/topo.cc`, `xml.cc`; NVIDIA/nccl issues 1674 and 1843.

use ncclctl_facts::Facts;

use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    ..Rule::new(
        "vm-topology-missing",
        Severity::Warning,
        "a virtual machine hides the PCIe tree and no topology file is set",
    )
};

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    for node in nodes {
        let Some(hypervisor) = &node.platform.hypervisor else { continue };
        let set = node.environment.get("NCCL_TOPO_FILE").is_some_and(|v| !v.is_empty());
        // the OFI plug-in brings the file of each instance type itself
        let efa = node.rdma.iter().any(ncclctl_facts::rdma::RdmaDevice::is_efa)
            && node.software.plugins.iter().any(|p| p.kind == "net" && p.found_by_loader);
        if !node.topology.flat || set || efa || !node.platform.topology_files.is_empty() {
            continue;
        }
        let numa = node.rdma.iter().all(|d| d.numa.is_none());
        let mut exhibits = vec![
            Exhibit::fact(format!("{}.platform.hypervisor", node.name), hypervisor),
            Exhibit::fact(format!("{}.topology.flat", node.name), "true"),
        ];
        if numa && !node.rdma.is_empty() {
            exhibits.push(Exhibit::fact(format!("{}.rdma.numa", node.name), "unknown"));
        }
        findings.push(RULE.found(
            Confidence::Likely,
            format!(
                "{}: every NIC is PHB from every GPU, as a hypervisor shows it, and no topology file is set",
                node.name
            ),
            "NCCL can not tell which NIC is near which GPU: it takes any, and no GPUDirect RDMA at its \
             default level",
            "set NCCL_TOPO_FILE to an XML file with the host's PCIe tree and this guest's bus ids \
             (`ncclctl facts -o topo-xml` writes one to start from)",
            exhibits,
        ));
    }
}
