//! `rank-behind`: one rank is at an earlier collective.
//!
//! ## What
//!
//! Of the ranks that report, one or few are at an earlier collective than the rest.
//!
//! ## Why
//!
//! Collectives are numbered; a rank with a smaller number has not called what the others wait in.
//! It is slow, stuck in its own code, or took another branch.
//!
//! ## Example
//!
//! `rank 7 is at 64088, the others at 96120`
//!
//! ## Remedy
//!
//! Look at that rank's stack, data loader and host: `py-spy dump`, dmesg.
//!
//! ## Source
//!
//! torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp.

use std::collections::BTreeMap;

use ncclctl_nccl::log::{At, Signal};
use ncclctl_nccl::watchdog;

use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("rank-behind", Severity::Error, "one rank is at an earlier collective")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    if recorded(incident, findings) || reported(incident, findings) {
        return;
    }
    // group -> rank -> furthest sequence number seen, with its line
    let mut groups: BTreeMap<String, BTreeMap<u32, (u64, &At)>> = BTreeMap::new();
    let mut note = |group: String, rank: u32, sequence: u64, at| {
        let entry = groups.entry(group).or_default().entry(rank).or_insert((sequence, at));
        if sequence > entry.0 {
            *entry = (sequence, at);
        }
    };
    for at in incident.log.signal(Signal::WatchdogTimeout) {
        if let Some(t) = watchdog::timeout(&at.text) {
            note(t.group.unwrap_or_default(), t.rank, t.sequence, at);
        }
    }
    let mut enqueued: BTreeMap<String, BTreeMap<u32, (u64, &At)>> = BTreeMap::new();
    for at in incident.log.signal(Signal::WatchdogState) {
        if let Some(s) = watchdog::state(&at.text) {
            enqueued
                .entry(s.group.unwrap_or_default())
                .or_default()
                .insert(s.rank, (s.enqueued, at));
        }
    }
    for ranks in groups.values().chain(enqueued.values()) {
        if ranks.len() < 2 {
            continue;
        }
        let Some(most) = ranks.values().map(|(s, _)| *s).max() else { continue };
        // a few enqueued calls apart is the normal depth of the queue
        let behind: Vec<_> = ranks.iter().filter(|(_, (s, _))| *s + 1 < most).collect();
        let ahead = ranks.len() - behind.len();
        if behind.is_empty() || behind.len() > ahead {
            continue;
        }
        let who: Vec<String> =
            behind.iter().map(|(r, (s, _))| format!("rank {r} is at {s}")).collect();
        let mut places: Vec<&At> = behind.iter().map(|(_, (_, at))| *at).collect();
        places.extend(ranks.values().filter(|(s, _)| *s == most).map(|(_, at)| *at).take(1));
        findings.push(RULE.found(
            Confidence::Likely,
            format!("{}, the others at {most}", who.join(", ")),
            "this rank has not called the collective that the others wait in: it is slow, stuck in \
             its own code, or took another branch",
            "look at that rank's stack (`py-spy dump`), its data loader and its host (dmesg); the \
             other ranks only wait",
            incident.exhibits(places, 4),
        ));
        return;
    }
}

/// From Flight Recorder dumps: the furthest collective of each rank in each group.
fn recorded(incident: &Incident, findings: &mut Vec<Finding>) -> bool {
    let mut groups: BTreeMap<&str, BTreeMap<u32, (u64, &str, &str)>> = BTreeMap::new();
    for (_, dump) in &incident.dumps {
        let Some(rank) = dump.rank else { continue };
        for call in dump.calls.iter().filter(|c| !c.point_to_point) {
            let entry = groups.entry(&call.group).or_default().entry(rank).or_default();
            if call.sequence >= entry.0 {
                *entry = (call.sequence, &call.operation, &call.state);
            }
        }
    }
    for (group, ranks) in groups {
        let Some(most) = ranks.values().map(|(s, ..)| *s).max() else { continue };
        let waiting = ranks.values().find(|(s, _, state)| *s == most && *state != "completed");
        let Some((_, operation, _)) = waiting else { continue };
        let behind: Vec<_> = ranks.iter().filter(|(_, (s, ..))| *s < most).collect();
        if behind.is_empty() || behind.len() >= ranks.len() {
            continue;
        }
        let who: Vec<String> =
            behind.iter().map(|(r, (s, ..))| format!("rank {r} is at {s}")).collect();
        findings.push(RULE.found(
            Confidence::Certain,
            format!("group {group}: {}, the others wait in {operation} {most}", who.join(", ")),
            "this rank has not called the collective that the others wait in: it is slow, stuck in \
             its own code, or took another branch",
            "look at that rank's stack (`py-spy dump`), its data loader and its host (dmesg)",
            ranks
                .iter()
                .take(8)
                .map(|(rank, (s, operation, state))| {
                    Exhibit::rank(*rank as usize, format!("{operation} {s}, {state}"))
                })
                .collect(),
        ));
        return true;
    }
    false
}

/// From a report of the RAS service.
fn reported(incident: &Incident, findings: &mut Vec<Finding>) -> bool {
    for (name, report) in &incident.reports {
        if report.lagging.is_empty() && report.launched.len() < 2 {
            continue;
        }
        let who = if report.lagging.is_empty() {
            "some ranks are".to_owned()
        } else {
            report.lagging.iter().take(4).cloned().collect::<Vec<_>>().join("; ")
        };
        let counts: Vec<String> =
            report.launched.iter().map(|(op, n)| format!("{n} ranks at operation {op}")).collect();
        findings.push(RULE.found(
            Confidence::Likely,
            format!("{who}: behind the others ({})", counts.join(", ")),
            "RAS counts the collectives that each rank has launched; the rank with the smaller count \
             has not called what the others wait in (a difference that moves is normal)",
            "ask again (`ncclras -v`): a count that stands still names the rank; then look at its \
             stack and host",
            report.complaints.iter().take(6).map(|c| Exhibit::fact(name.clone(), c.clone())).collect(),
        ));
        return true;
    }
    false
}
