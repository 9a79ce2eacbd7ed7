//! NVLink across nodes: off where it is there but can not be used.

use ncclctl_nccl::version::Version;

use super::Rule;
use crate::draft::{Because, Draft};
use crate::look::Look;
use crate::result::{Need, NeedKind};

pub(super) const RULE: Rule = Rule {
    id: "multi-node-nvlink",
    about: "NCCL_MNNVL_ENABLE: off without IMEX, and on MIG",
    plan,
};

const NAME: &str = "NCCL_MNNVL_ENABLE";

/// MIG works from this release on.
const MIG: Version = Version::new(2, 31, 0);

fn plan(look: &Look<'_>, draft: &mut Draft) {
    let mig: Vec<String> = look
        .nodes
        .iter()
        .filter(|n| n.gpus.iter().any(|g| g.mig))
        .map(|n| format!("{}: MIG slices", n.name))
        .collect();
    if !mig.is_empty() {
        if look.nccl >= MIG {
            draft.set(
                NAME,
                "0",
                Because {
                    reason: "ranks run on MIG slices".into(),
                    without: "init looks for a fabric that a slice does not have".into(),
                    facts: mig,
                },
            );
        } else {
            draft.leave(
                NAME,
                format!(
                    "ranks on MIG slices do not work with NCCL {}; 2.31 is the first",
                    look.nccl
                ),
            );
        }
        return;
    }
    let member = |n: &&crate::node::Node| n.fabric.clique.is_some();
    if !look.nodes.iter().any(|n| member(&n)) {
        return;
    }
    let closed: Vec<String> = look
        .nodes
        .iter()
        .filter(|n| n.fabric.imex == Some(false))
        .map(|n| format!("{}: no IMEX channel", n.name))
        .collect();
    if closed.is_empty() {
        draft.leave(NAME, "an NVLink domain with IMEX: automatic uses it");
        return;
    }
    draft.need(Need {
        kind: NeedKind::Imex,
        what: "an IMEX channel in every container".into(),
        why: "NVLink between nodes is there, and NCCL can not share memory over it without".into(),
        met: Some(false),
        docker: vec!["--device /dev/nvidia-caps-imex-channels/channel0".into()],
        compose: vec!["devices: [/dev/nvidia-caps-imex-channels/channel0]".into()],
        pod: vec![
            "resourceClaims: a ComputeDomain claim (DRA), or the device plug-in's channel".into(),
        ],
    });
    draft.set(
        NAME,
        "0",
        Because {
            reason: "the nodes are in an NVLink domain, but a container has no IMEX channel".into(),
            without:
                "set-up of NVLink between nodes fails or crashes a rank; with a channel in every \
                      container take this out, NVLink is many times faster"
                    .into(),
            facts: closed,
        },
    );
}
