//! `gid-index-differs`: the right GID index is not the same on every pod.
//!
//! ## What
//!
//! Several nodes or pods are told, NCCL_IB_GID_INDEX is pinned on them, and the RoCE v2 entry with a
//! routable address stands at another index on one of them.
//!
//! ## Why
//!
//! The GID table is filled in the order in which addresses came: pods on the same kind of adapter get
//! other numbers. A pinned number then points at nothing, or at a RoCE v1 entry, on some of them.
//!
//! ## Example
//!
//! `NCCL_IB_GID_INDEX=5 is right on alg-0 only: the RoCE v2 entry is 7 on alg-1`
//!
//! ## Remedy
//!
//! Leave NCCL_IB_GID_INDEX unset with NCCL 2.21 or later (2.26 in containers); before, set it on each
//! pod.
//!
//! ## Source
//!
//! NCCL `src/transport/net_ib.cc`; Linux `drivers/infiniband/core/cache.c`.

use ncclctl_facts::Facts;

use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::nodes::v2_indexes;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    ..Rule::new(
        "gid-index-differs",
        Severity::Error,
        "the right GID index is not the same on every pod",
    )
};

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    let with: Vec<(&Facts, Vec<u32>)> =
        nodes.iter().map(|n| (n, v2_indexes(n))).filter(|(_, i)| !i.is_empty()).collect();
    let pinned = |n: &Facts| n.environment.get("NCCL_IB_GID_INDEX")?.trim().parse::<u32>().ok();
    if with.len() < 2 {
        return;
    }
    let Some((wrong, indexes, value)) = with.iter().find_map(|(n, indexes)| {
        let value = pinned(n)?;
        (!indexes.contains(&value)).then_some((*n, indexes, value))
    }) else {
        return;
    };
    let right: Vec<&str> =
        with.iter().filter(|(_, i)| i.contains(&value)).map(|(n, _)| n.name.as_str()).collect();
    let where_right = if right.is_empty() {
        "on none of them".to_owned()
    } else {
        format!("on {} only", right.join(", "))
    };
    let at = indexes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    findings.push(RULE.found(
        Confidence::Certain,
        format!(
            "NCCL_IB_GID_INDEX={value} is right {where_right}: the RoCE v2 entry is {at} on {}",
            wrong.name
        ),
        "the number of an entry depends on the order in which a pod's addresses came; the same number \
         is another entry elsewhere",
        "take NCCL_IB_GID_INDEX out with NCCL 2.21 or later (2.26 in containers); before, set it on \
         each pod",
        with.iter()
            .map(|(n, i)| {
                let text = i.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
                Exhibit::fact(format!("{}.rdma.gids.v2", n.name), text)
            })
            .collect(),
    ));
}
