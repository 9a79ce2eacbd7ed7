//! `noisy-result`: the times scatter so much that the figure is not worth its digits.
//!
//! ## What
//!
//! The 95% confidence interval of a size is wider than 10% of its mean, or its time drifted by more
//! than 20% while it was measured.
//!
//! ## Why
//!
//! Other work on the hosts or the network, frequency scaling, or too few repetitions.
//!
//! ## Example
//!
//! `all_reduce at 16M is known only to 18% after 40 operations`
//!
//! ## Remedy
//!
//! Give it more time (`--time-limit`), or find what else runs.
//!
//! ## Source
//!
//! Student's t interval over samples; see `Timing`.

use ncclctl_nccl::size::Short;

use crate::evidence::Evidence;
use crate::figures::percent;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    ..Rule::new("noisy-result", Severity::Info, "times scatter or drift")
};

/// Half width of the interval over the mean.
const WIDE: f64 = 0.10;
/// Last third over first third.
const DRIFT: f64 = 0.20;

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    // small sizes scatter everywhere and decide nothing
    let large = evidence.series.iter().map(|p| p.size).max().unwrap_or(0) / 16;
    let noisy: Vec<_> = evidence
        .series
        .iter()
        .filter(|p| p.size >= large && p.time.mean_us > 0.0 && p.time.operations > 1)
        .filter(|p| p.time.ci95_us > WIDE * p.time.mean_us || p.time.drift.abs() > DRIFT)
        .collect();
    let Some(worst) = noisy.iter().max_by(|a, b| {
        (a.time.ci95_us / a.time.mean_us).total_cmp(&(b.time.ci95_us / b.time.mean_us))
    }) else {
        return;
    };
    let width = worst.time.ci95_us / worst.time.mean_us;
    let message = if width > WIDE {
        format!(
            "{} at {} is known only to {} after {} operations",
            worst.collective,
            Short(worst.size),
            percent(width),
            worst.time.operations
        )
    } else {
        format!(
            "{} at {} drifted by {} while it was measured",
            worst.collective,
            Short(worst.size),
            percent(worst.time.drift.abs())
        )
    };
    let exhibits = noisy
        .iter()
        .map(|p| {
            let place = if p.in_place { "in place" } else { "out of place" };
            Exhibit::measured(
                format!("{} {} {place}", p.collective, Short(p.size)),
                format!(
                    "\u{b1}{}, drift {}, {} outliers",
                    percent(p.time.ci95_us / p.time.mean_us),
                    percent(p.time.drift),
                    p.time.outliers
                ),
            )
        })
        .collect();
    findings.push(RULE.found(
        Confidence::Certain,
        message,
        "something else uses the processors or the network, or there was too little time",
        "give it more time (--time-limit 60s), or stop what else runs on the hosts",
        exhibits,
    ));
}
