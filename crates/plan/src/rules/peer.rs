//! Peer access between GPUs and shared memory: never switched off on a suspicion.

use super::Rule;
use crate::draft::Draft;
use crate::look::{Look, names_of};

pub(super) const RULE: Rule = Rule {
    id: "peer-access",
    about: "NCCL_P2P_DISABLE, NCCL_SHM_DISABLE: never on a suspicion",
    plan,
};

fn plan(look: &Look<'_>, draft: &mut Draft) {
    if look.nodes.iter().all(|n| n.gpus.len() < 2) {
        return;
    }
    let broken: Vec<&str> = look
        .nodes
        .iter()
        .filter(|n| n.gpus.iter().any(|g| g.peer_broken))
        .map(|n| n.name.as_str())
        .collect();
    let why = if broken.is_empty() {
        "nothing shows that peer access is broken".to_owned()
    } else {
        format!(
            "the driver reports broken peer access on {}: NCCL leaves PCIe pairs out by itself, and \
             a broken NVLink pair fails init, which is right: repair it",
            names_of(&broken)
        )
    };
    draft.leave("NCCL_P2P_DISABLE", why);
    draft.leave("NCCL_SHM_DISABLE", "a small /dev/shm is made larger, not avoided");
}
