//! `not-one-job`: processes that should be one job each ran alone.
//!
//! ## What
//!
//! A line of the table was made by one rank although more were started, or two ranks are the same
//! process of the same host.
//!
//! ## Why
//!
//! A launcher that does not match the program (another MPI than it was built with, no MPI at all)
//! starts N jobs of one rank each. Every one of them reports a fine figure, and nothing crossed the
//! network.
//!
//! ## Example
//!
//! `2 ranks were started, but all_reduce ran on 1`
//!
//! ## Remedy
//!
//! Start all ranks from one launcher that the program knows: `mpirun` of the same MPI, `srun
//! --mpi=pmix`, or `ncclctl worker --join`.
//!
//! ## Source
//!
//! nccl-tests built without MPI=1: every process thinks that it is alone.

use std::collections::BTreeMap;

use crate::evidence::Evidence;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::paths::host_name;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    incident: Some(incident),
    ..Rule::new("not-one-job", Severity::Error, "ranks ran as separate jobs")
};

const REMEDY: &str = "start all ranks with one launcher that the program was built for: mpirun of \
                      the same MPI, srun --mpi=pmix, or ncclctl worker --join";

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    let ranks = evidence.ranks.len();
    if ranks > 1
        && !evidence.series.is_empty()
        && evidence.series.iter().all(|p| p.ranks == 1)
        && let Some(point) = evidence.series.first()
    {
        findings.push(RULE.found(
            Confidence::Certain,
            format!("{ranks} ranks were started, but {} ran on 1", point.collective),
            "each process ran a job of its own: nothing crossed from rank to rank",
            REMEDY,
            vec![Exhibit::measured("ranks in the result", "1")],
        ));
        return;
    }
    let mut seen: BTreeMap<(usize, u32), usize> = BTreeMap::new();
    for (number, rank) in evidence.ranks.iter().enumerate().filter(|(_, r)| r.pid != 0) {
        if let Some(other) = seen.insert((rank.host, rank.pid), number) {
            let host = host_name(evidence, rank.host);
            findings.push(RULE.found(
                Confidence::Certain,
                format!("ranks {other} and {number} are one process on {host}"),
                "a process was counted twice, so fewer ranks took part than the result says",
                REMEDY,
                vec![
                    Exhibit::rank(other, format!("pid {} on {host}", rank.pid)),
                    Exhibit::rank(number, format!("pid {} on {host}", rank.pid)),
                ],
            ));
        }
    }
}

fn incident(incident: &Incident, findings: &mut Vec<Finding>) {
    let alone: Vec<_> = incident.runs.iter().filter(|r| r.run.ranks.len() == 1).collect();
    let all = incident.runs.len();
    let mut places: std::collections::BTreeSet<(&str, u64)> = std::collections::BTreeSet::new();
    for r in &alone {
        let rank = &r.run.ranks[0];
        places.insert((&rank.host, rank.pid));
    }
    if alone.len() == all && places.len() > 1 {
        let names: Vec<&str> = places.iter().map(|(host, _)| *host).take(6).collect();
        let mut exhibits = incident.table_lines("#  Rank");
        exhibits.extend(incident.table_lines("# Avg bus bandwidth").into_iter().take(1));
        findings.push(RULE.found(
            Confidence::Certain,
            format!("{} processes ({}) each ran as rank 0 of 1", places.len(), names.join(", ")),
            "the launcher and the MPI in the image do not speak to each other, so every process took \
             itself for the whole job: bus bandwidth is 0 by definition",
            "launch all through one mpirun with the same MPI in launcher and image (or one torchrun \
             rendezvous), and check that the test was built with MPI=1",
            exhibits,
        ));
        return;
    }
    let comms = &incident.log.communicators;
    let hosts = incident.log.hosts();
    if hosts.len() > 1
        && incident.runs.is_empty()
        && comms.len() > 1
        && comms.iter().all(|c| c.nranks == 1)
    {
        findings.push(RULE.found(
            Confidence::Likely,
            format!("{} hosts each set up a job of one rank", hosts.len()),
            "the processes did not find each other: every one took itself for the whole job",
            "check WORLD_SIZE and RANK (or the MPI of launcher and image) on each host",
            incident.exhibits(comms.iter().flat_map(|c| c.members.values()).map(|m| &m.at), 3),
        ));
    }
}
