//! `collective-mismatch`: ranks wait in different collectives.
//!
//! ## What
//!
//! Two ranks of a group are at the same number and in different operations, sizes or types.
//!
//! ## Why
//!
//! Collectives are matched by their order. A branch that only some ranks take, or a tensor of
//! another shape, pairs calls that do not belong together: a hang, or wrong data.
//!
//! ## Example
//!
//! `collective 41 of default_pg: rank 0 is in all_reduce [[1024]], rank 3 in all_gather [[512]]`
//!
//! ## Remedy
//!
//! Make every rank call the same collectives in the same order with the same sizes;
//! TORCH_DISTRIBUTED_DEBUG=DETAIL finds the first difference.
//!
//! ## Source
//!
//! PyTorch Flight Recorder; NCCL's own warning up to 2.19.

use std::collections::BTreeMap;

use ncclctl_nccl::flight_recorder::Call;

use crate::finding::Exhibit;
use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("collective-mismatch", Severity::Error, "ranks wait in different collectives")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let said = incident.notices(&[
        "ismatched collective",
        "collective mismatch",
        "Your program may be hanging",
        "message truncated",
    ]);
    if let Some(first) = said.first() {
        findings.push(RULE.found(
            Confidence::Certain,
            first.text.clone(),
            "the ranks called different operations, or the same with different sizes",
            "make every rank call the same collectives in the same order; \
             TORCH_DISTRIBUTED_DEBUG=DETAIL finds the first difference",
            incident.exhibits(said.iter().map(|n| &n.at), 3),
        ));
        return;
    }
    // group and number -> the first rank's call
    let mut seen: BTreeMap<(&str, u64), (u32, &Call)> = BTreeMap::new();
    for (name, dump) in &incident.dumps {
        let Some(rank) = dump.rank else { continue };
        for call in dump.calls.iter().filter(|c| !c.point_to_point) {
            let (first, other) = *seen.entry((&call.group, call.sequence)).or_insert((rank, call));
            let same = other.operation == call.operation && other.types == call.types;
            // gathers and all-to-alls may rightly differ in size from rank to rank
            let sized = call.operation.contains("reduce") || call.operation == "broadcast";
            if same && (!sized || other.sizes == call.sizes || call.operation.contains("coalesced"))
            {
                continue;
            }
            findings.push(RULE.found(
                Confidence::Certain,
                format!(
                    "collective {} of group {}: rank {first} is in {} {}, rank {rank} in {} {}",
                    call.sequence,
                    call.group,
                    other.operation,
                    other.sizes,
                    call.operation,
                    call.sizes
                ),
                "the ranks called different operations, or the same with different sizes or types",
                "make every rank call the same collectives in the same order; \
                 TORCH_DISTRIBUTED_DEBUG=DETAIL finds the first difference",
                vec![
                    Exhibit::Rank {
                        rank: first as usize,
                        seen: format!("{} {} {}", other.operation, other.sizes, other.types),
                    },
                    Exhibit::Rank {
                        rank: rank as usize,
                        seen: format!("{} {} {} ({name})", call.operation, call.sizes, call.types),
                    },
                ],
            ));
            return;
        }
    }
}
