//! `init-stuck`: a communicator began its set-up and never finished.
//!
//! ## What
//!
//! Ranks printed `Init START`, and no `Init COMPLETE` follows.
//!
//! ## Why
//!
//! Set-up waits for every rank. A rank that never started, or a connection that does not come up,
//! holds all others for ever; NCCL prints nothing while it waits.
//!
//! ## Example
//!
//! `communicator 0x5b (16 ranks): set-up began on 8 ranks and finished on none; ranks 8-15 are
//! missing`
//!
//! ## Remedy
//!
//! Look at the missing ranks; `ncclras -v` shows it live. Check NCCL_SOCKET_IFNAME and firewalls.
//!
//! ## Source
//!
//! NCCL src/init.cc, START and COMPLETE lines since 2.18.3.

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "init-stuck",
        Severity::Warning,
        "a communicator began its set-up and never finished",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    for comm in &incident.log.communicators {
        let started = comm.members.values().filter(|m| m.started).count();
        let complete = comm.members.values().filter(|m| m.complete).count();
        if started == 0 || complete >= started {
            continue;
        }
        let missing: Vec<u32> =
            (0..comm.nranks.min(65_536)).filter(|r| !comm.members.contains_key(r)).collect();
        let absent = if missing.is_empty() {
            String::new()
        } else {
            format!("; not in these logs: rank {}", ranges(&missing))
        };
        let stuck: Vec<_> = comm.members.values().filter(|m| m.started && !m.complete).collect();
        let phase = stuck.first().and_then(|m| incident.log.processes.get(m.process)).map_or(
            "bootstrap",
            |p| {
                if p.edges.is_empty() && p.trees.is_empty() { "bootstrap" } else { "connecting" }
            },
        );
        findings.push(RULE.found(
            Confidence::Possible,
            format!(
                "communicator {} of {} ranks: set-up began on {started} and finished on {complete}, \
                 last seen while {phase}{absent}",
                comm.id, comm.nranks
            ),
            if phase == "bootstrap" {
                "set-up waits for every rank to check in: a rank has not started, can not reach \
                 rank 0, or has another world size"
            } else {
                "the ranks met, and connections of the data path do not come up: RDMA addressing, \
                 routing or a firewall"
            },
            "get the logs of the ranks that are missing here; ask `ncclras -v` while it hangs; check \
             interface choice and firewalls between the hosts",
            incident.exhibits(stuck.iter().map(|m| &m.at), 3),
        ));
        return;
    }
}

/// `1-3, 7`
fn ranges(ranks: &[u32]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < ranks.len() {
        let first = ranks[at];
        let mut last = first;
        while at + 1 < ranks.len() && ranks[at + 1] == last + 1 {
            at += 1;
            last = ranks[at];
        }
        if !out.is_empty() {
            out.push_str(", ");
        }
        out.push_str(&if first == last { first.to_string() } else { format!("{first}-{last}") });
        at += 1;
    }
    out
}
