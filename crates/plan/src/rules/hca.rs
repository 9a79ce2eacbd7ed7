//! Which RDMA ports carry the job: those that belong to GPUs, not those of storage or management.

use super::Rule;
use crate::draft::{Because, Draft};
use crate::look::Look;
use crate::node::{Hca, Node};
use crate::result::Transport;

pub(super) const RULE: Rule =
    Rule { id: "hca", about: "NCCL_IB_HCA: the RDMA ports that belong to GPUs", plan };

const NAME: &str = "NCCL_IB_HCA";

/// Paths of NCCL, best first; an unknown one counts as the worst.
fn distance(path: Option<&str>) -> Option<usize> {
    let path = path?;
    ncclctl_nccl::params::PATH_LEVELS.iter().position(|p| *p == path)
}

fn plan(look: &Look<'_>, draft: &mut Draft) {
    if !matches!(look.transport, Transport::Infiniband | Transport::Roce) {
        return;
    }
    let mut lists: Vec<(Vec<&Hca>, Vec<String>)> = Vec::new();
    for node in look.nodes {
        lists.push(wanted(look, node));
    }
    if lists.iter().all(|(_, out)| out.is_empty()) {
        draft.leave(NAME, "every active RDMA port is fit for the job, and NCCL takes them all");
        return;
    }
    let value = |wanted: &[&Hca], node: &Node| {
        let names: Vec<String> = wanted
            .iter()
            .map(|h| {
                // the port only where the device has another that is not wanted
                let others = node.hcas.iter().filter(|o| o.name == h.name && o.active);
                let whole = others
                    .clone()
                    .all(|o| wanted.iter().any(|w| w.port == o.port && w.name == o.name));
                if whole { h.name.clone() } else { format!("{}:{}", h.name, h.port) }
            })
            .collect();
        let mut unique: Vec<String> = Vec::new();
        for name in names {
            if !unique.contains(&name) {
                unique.push(name);
            }
        }
        format!("={}", unique.join(","))
    };
    let because = |out: &[String]| Because {
        reason: format!("left out: {}", out.join("; ")),
        without: "NCCL takes every active port: gradients go through storage or management ports \
                  too, and rails do not match"
            .into(),
        facts: Vec::new(),
    };
    let values: Vec<String> =
        lists.iter().zip(look.nodes).map(|((wanted, _), node)| value(wanted, node)).collect();
    if values.iter().all(|v| *v == values[0]) {
        let mut out: Vec<String> = Vec::new();
        for text in lists.iter().flat_map(|(_, out)| out) {
            if !out.contains(text) {
                out.push(text.clone());
            }
        }
        draft.set(NAME, values[0].clone(), because(&out));
        return;
    }
    for (at, ((_, out), value)) in lists.iter().zip(&values).enumerate() {
        if !out.is_empty() {
            draft.set_on(at, NAME, value.clone(), because(out));
        }
    }
}

/// Ports to use on a node in the order of the devices, and why each other one is left out. Nothing is
/// left out on a guess.
fn wanted<'a>(look: &Look<'a>, node: &'a Node) -> (Vec<&'a Hca>, Vec<String>) {
    let ports = look.ports(node);
    let nearest = ports.iter().filter_map(|h| distance(h.path.as_deref())).min();
    let fastest = ports.iter().filter_map(|h| h.mbits).max();
    let limit = ncclctl_nccl::params::PATH_LEVELS.iter().position(|p| *p == "PXB");
    let mut out: Vec<String> = node
        .hcas
        .iter()
        .filter(|h| h.active && !ports.iter().any(|p| p.name == h.name && p.port == h.port))
        .map(|h| format!("{}:{} has another link layer", h.name, h.port))
        .collect();
    let mut kept = Vec::new();
    for hca in &ports {
        let far = match (distance(hca.path.as_deref()), nearest, limit) {
            // only where some ports sit beside GPUs and this one does not
            (Some(own), Some(best), Some(limit)) => best <= limit && own > limit,
            _ => false,
        };
        let slow = match (hca.mbits, fastest) {
            (Some(own), Some(best)) => own * 2 <= best,
            _ => false,
        };
        if hca.openable == Some(false) {
            out.push(format!("{} can not be opened", hca.name));
        } else if far {
            let path = hca.path.as_deref().unwrap_or_default();
            out.push(format!("{} is beside no GPU (nearest path {path})", hca.name));
        } else if slow {
            let gb = hca.mbits.unwrap_or(0) / 1000;
            let best = fastest.unwrap_or(0) / 1000;
            out.push(format!("{} has {gb} Gb/s beside ports of {best}", hca.name));
        } else {
            kept.push(*hca);
        }
    }
    if kept.is_empty() { (ports, Vec::new()) } else { (kept, out) }
}
