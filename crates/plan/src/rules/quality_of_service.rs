//! Traffic class and service level: the fabric's business, never guessed.

use super::Rule;
use crate::draft::Draft;
use crate::look::Look;
use crate::result::Transport;

pub(super) const RULE: Rule =
    Rule { id: "quality-of-service", about: "NCCL_IB_TC, NCCL_IB_SL: only with evidence", plan };

fn plan(look: &Look<'_>, draft: &mut Draft) {
    match look.transport {
        Transport::Roce => draft.leave(
            "NCCL_IB_TC",
            "the class that the switches protect is not to be seen from a node: ask the network \
             team for the DSCP, and write DSCP x 4",
        ),
        Transport::Infiniband => draft.leave(
            "NCCL_IB_SL",
            "the subnet manager's mapping is not to be seen from a node; 0 is right unless the \
             fabric says otherwise",
        ),
        _ => {}
    }
}
