//! What a goal adds. Nothing is set for speed without a measurement.

use super::Rule;
use crate::draft::{Because, Draft};
use crate::look::Look;
use crate::result::Goal;

pub(super) const RULE: Rule =
    Rule { id: "goal", about: "what throughput, latency or stability adds", plan };

fn plan(look: &Look<'_>, draft: &mut Draft) {
    match look.goal {
        Some(Goal::Stability) => {
            draft.set(
                "NCCL_DEBUG",
                "WARN",
                Because {
                    reason: "stability is wanted: a failure names its cause in the log".into(),
                    without: "the program sees an error code alone".into(),
                    facts: Vec::new(),
                },
            );
            draft.leave("NCCL_IB_TIMEOUT", "more would hide a link that fails; repair the link");
        }
        Some(Goal::Latency) => {
            draft.leave(
                "NCCL_PROTO",
                "NCCL takes LL and LL128 for short messages by itself; forcing one is unsafe or \
                 slow for the others",
            );
        }
        Some(Goal::Throughput) => {
            draft.leave(
                "NCCL_BUFFSIZE",
                "its effect can not be known before it is measured: ncclctl bench --env",
            );
        }
        None => {}
    }
}
