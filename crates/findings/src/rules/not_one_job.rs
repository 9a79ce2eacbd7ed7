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
use crate::paths::host_name;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
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
