//! `cpu-bound`: the processors, not the network, set the pace.
//!
//! ## What
//!
//! While the trial ran a host had no idle processor left, its cgroup's quota held it back, or it
//! runs more ranks than it has processors.
//!
//! ## Why
//!
//! The tcp engine, and NCCL's own socket transport and proxy threads, need a core for each few GB/s.
//! Without one the figure says how busy the host is. Where all hosts share one machine this is
//! normal, the ceiling counts it in, and the finding is for information.
//!
//! ## Example
//!
//! `h2 was held back by its cpu quota for 31% of the time (2.0 processors allowed)`
//!
//! ## Remedy
//!
//! Raise the container's CPU limit (or remove it), and check what else runs on the host.
//!
//! ## Source
//!
//! `/proc/stat`, `cpu.stat` (nr_throttled, throttled_usec), affinity mask.

use crate::evidence::{CpuWindow, Evidence};
use crate::figures::percent;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::paths::host_name;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    ..Rule::new("cpu-bound", Severity::Warning, "no idle core, or a cpu quota, sets the pace")
};

/// Share of the time for which the quota must have held the ranks back.
const THROTTLED: f64 = 0.05;
/// Less idle than this, in processors, is none: the kernel's own work takes the rest.
const IDLE: f64 = 0.15;

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    let shared = crate::paths::one_machine(evidence);
    for (index, host) in evidence.hosts.iter().enumerate() {
        let mut windows: Vec<&CpuWindow> =
            evidence.cpu.iter().filter(|w| w.host == index && w.seconds > 0.0).collect();
        windows.sort_by_key(|w| w.point);
        let name = host_name(evidence, index);
        let seconds: f64 = windows.iter().map(|w| w.seconds).sum();
        let throttled: f64 = windows.iter().map(|w| w.throttled_seconds).sum();
        if seconds > 0.0 && throttled > THROTTLED * seconds {
            findings.push(RULE.found(
                Confidence::Certain,
                format!(
                    "{name} was held back by its cpu quota for {} of the time ({:.1} processors \
                     allowed)",
                    percent((throttled / seconds).min(1.0)),
                    host.cpus
                ),
                "the cgroup's quota stops all threads of the container once it is used up, and \
                 every peer then waits",
                "raise or remove the container's cpu limit (Kubernetes limits.cpu, docker --cpus)",
                vec![
                    Exhibit::measured(format!("{name} throttled"), format!("{throttled:.2} s")),
                    Exhibit::fact("host.cpus", format!("{:.2}", host.cpus)),
                ],
            ));
            continue;
        }
        let busy: Vec<&&CpuWindow> =
            windows.iter().filter(|w| w.machine_cpus - w.busy_cpus < IDLE).collect();
        if windows.is_empty() || busy.len() * 2 <= windows.len() {
            continue;
        }
        let own = busy.iter().map(|w| w.trial_cpus).sum::<f64>() / busy.len() as f64;
        let all = busy.iter().map(|w| w.busy_cpus).sum::<f64>() / busy.len() as f64;
        let cpus = busy.iter().map(|w| w.machine_cpus).fold(0.0, f64::max);
        let others = (all - own).max(0.0);
        let exhibits = vec![
            Exhibit::measured(format!("{name} busy"), format!("{all:.1} of {cpus:.0} processors")),
            Exhibit::measured(format!("{name} trial's own"), format!("{own:.1} processors")),
        ];
        let foreign = others > 0.25 * cpus;
        let finding = RULE.found(
            Confidence::Certain,
            format!(
                "{name} had no idle processor: {all:.1} of {cpus:.0} busy, {own:.1} by this trial"
            ),
            if foreign {
                "other work on the machine competes with the ranks"
            } else {
                "the ranks themselves use every processor: the figure is what they can copy and \
                 reduce"
            },
            if foreign {
                "find what else runs there (top) and repeat without it"
            } else {
                "fewer ranks per host, or a host with more processors, if the network must be seen"
            },
            exhibits,
        );
        // on one machine the processor is the wire, and the ceiling knows
        findings.push(if shared { finding.at(Severity::Info) } else { finding });
        if shared {
            return;
        }
    }
}
