//! `suppression-unused`: a comment that silences nothing.
//!
//! ## What
//!
//! A comment `# ncclctl: ignore[rule] why` names a rule that has nothing to say about its line, or that does
//! not exist, or stands where the file has no comments.
//!
//! ## Why
//!
//! The mistake that it was for is gone, or the line has moved. Left behind, it hides the next one.
//!
//! ## Example
//!
//! `ncclctl: ignore[env-value-misread] silences nothing`
//!
//! ## Remedy
//!
//! Take the comment out, or put it above the line that is meant.
//!
//! ## Source
//!
//! docs/lint.md, Silence.

use crate::documents::marks::Mark;
use crate::documents::{Documents, Text};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(crate) const RULE: Rule =
    Rule::new("suppression-unused", Severity::Warning, "a comment that silences nothing");

/// Says so of a comment, or of one rule that it names.
pub(crate) fn say(set: &Documents, mark: &Mark, rule: Option<&Text>, findings: &mut Vec<Finding>) {
    let (at, message, cause, remedy) = match rule {
        None if mark.no_comment => (
            &mark.at,
            "this is no comment: it silences nothing".to_owned(),
            "in this kind of file `#` begins a comment only at the start of a line; here it belongs to what \
             stands before it",
            "write it on a line of its own above".to_owned(),
        ),
        None => (
            &mark.at,
            "the comment names no rule, and silences nothing".to_owned(),
            "only named rules are silenced, so that the next mistake in the line is still told",
            "write `ncclctl: ignore[RULE] why`".to_owned(),
        ),
        Some(rule) if !super::RULES.iter().any(|r| r.id == rule.text) => (
            &rule.at,
            format!("no rule is called {}", rule.text),
            "the comment silences nothing",
            "write the name that the finding shows in its brackets".to_owned(),
        ),
        Some(rule) => (
            &rule.at,
            format!("ncclctl: ignore[{}] silences nothing", rule.text),
            "the rule has nothing to say about this line any more",
            match mark.rules.len() {
                1 => "take the comment out".to_owned(),
                _ => format!("take {} out of the comment", rule.text),
            },
        ),
    };
    findings.push(set.say(&RULE, Confidence::Certain, at, message, cause, remedy));
}
