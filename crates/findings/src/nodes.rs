//! Facts of nodes held against what NCCL makes of them.

use std::net::IpAddr;

use ncclctl_facts::Facts;
use ncclctl_facts::pci::Role;
use ncclctl_nccl::ifname::{Candidate, Choice, NoInterface, Request, choose};

use crate::finding::Finding;
use crate::rules::RULES;

/// Everything that the rules say of these nodes, the worst first.
pub fn judge(nodes: &[Facts]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES {
        if let Some(look) = rule.nodes {
            look(nodes, &mut findings);
        }
    }
    findings.sort_by_key(|f| (std::cmp::Reverse(f.severity), std::cmp::Reverse(f.confidence)));
    findings
}

/// Bridges above GPUs whose access control redirects.
pub(crate) fn redirecting(node: &Facts) -> Vec<String> {
    let mut all: Vec<String> = node
        .pci
        .iter()
        .filter(|d| d.role == Role::Gpu)
        .flat_map(|d| d.acs.iter().flatten().cloned())
        .collect();
    all.sort();
    all.dedup();
    all
}

/// GPUs that the PCI tree shows.
pub(crate) fn gpus_in_tree(node: &Facts) -> usize {
    node.pci.iter().filter(|d| d.role == Role::Gpu).count()
}

/// Names of two GPUs.
pub(crate) fn first_gpus(node: &Facts) -> Option<(String, String)> {
    let mut names = node.pci.iter().filter(|d| d.role == Role::Gpu).filter_map(|d| d.names.first());
    Some((names.next()?.clone(), names.next()?.clone()))
}

/// Indexes of RoCE v2 entries with a routable address, of the devices that NCCL_IB_HCA leaves.
pub(crate) fn v2_indexes(node: &Facts) -> Vec<u32> {
    let wanted = node.environment.get("NCCL_IB_HCA").map(String::as_str).unwrap_or_default();
    let listed = |name: &str| {
        let rest = wanted.trim_start_matches(['^', '=']);
        let hit = rest.split(',').any(|e| name.starts_with(e.split(':').next().unwrap_or(e)));
        wanted.is_empty() || hit != wanted.starts_with('^')
    };
    let mut all: Vec<u32> = node
        .rdma
        .iter()
        .filter(|d| listed(&d.name))
        .flat_map(|d| &d.ports)
        .flat_map(|p| &p.gids)
        .filter(|g| g.is_v2() && g.is_routable() && g.gid.to_ipv4_mapped().is_some())
        .map(|g| g.index)
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// What NCCL's socket code would use on this node; `None` where no interface is known.
pub(crate) fn chosen(node: &Facts) -> Option<Result<Vec<Choice>, Box<NoInterface>>> {
    if node.interfaces.is_empty() {
        return None;
    }
    let candidates: Vec<Candidate> = node
        .interfaces
        .iter()
        .map(|i| Candidate {
            name: i.name.clone(),
            running: i.running,
            addresses: i.addresses.iter().map(|a| (a.ip, a.prefix)).collect(),
        })
        .collect();
    let of = |name: &str| node.environment.get(name).map(String::as_str);
    let request = Request {
        ifname: of("NCCL_SOCKET_IFNAME"),
        family: of("NCCL_SOCKET_FAMILY"),
        comm_id: of("NCCL_COMM_ID"),
    };
    Some(choose(request, &candidates))
}

/// Whether an address reaches nobody beyond its own link.
pub(crate) fn isolated(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => (six.segments()[0] & 0xffc0) == 0xfe80,
    }
}
