//! `gpu-throttled`: a GPU's clocks were held back.
//!
//! ## What
//!
//! In a good part of the readings taken while the trial ran, a GPU reported that its clocks were
//! lowered for heat, power or by hardware protection.
//!
//! ## Why
//!
//! A collective runs at the pace of its slowest rank. NVLink and copy kernels need little compute,
//! but a GPU in thermal or power-brake slowdown falls to a fraction of its clock, and every rank
//! waits for it.
//!
//! ## Example
//!
//! `rank 3's GPU 0000:5d:00.0 was held back by hw_thermal_slowdown in 40% of 120 readings (at most 1125 MHz, 91 C)`
//!
//! ## Remedy
//!
//! Heat: look at fans, airflow and neighbours. Power brake: the rack's or the server's power supply
//! asks for it. Software power cap: `nvidia-smi -q -d POWER` shows the limit in force.
//!
//! ## Source
//!
//! NVML, nvmlDeviceGetCurrentClocksThrottleReasons.

use std::collections::BTreeMap;

use crate::evidence::{Evidence, GpuRecord};
use crate::figures::percent;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    ..Rule::new("gpu-throttled", Severity::Warning, "a GPU's clocks are held back")
};

/// Share of the readings from which it is told.
const OFTEN: f64 = 0.20;
/// Hardware's own protection: always a fault of heat, power or the board.
const HARDWARE: &[&str] =
    &["hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"];

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    let mut seen: Vec<&str> = Vec::new();
    for gpu in &evidence.gpus {
        // ranks that share a GPU see the same
        let key = gpu.gpu.as_str();
        if gpu.samples.is_empty() || (gpu.shared && seen.contains(&key)) {
            continue;
        }
        seen.push(key);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for reason in gpu.samples.iter().flat_map(|s| &s.throttled_by) {
            *counts.entry(reason).or_default() += 1;
        }
        let share = |count: usize| count as f64 / gpu.samples.len() as f64;
        let worst = counts
            .iter()
            .filter(|(_, count)| share(**count) >= OFTEN)
            .max_by_key(|(name, count)| (HARDWARE.contains(name), **count));
        if let Some((reason, count)) = worst {
            findings.push(finding(gpu, reason, share(*count)));
        }
    }
}

fn finding(gpu: &GpuRecord, reason: &str, share: f64) -> Finding {
    let clock = gpu.samples.iter().filter_map(|s| s.sm_clock_mhz).max();
    let heat = gpu.samples.iter().filter_map(|s| s.celsius).max();
    let figures: Vec<String> = clock
        .map(|mhz| format!("at most {mhz} MHz"))
        .into_iter()
        .chain(heat.map(|c| format!("{c} C")))
        .collect();
    let hardware = HARDWARE.contains(&reason);
    let found = RULE.found(
        if hardware { Confidence::Certain } else { Confidence::Likely },
        format!(
            "rank {}'s GPU {} was held back by {reason} in {} of {} readings ({})",
            gpu.rank,
            gpu.gpu,
            percent(share),
            gpu.samples.len(),
            figures.join(", ")
        ),
        if hardware {
            "heat, the power supply or the board's own protection lowers the clocks, and every rank \
             waits for the slowest"
        } else {
            "a limit in force keeps the clocks lower than the GPU can"
        },
        if reason.contains("thermal") {
            "look at fans, airflow and neighbours of this GPU; nvidia-smi -q -d TEMPERATURE"
        } else {
            "nvidia-smi -q -d POWER,PERFORMANCE shows the limit; look at the server's power supply"
        },
        vec![Exhibit::Rank { rank: gpu.rank, seen: format!("{reason} in {}", percent(share)) }],
    );
    if hardware { found } else { found.at(Severity::Info) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::GpuSample;

    fn evidence(reasons: &[&[&str]]) -> Evidence {
        let sample = |r: &&[&str]| GpuSample {
            throttled_by: r.iter().map(|s| (*s).to_owned()).collect(),
            sm_clock_mhz: Some(1125),
            celsius: Some(91),
            ..GpuSample::default()
        };
        let gpu = GpuRecord {
            rank: 3,
            gpu: "0000:5d:00.0".to_owned(),
            samples: reasons.iter().map(sample).collect(),
            ..GpuRecord::default()
        };
        Evidence { gpus: vec![gpu], ..Evidence::default() }
    }

    fn found(reasons: &[&[&str]]) -> Vec<(Severity, String)> {
        let mut findings = Vec::new();
        look(&evidence(reasons), &mut findings);
        findings.into_iter().map(|f| (f.severity, f.message)).collect()
    }

    #[test]
    fn heat_is_told_before_a_cap() {
        let told = found(&[&["sw_power_cap", "hw_thermal_slowdown"], &["sw_power_cap"], &[]]);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0, Severity::Warning);
        insta::assert_snapshot!(told[0].1, @"rank 3's GPU 0000:5d:00.0 was held back by hw_thermal_slowdown in 33% of 3 readings (at most 1125 MHz, 91 C)");
    }

    #[test]
    fn a_cap_alone_is_information_and_rare_or_no_reasons_are_nothing() {
        assert_eq!(found(&[&["sw_power_cap"], &[]])[0].0, Severity::Info);
        assert!(found(&[&[], &[]]).is_empty());
        let rare: Vec<&[&str]> = vec![&["hw_slowdown"], &[], &[], &[], &[], &[]];
        assert!(found(&rare).is_empty());
    }
}
