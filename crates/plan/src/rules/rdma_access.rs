//! Devices, locked memory and network for RDMA, and a network that peers can reach at all.

use super::Rule;
use crate::draft::Draft;
use crate::look::Look;
use crate::node::Link;
use crate::result::{Need, NeedKind, Transport};

pub(super) const RULE: Rule =
    Rule { id: "rdma-access", about: "devices, locked memory and network mode", plan };

/// Less than this can not hold the buffers of one communicator.
const LEAST_LOCKED: u64 = 1 << 30;

fn plan(look: &Look<'_>, draft: &mut Draft) {
    let devices = look.nodes.iter().any(|n| !n.hcas.is_empty());
    let efa = look.nodes.iter().any(|n| n.hcas.iter().any(|h| h.link == Link::Efa));
    let blocked = look.each.iter().any(|a| a.blocked.is_some());
    // a job that uses sockets on purpose needs no device
    if devices && (look.transport != Transport::Socket || blocked) {
        let closed =
            look.nodes.iter().any(|n| n.hcas.iter().any(|h| h.active && h.openable == Some(false)));
        let known = look.nodes.iter().any(|n| n.hcas.iter().any(|h| h.openable.is_some()));
        draft.need(Need {
            kind: NeedKind::RdmaDevices,
            what: "the RDMA device nodes".into(),
            why: if closed {
                "they are not to be opened here: NCCL falls back to sockets without a message"
                    .into()
            } else {
                "without them NCCL falls back to sockets without a message".into()
            },
            met: known.then_some(!closed),
            docker: vec!["--device /dev/infiniband".into()],
            compose: vec!["devices: [/dev/infiniband]".into()],
            pod: vec![if efa {
                "resources: limits: vpc.amazonaws.com/efa: 1".into()
            } else {
                "resources: limits: rdma/hca: 1 (the name that your device plug-in gives)".into()
            }],
        });
        let least = look.nodes.iter().filter_map(|n| n.container.memlock).min();
        draft.need(Need {
            kind: NeedKind::LockedMemory,
            what: "unlimited locked memory".into(),
            why: match least {
                Some(limit) if limit < LEAST_LOCKED => {
                    format!("the limit is {} KiB: registration of buffers fails", limit >> 10)
                }
                _ => "RDMA registers buffers in locked memory".into(),
            },
            met: least.map(|limit| limit >= LEAST_LOCKED),
            docker: vec!["--ulimit memlock=-1".into()],
            compose: vec!["ulimits: {memlock: -1}".into()],
            pod: vec![
                "nothing in the pod: the limit is the container runtime's (LimitMEMLOCK=infinity); \
                 IPC_LOCK counts for UID 0 only"
                    .into(),
            ],
        });
    }
    network(look, draft);
}

fn network(look: &Look<'_>, draft: &mut Draft) {
    let shared = look.nodes.iter().map(|n| n.container.host_network);
    let all = shared.clone().all(|s| s == Some(true));
    let known = shared.clone().all(|s| s.is_some());
    let pods = look.nodes.iter().any(|n| n.container.kubernetes);
    let roce = look.nodes.iter().any(|n| n.hcas.iter().any(|h| h.link == Link::Ethernet));
    let pod = if roce {
        "annotations: k8s.v1.cni.cncf.io/networks (an RDMA CNI); else hostNetwork: true with \
         dnsPolicy: ClusterFirstWithHostNet"
    } else {
        "the pod network is enough for the bootstrap; no hostNetwork needed"
    };
    let why = if roce {
        "ranks of different nodes meet on ephemeral ports, and the GIDs of RoCE belong to the \
         network namespace of the interface"
    } else {
        "ranks of different nodes meet on ephemeral ports, which no port mapping covers"
    };
    draft.need(Need {
        kind: NeedKind::Network,
        what: "a network in which ranks reach each other".into(),
        why: why.into(),
        met: if pods || !known { None } else { Some(all) },
        docker: vec!["--network host".into()],
        compose: vec!["network_mode: host".into()],
        pod: vec![pod.into()],
    });
}
