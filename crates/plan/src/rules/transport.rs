//! One transport for the whole job: ranks that disagree wait for each other for ever.

use ncclctl_nccl::version::Version;

use super::Rule;
use crate::draft::{Because, Draft};
use crate::look::{Look, names_of};
use crate::node::Node;
use crate::result::{Goal, Transport};

pub(super) const RULE: Rule =
    Rule { id: "common-transport", about: "one transport for all nodes of a job", plan };

/// Since this release `NCCL_NET` names the network.
const NET_SINCE: Version = Version::new(2, 10, 3);

fn plan(look: &Look<'_>, draft: &mut Draft) {
    match look.transport {
        Transport::Socket => socket(look, draft),
        Transport::Infiniband | Transport::Roce => rdma(look, draft),
        Transport::Efa | Transport::Tcpx => {
            draft.leave("NCCL_NET", "the provider's plug-in is taken first by itself");
        }
    }
}

fn socket(look: &Look<'_>, draft: &mut Draft) {
    let trying = |node: &Node, tries: bool| tries || !node.net_plugins.is_empty();
    let tries: Vec<&str> = look
        .nodes
        .iter()
        .zip(&look.each)
        .filter(|(node, able)| trying(node, able.would_try_rdma))
        .map(|(node, _)| node.name.as_str())
        .collect();
    if tries.is_empty() {
        draft.leave("NCCL_NET", "no node has anything but sockets: NCCL takes them by itself");
        return;
    }
    let because = |without: &str| Because {
        reason: look.transport_why.clone(),
        without: without.to_owned(),
        facts: look
            .nodes
            .iter()
            .zip(&look.each)
            .map(|(n, a)| format!("{}: {}", n.name, a.works.name()))
            .collect(),
    };
    let without = if tries.len() == look.nodes.len() {
        "NCCL tries RDMA all the same, and fails when it connects".to_owned()
    } else {
        format!("{} would try RDMA or a plug-in, the others sockets", names_of(&tries))
    };
    if look.nccl >= NET_SINCE {
        draft.set("NCCL_NET", "Socket", because(&without));
    } else {
        draft.set("NCCL_IB_DISABLE", "1", because(&without));
    }
    let plugins: Vec<String> = look
        .nodes
        .iter()
        .flat_map(|n| n.net_plugins.iter().map(move |p| format!("{}: {p}", n.name)))
        .collect();
    if !plugins.is_empty() {
        draft.set(
            "NCCL_NET_PLUGIN",
            "none",
            Because {
                reason: "a network plug-in is on the loader path and would still be loaded".into(),
                without:
                    "its collective part (SHARP) and its name may still be taken on the nodes \
                          that have it"
                        .into(),
                facts: plugins,
            },
        );
    }
}

fn rdma(look: &Look<'_>, draft: &mut Draft) {
    let plugins = look.nodes.iter().any(|n| !n.net_plugins.is_empty());
    if look.goal != Some(Goal::Stability) {
        draft.leave("NCCL_NET", "every node takes RDMA by itself");
        return;
    }
    if plugins {
        draft.leave("NCCL_NET", "a plug-in brings a name of its own, which is known only to it");
        return;
    }
    draft.set(
        "NCCL_NET",
        "IB",
        Because {
            reason: "stability is wanted: a node that loses its RDMA devices fails at once".into(),
            without: "such a node falls back to sockets without a message, and the job hangs or \
                      crawls"
                .into(),
            facts: vec![look.transport_why.clone()],
        },
    );
}
