//! `mpi-env-not-forwarded`: settings of the launcher that mpirun does not pass on.
//!
//! ## What
//!
//! The launcher of an MPIJob sets NCCL variables in `env:`, and its literal mpirun line names others or
//! none with `-x`.
//!
//! ## Why
//!
//! Open MPI starts ranks through ssh, which carries no environment; only what `-x` names reaches them.
//!
//! ## Example
//!
//! `NCCL_DEBUG is set in the launcher, and mpirun has no -x NCCL_DEBUG`
//!
//! ## Remedy
//!
//! Add `-x NCCL_DEBUG` to the line.
//!
//! ## Source
//!
//! Open MPI: mpirun(1), exporting environment variables.

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "mpi-env-not-forwarded",
        Severity::Warning,
        "settings of the launcher that mpirun does not pass on",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        if !pod.role.eq_ignore_ascii_case("launcher") {
            continue;
        }
        let line = container.words();
        let open_mpi = line.contains("mpirun")
            && ["--allow-run-as-root", "-x ", "--mca", "-mca", "-bind-to", "--bind-to", "-map-by"]
                .iter()
                .any(|w| line.contains(w));
        let all =
            line.contains("mca_base_env_list") || line.contains("-genv") || line.contains("$(env");
        let Some(block) = set.settings(container) else { continue };
        if !open_mpi || all {
            continue;
        }
        for setting in block.settings.iter().filter(|s| s.name.text.starts_with("NCCL_")) {
            if line.contains(&setting.name.text) {
                continue;
            }
            findings.push(set.say(
                &RULE,
                Confidence::Likely,
                &setting.name.at,
                format!("{0} is set in the launcher, and mpirun has no -x {0}", setting.name.text),
                "ranks are started through ssh, which carries no environment; mpirun passes on what -x names",
                format!("add `-x {}` to the mpirun line", setting.name.text),
            ));
        }
    }
}
