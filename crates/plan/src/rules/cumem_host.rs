//! Host buffers of the driver instead of /dev/shm, where the container forbids what they need.

use ncclctl_nccl::version::Version;

use super::Rule;
use crate::draft::{Because, Draft};
use crate::look::Look;

pub(super) const RULE: Rule = Rule {
    id: "cumem-host",
    about: "NCCL_CUMEM_HOST_ENABLE: off where seccomp refuses get_mempolicy",
    plan,
};

const NAME: &str = "NCCL_CUMEM_HOST_ENABLE";

/// Automatic from this release.
const AUTOMATIC: Version = Version::new(2, 24, 3);

/// Tests itself and falls back from this release.
const FALLS_BACK: Version = Version::new(2, 26, 5);

fn plan(look: &Look<'_>, draft: &mut Draft) {
    let refused: Vec<String> = look
        .nodes
        .iter()
        .filter(|n| n.container.mempolicy_refused == Some(true))
        .map(|n| format!("{}: get_mempolicy is refused", n.name))
        .collect();
    if refused.is_empty() || look.nccl < AUTOMATIC {
        return;
    }
    if look.nccl >= FALLS_BACK {
        draft.leave(NAME, "get_mempolicy is refused here; this release notices and uses /dev/shm");
        return;
    }
    draft.set(
        NAME,
        "0",
        Because {
            reason: "seccomp refuses get_mempolicy without SYS_NICE".into(),
            without: "this release does not notice: init fails in the set-up of shared memory"
                .into(),
            facts: refused,
        },
    );
}
