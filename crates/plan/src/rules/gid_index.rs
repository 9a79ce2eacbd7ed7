//! The GID of RoCE: NCCL's own choice since 2.21, pinned for each node before.

use super::Rule;
use crate::draft::{Because, Draft};
use crate::look::{GID_CHOICE, GID_CHOICE_IN_PODS, Look};
use crate::node::{Gid, Node};
use crate::result::Transport;

pub(super) const RULE: Rule =
    Rule { id: "gid-index", about: "NCCL_IB_GID_INDEX: which address RoCE uses", plan };

const NAME: &str = "NCCL_IB_GID_INDEX";

fn plan(look: &Look<'_>, draft: &mut Draft) {
    if look.transport == Transport::Infiniband {
        draft.leave(NAME, "it is for RoCE; InfiniBand does not need it");
        return;
    }
    if look.transport != Transport::Roce {
        return;
    }
    // a table that starts late, or has holes, stops the choice before 2.26.2
    let sparse = |node: &Node| {
        look.ports(node)
            .iter()
            .filter_map(|h| h.gids.as_ref())
            .any(|gids| gids.iter().enumerate().any(|(at, gid)| gid.index as usize != at))
    };
    let any_sparse = look.nodes.iter().any(sparse);
    if look.nccl >= GID_CHOICE && !(any_sparse && look.nccl < GID_CHOICE_IN_PODS) {
        draft.leave(
            NAME,
            format!("NCCL {} chooses the RoCE v2 address itself, on each node anew", look.nccl),
        );
        return;
    }
    let why = if look.nccl < GID_CHOICE {
        format!("NCCL {} takes entry 0 by default, RoCE v1 or link-local", look.nccl)
    } else {
        format!("the GID table has holes, and NCCL {} stops at the first", look.nccl)
    };
    let found: Vec<Option<u32>> = look.nodes.iter().map(|node| index(look, node)).collect();
    let because = |facts: Vec<String>| Because {
        reason: format!("{why}; this is the RoCE v2 entry with an IPv4 address"),
        without: "ibv_modify_qp fails, or peers behind a router are not reached".into(),
        facts,
    };
    let fact = |node: &Node, index: u32| {
        let ports = look.ports(node);
        let port = ports.first().map_or("", |h| h.name.as_str());
        format!("{}: {port} GID {index}", node.name)
    };
    let first = found.first().copied().flatten();
    if let Some(index) = first.filter(|_| found.iter().all(|f| *f == first)) {
        let facts = look.nodes.iter().map(|n| fact(n, index)).collect();
        draft.set(NAME, index.to_string(), because(facts));
        return;
    }
    for (at, (node, index)) in look.nodes.iter().zip(&found).enumerate() {
        match index {
            Some(index) => {
                let facts = vec![fact(node, *index)];
                draft.set_on(at, NAME, index.to_string(), because(facts));
            }
            None => draft.leave(
                NAME,
                format!(
                    "{}: no one entry is right for every port; use NCCL 2.26.2 or later",
                    node.name
                ),
            ),
        }
    }
}

/// The index that is the RoCE v2 address of every port of a node.
fn index(look: &Look<'_>, node: &Node) -> Option<u32> {
    let ports = look.ports(node);
    let best = |gids: &[Gid]| {
        gids.iter()
            .filter(|g| g.routable())
            .max_by_key(|g| (g.v2, g.v4(), std::cmp::Reverse(g.index)))
            .map(|g| g.index)
    };
    let mut found = ports.iter().map(|h| h.gids.as_deref().and_then(best));
    let first = found.next()??;
    found.all(|f| f == Some(first)).then_some(first)
}
