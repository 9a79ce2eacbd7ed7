//! NVLink SHARP: automatic.

use super::Rule;
use crate::draft::Draft;
use crate::look::Look;

pub(super) const RULE: Rule = Rule { id: "nvls", about: "NCCL_NVLS_ENABLE: automatic", plan };

fn plan(look: &Look<'_>, draft: &mut Draft) {
    if look.nodes.iter().flat_map(|n| &n.gpus).any(|g| g.mig) {
        draft.leave("NCCL_NVLS_ENABLE", "MIG slices have no NVLink SHARP: automatic leaves it off");
    } else if look.nodes.iter().any(|n| n.fabric.nvswitch) {
        draft.leave("NCCL_NVLS_ENABLE", "NVSwitch is there: automatic uses it where it helps");
    }
}
