//! `suppression-without-reason`: a comment silences a rule and does not say why.
//!
//! ## What
//!
//! A comment `# ncclctl: ignore[rule]` without a word behind it. It silences all the same.
//!
//! ## Why
//!
//! Whoever reads it next year can not know whether it still holds.
//!
//! ## Example
//!
//! `ignore[env-workaround-left] without a reason`
//!
//! ## Remedy
//!
//! Say why, behind the bracket.
//!
//! ## Source
//!
//! docs/lint.md, Silence.

use crate::documents::Documents;
use crate::documents::marks::Mark;
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(crate) const RULE: Rule = Rule::new(
    "suppression-without-reason",
    Severity::Warning,
    "a comment silences a rule and does not say why",
);

/// Says so of a comment.
pub(crate) fn say(set: &Documents, mark: &Mark, findings: &mut Vec<Finding>) {
    let names: Vec<&str> = mark.rules.iter().map(|r| r.text.as_str()).collect();
    findings.push(set.say(
        &RULE,
        Confidence::Certain,
        &mark.at,
        format!("ignore[{}] without a reason", names.join(", ")),
        "whoever reads it next can not know whether it still holds",
        "say why behind the bracket, like `# ncclctl: ignore[host-namespaces] the profiler needs it`",
    ));
}
