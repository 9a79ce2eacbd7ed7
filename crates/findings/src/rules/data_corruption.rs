//! `data-corruption`: the result of a collective was wrong.
//!
//! ## What
//!
//! The check after a size found elements outside the tolerance of their type and operation.
//!
//! ## Why
//!
//! Wrong gradients train a wrong model without any error. Causes seen in the field: bad memory, a
//! NIC or switch that damages packets past its checks, LL128 forced where it is unsafe
//! (`NCCL_PROTO=^Simple`), a broken network plug-in.
//!
//! ## Example
//!
//! `wrong data: 128 elements of all_reduce at 1M, on rank 2 (h3)`
//!
//! ## Remedy
//!
//! Stop using the named host until a run without it is clean and one with it is explained.
//!
//! ## Source
//!
//! nccl-tests' `#wrong` column (2.13.0 and later, `verifiable/`).

use ncclctl_nccl::size::Short;

use crate::evidence::Evidence;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::paths::{host_name, host_of};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    incident: Some(incident),
    ..Rule::new("data-corruption", Severity::Error, "a collective gave wrong data")
};

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    let bad: Vec<_> = evidence.series.iter().filter(|p| p.wrong.is_some_and(|w| w > 0)).collect();
    let Some(first) = bad.first() else { return };
    let mut ranks: Vec<usize> = bad.iter().flat_map(|p| p.wrong_ranks.iter().copied()).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let who: Vec<String> = ranks
        .iter()
        .map(|r| match host_of(evidence, *r) {
            Some(h) => format!("rank {r} ({})", host_name(evidence, h)),
            None => format!("rank {r}"),
        })
        .collect();
    let at = if who.is_empty() { String::new() } else { format!(", on {}", who.join(", ")) };
    let mut exhibits: Vec<Exhibit> = bad
        .iter()
        .map(|p| {
            let place = if p.in_place { "in place" } else { "out of place" };
            Exhibit::measured(
                format!("{} {} {place}", p.collective, Short(p.size)),
                format!("{} wrong elements", p.wrong.unwrap_or(0)),
            )
        })
        .collect();
    exhibits.extend(ranks.iter().map(|r| Exhibit::rank(*r, "holds wrong elements")));
    let everywhere = ranks.len() > 1 && ranks.len() == evidence.ranks.len();
    let suspect = if everywhere {
        "all ranks hold wrong data: the error came in before the result was spread, at any of them"
    } else if ranks.is_empty() {
        "the check does not say on which rank"
    } else {
        "only the named ranks hold wrong data: the error is on them or on the way to them"
    };
    findings.push(RULE.found(
        Confidence::Certain,
        format!(
            "wrong data: {} elements of {} at {}{at}",
            first.wrong.unwrap_or(0),
            first.collective,
            Short(first.size)
        ),
        suspect,
        "use none of these hosts for training; repeat with half of the hosts until one alone is \
         left, then look at its memory (ECC log), NIC firmware and NCCL_PROTO",
        exhibits,
    ));
}

fn incident(incident: &Incident, findings: &mut Vec<Finding>) {
    let bad: Vec<_> = incident.runs.iter().filter(|r| r.run.wrong()).collect();
    let Some(first) = bad.first() else { return };
    let rows: Vec<_> = bad
        .iter()
        .flat_map(|r| r.run.rows.iter().map(move |row| (*r, row)))
        .filter(|(_, row)| {
            [&row.out_of_place, &row.in_place]
                .into_iter()
                .flatten()
                .any(|c| c.wrong.is_some_and(|w| w > 0))
        })
        .collect();
    let sizes: Vec<String> =
        rows.iter().map(|(_, row)| ncclctl_nccl::size::Short(row.size).to_string()).collect();
    let total: u64 = rows
        .iter()
        .flat_map(|(_, row)| [&row.out_of_place, &row.in_place])
        .flatten()
        .filter_map(|c| c.wrong)
        .sum();
    let at = if sizes.is_empty() { String::new() } else { format!(" at {}", sizes.join(", ")) };
    let test = first.run.test.clone().unwrap_or_else(|| "nccl-tests".to_owned());
    let mut exhibits: Vec<Exhibit> =
        rows.iter().take(4).map(|(r, row)| incident.row(r, row.line)).collect();
    if exhibits.is_empty() {
        exhibits.extend(incident.table_lines("Out of bounds values"));
    }
    findings.push(RULE.found(
        Confidence::Certain,
        format!("{test} found {total} wrong elements{at}"),
        "a collective gave wrong data: bad memory, a NIC or switch that damages packets, a protocol \
         that is unsafe here (LL128 forced), or a fault of NCCL or its plugin in this version",
        "do not train on it: repeat with NCCL_PROTO=Simple and on half of the nodes to narrow it \
         down, go back to the last version that was right, and report",
        exhibits,
    ));
}
