//! `nccl-version-mismatch`: ranks load different NCCL versions.
//!
//! ## What
//!
//! Two ranks of one job run different versions of libnccl.
//!
//! ## Why
//!
//! The wire format between ranks changes with versions. Images or LD_LIBRARY_PATH differ between
//! hosts.
//!
//! ## Example
//!
//! `h1 has NCCL 2.21.5, h2 2.23.4`
//!
//! ## Remedy
//!
//! Use one image on all hosts; `ncclctl facts` shows which libnccl a process loads.
//!
//! ## Source
//!
//! NCCL src/bootstrap.cc, src/init.cc (2.23.4 and later say so; before, ranks hang or fail oddly).

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("nccl-version-mismatch", Severity::Error, "ranks load different NCCL versions")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let said = incident.notices(&[
        "Mismatched NCCL version detected",
        "NCCL version mismatch with remote peer",
        "library version is too old",
        "library is too old",
    ]);
    if let Some(first) = said.first() {
        findings.push(RULE.found(
            Confidence::Certain,
            first.text.clone(),
            "the ranks (or the program and the library) are of different NCCL versions",
            "use one image on all hosts; `ncclctl facts` shows which libnccl a process loads",
            incident.exhibits(said.iter().map(|n| &n.at), 3),
        ));
        return;
    }
    // set-up breaks off before there is a communicator: the messages of two versions differ in size
    let cut = incident.notices(&["Message truncated : received"]);
    let mut known = incident.log.processes.iter().filter_map(|p| Some((p, p.version?)));
    if let (Some(notice), Some((first, version))) = (cut.first(), known.next())
        && let Some((other, theirs)) = known.find(|(p, v)| *v != version && p.host != first.host)
    {
        findings.push(RULE.found(
            Confidence::Likely,
            format!("{} has NCCL {version}, {} {theirs}", first.host, other.host),
            "messages of set-up have another size in the other version",
            "use one image on all hosts; `ncclctl facts` shows which libnccl a process loads",
            incident.exhibits([&notice.at, &first.first, &other.first], 3),
        ));
        return;
    }
    for comm in &incident.log.communicators {
        // without an id ranks of different jobs share one entry
        if !comm.id.starts_with("0x") {
            continue;
        }
        let mut members = comm.members.values().filter_map(|m| {
            let p = incident.log.processes.get(m.process)?;
            Some((p, p.version?))
        });
        let Some((first, version)) = members.next() else { continue };
        if let Some((other, theirs)) = members.find(|(_, v)| *v != version) {
            findings.push(RULE.found(
                Confidence::Certain,
                format!("{} has NCCL {version}, {} {theirs}", first.host, other.host),
                "ranks of one communicator run different versions of libnccl",
                "use one image on all hosts; `ncclctl facts` shows which libnccl a process loads",
                incident.exhibits([&first.first, &other.first], 2),
            ));
            return;
        }
    }
}
