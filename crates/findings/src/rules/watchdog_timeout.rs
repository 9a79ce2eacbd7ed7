//! `watchdog-timeout`: the c10d watchdog ended a collective.
//!
//! ## What
//!
//! PyTorch's watchdog saw a collective that did not finish within its time-out, and ended the
//! processes.
//!
//! ## Why
//!
//! The collective waits for a rank that did not come, or for a network that does not move. The
//! watchdog names the waiting ranks, not the culprit.
//!
//! ## Example
//!
//! `ALLREDUCE 1580 timed out after 600 s on ranks 0, 2-4`
//!
//! ## Remedy
//!
//! Look at the silent or lagging rank; if none shows, get the flight recorder
//! (TORCH_NCCL_TRACE_BUFFER_SIZE=2000, TORCH_NCCL_DUMP_ON_TIMEOUT=1) and `ncclras -v`.
//!
//! ## Source
//!
//! torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp.

use ncclctl_nccl::log::Signal;
use ncclctl_nccl::watchdog::{self, Timeout};

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("watchdog-timeout", Severity::Error, "the c10d watchdog ended a collective")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let lines = incident.log.signal(Signal::WatchdogTimeout);
    let timeouts: Vec<(Timeout, _)> =
        lines.iter().filter_map(|at| Some((watchdog::timeout(&at.text)?, at))).collect();
    let Some((first, _)) = timeouts.first() else {
        if let Some(at) = lines.first() {
            findings.push(RULE.found(
                Confidence::Certain,
                "a collective timed out",
                "the line was cut: which collective on which rank can not be read",
                "get the whole log, and the flight recorder (TORCH_NCCL_TRACE_BUFFER_SIZE=2000)",
                incident.exhibits([at], 1),
            ));
        } else if let Some(at) = incident.log.signal(Signal::WatchdogStuck).first() {
            findings.push(RULE.found(
                Confidence::Likely,
                "the c10d watchdog itself made no progress and ended the process",
                "a CUDA or NCCL call does not return, or a thread holds Python's lock inside one: a \
                 collective that hangs on this rank or on a peer looks alike",
                "look for a rank with `Watchdog caught collective operation timeout`, and take stacks \
                 (py-spy dump) of all ranks before TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC runs out; set \
                 TORCH_NCCL_TRACE_BUFFER_SIZE=2000 for the flight recorder",
                incident.exhibits([at], 1),
            ));
        }
        return;
    };
    let mut ranks: Vec<u32> = timeouts.iter().map(|(t, _)| t.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let named: Vec<String> = ranks.iter().map(ToString::to_string).collect();
    let same = timeouts.iter().all(|(t, _)| t.sequence == first.sequence);
    let silent = silent(&ranks);
    let who = match silent.as_slice() {
        [] => String::new(),
        [one] => format!("; rank {one} is silent"),
        several => format!("; ranks {} are silent", several.join(", ")),
    };
    let elements = first.elements.map_or(String::new(), |n| format!(" of {n} elements"));
    findings.push(RULE.found(
        Confidence::Certain,
        format!(
            "{} {}{elements} timed out after {} s on ranks {}{who}",
            first.operation,
            first.sequence,
            first.timeout_ms / 1000,
            named.join(", ")
        ),
        if same {
            "every rank that reports waits in the same collective: the cause is not in this log. A \
             silent rank, a stuck kernel or a network that does not move would all look like this"
        } else {
            "the reporting ranks wait at different collectives: the one furthest behind holds the \
             others"
        },
        "collect the silent ranks' logs and stacks (py-spy dump); set TORCH_NCCL_TRACE_BUFFER_SIZE=2000 \
         and TORCH_NCCL_DUMP_ON_TIMEOUT=1 for the flight recorder, and ask `ncclras -v` while it hangs",
        incident.exhibits(timeouts.iter().map(|(_, at)| *at), 4),
    ));
}

/// Ranks below the highest reporting one that do not report.
fn silent(ranks: &[u32]) -> Vec<String> {
    let Some(last) = ranks.last().copied().filter(|l| *l < 4096) else { return Vec::new() };
    (0..=last).filter(|r| !ranks.contains(r)).map(|r| r.to_string()).take(16).collect()
}
