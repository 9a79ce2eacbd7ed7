//! The verdict and the findings in plain words: first the answer, then why, then what to do.

use std::fmt::Write as _;

use ncclctl_findings::verdict::{Basis, Judgement, Outcome, Proof};
use ncclctl_findings::{Confidence, Exhibit, Finding, Severity};

use crate::text::wrap;

/// How to write it.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// What stands before every line: `# ` where a table's readers come after.
    pub prefix: &'static str,
    /// Whether colours may be used.
    pub colour: bool,
}

/// The word of an outcome.
pub fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "PASS",
        Outcome::Fail => "FAIL",
        Outcome::Inconclusive => "INCONCLUSIVE",
    }
}

/// Verdict and findings.
pub fn render(judgement: &Judgement, style: Style) -> String {
    let mut out = String::new();
    let verdict = &judgement.verdict;
    let p = style.prefix;
    let (on, off) = match (style.colour, verdict.outcome) {
        (false, _) => ("", ""),
        (true, Outcome::Pass) => ("\x1b[1;32m", "\x1b[0m"),
        (true, Outcome::Fail) => ("\x1b[1;31m", "\x1b[0m"),
        (true, Outcome::Inconclusive) => ("\x1b[1;33m", "\x1b[0m"),
    };
    let mut head = String::new();
    wrap(
        &mut head,
        style.width,
        &format!("{p}{}  ", word(verdict.outcome)),
        &format!("{p}  "),
        &verdict.summary,
    );
    // colour is added after wrapping, so that it takes no columns
    out.push_str(&head.replacen(
        word(verdict.outcome),
        &format!("{on}{}{off}", word(verdict.outcome)),
        1,
    ));
    let line = |out: &mut String, label: &str, text: &str| {
        let first = format!("{p}  {label:<10} ");
        let rest = format!("{p}  {:<10} ", "");
        wrap(out, style.width, &first, &rest, text);
    };
    if let Some(expected) = &verdict.expected {
        let basis = match expected.basis {
            Basis::Measured => "measured just now",
            Basis::Model => "by the hardware's limits",
            Basis::Nic => "by the NIC's line rate",
            Basis::Stated => "by the line rate you stated",
            Basis::Published => "by a figure published for this platform",
        };
        let text = format!(
            "{} GB/s busbw, {basis}; limited by {}",
            figure(expected.busbw),
            expected.limited_by
        );
        line(&mut out, "expected", &text);
    }
    for (label, proof) in [
        ("transport", &verdict.proofs.transport),
        ("wire", &verdict.proofs.wire),
        ("busbw", &verdict.proofs.busbw),
    ] {
        line(&mut out, label, &proved(proof));
    }
    if !verdict.noise.says.is_empty() {
        line(&mut out, "noise", &verdict.noise.says);
    }
    for unknown in &verdict.unknown {
        line(&mut out, "not known", unknown);
    }
    for settle in &verdict.settle {
        line(&mut out, "next", settle);
    }
    for found in &judgement.findings {
        let _ = writeln!(out, "{}", p.trim_end());
        finding(&mut out, found, style);
    }
    out
}

fn proved(proof: &Proof) -> String {
    if proof.had { proof.says.clone() } else { format!("not proved: {}", proof.says) }
}

/// One finding: what, where it was seen, why, what to do.
pub fn finding(out: &mut String, finding: &Finding, style: Style) {
    let p = style.prefix;
    let word = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    };
    let sure = match finding.confidence {
        Confidence::Certain => "",
        Confidence::Likely => " (likely)",
        Confidence::Possible => " (possible)",
    };
    let (on, off) = match (style.colour, finding.severity) {
        (false, _) => ("", ""),
        (true, Severity::Error) => ("\x1b[31m", "\x1b[0m"),
        (true, Severity::Warning) => ("\x1b[33m", "\x1b[0m"),
        (true, Severity::Info) => ("\x1b[36m", "\x1b[0m"),
    };
    let label = format!("{word}[{}]{sure}:", finding.rule);
    let mut head = String::new();
    wrap(&mut head, style.width, &format!("{p}{label} "), &format!("{p}  "), &finding.message);
    out.push_str(&head.replacen(&label, &format!("{on}{label}{off}"), 1));
    for exhibit in &finding.evidence {
        wrap(
            out,
            style.width,
            &format!("{p}  seen    "),
            &format!("{p}          "),
            &seen(exhibit),
        );
    }
    for (label, text) in [("cause", &finding.cause), ("remedy", &finding.remedy)] {
        if !text.is_empty() {
            let first = format!("{p}  {label:<7} ");
            wrap(out, style.width, &first, &format!("{p}          "), text);
        }
    }
}

fn seen(exhibit: &Exhibit) -> String {
    match exhibit {
        Exhibit::Text { file, line, column, text } => format!("{file}:{line}:{column}: {text}"),
        Exhibit::Rank { rank, seen } => format!("rank {rank}: {seen}"),
        Exhibit::Nic { nic, host, seen } => format!("{nic} of {host}: {seen}"),
        Exhibit::Fact { fact, value } => format!("{fact} = {value}"),
        Exhibit::Measured { measured, value } => format!("{measured}: {value}"),
    }
}

/// A figure with three significant digits.
pub fn figure(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        v if v >= 0.1 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}
