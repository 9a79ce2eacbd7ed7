//! What is known is silent: comments in the files, and what becomes of those that silence nothing.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::documents::{Documents, check};
use crate::finding::{Exhibit, Finding};
use crate::rules::{suppression_unused, suppression_without_reason};

/// A finding that is known.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Silenced {
    /// What was found.
    pub finding: Finding,
    /// Who says that it is known.
    pub by: By,
    /// Why, in the words of who wrote it.
    pub reason: String,
}

/// Who says that a finding is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// A comment beside it.
    Comment,
    /// The baseline.
    Baseline,
}

/// What was found in a set, and what of it a comment silences. Comments without a reason, and those
/// that silence nothing, are findings of their own.
pub fn judge(set: &Documents) -> (Vec<Finding>, Vec<Silenced>) {
    let findings = check(set);
    if set.marks.is_empty() {
        return (findings, Vec::new());
    }
    let mut used = HashSet::new();
    let (mut loud, mut silenced) = (Vec::new(), Vec::new());
    for finding in findings {
        match by(set, &finding, &mut used) {
            Some(reason) => silenced.push(Silenced { finding, by: By::Comment, reason }),
            None => loud.push(finding),
        }
    }
    let all: usize = set.marks.iter().map(|m| m.rules.len()).sum();
    if used.len() < all && !set.pedantic {
        // what would only be said with --pedantic is no less silenced
        for finding in check(&Documents { pedantic: true, ..set.clone() }) {
            by(set, &finding, &mut used);
        }
    }
    for (index, mark) in set.marks.iter().enumerate() {
        if mark.reason.is_empty() {
            suppression_without_reason::say(set, mark, &mut loud);
        }
        if mark.rules.is_empty() || mark.no_comment {
            suppression_unused::say(set, mark, None, &mut loud);
            continue;
        }
        for (nth, rule) in mark.rules.iter().enumerate() {
            if !used.contains(&(index, nth)) {
                suppression_unused::say(set, mark, Some(rule), &mut loud);
            }
        }
    }
    crate::documents::in_order(set, &mut loud);
    (loud, silenced)
}

/// The reason of the comment that silences a finding.
fn by(set: &Documents, finding: &Finding, used: &mut HashSet<(usize, usize)>) -> Option<String> {
    let (file, line) = finding.evidence.iter().find_map(|e| match e {
        Exhibit::Text { file, line, .. } => Some((file, *line)),
        _ => None,
    })?;
    let mut reason = None;
    for (index, mark) in set.marks.iter().enumerate() {
        let here = set.files.get(mark.at.file).is_some_and(|f| f.name == *file);
        if !here || mark.no_comment || !mark.lines.contains(&line) {
            continue;
        }
        if let Some(nth) = mark.rules.iter().position(|r| r.text == finding.rule) {
            used.insert((index, nth));
            reason.get_or_insert_with(|| mark.reason.clone());
        }
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::gather::Gather;

    fn rules(name: &str, text: &str) -> (Vec<String>, Vec<String>) {
        let mut gather = Gather::new(None, None, false);
        gather.add(name, text);
        let (loud, silenced) = judge(&gather.finish().0);
        (
            loud.into_iter().map(|f| f.rule).collect(),
            silenced.into_iter().map(|s| format!("{}: {}", s.finding.rule, s.reason)).collect(),
        )
    }

    #[test]
    fn a_comment_silences_its_line_and_says_why() {
        let misread =
            "# ncclctl: ignore[env-value-misread] read by our wrapper\nNCCL_IB_DISABLE=true\n";
        assert_eq!(
            rules("a.env", misread),
            (vec![], vec!["env-value-misread: read by our wrapper".to_owned()])
        );
        let yaml = "services:\n  a:\n    image: x/y:1\n    environment:\n      NCCL_P2P_DISABLE: \"1\" # ncclctl: ignore[env-workaround-left] board 7 hangs\n";
        assert_eq!(rules("compose.yaml", yaml).1, ["env-workaround-left: board 7 hangs"]);
    }

    #[test]
    fn comments_that_do_nothing_are_told() {
        let unused = "# ncclctl: ignore[env-value-misread] old\nNCCL_DEBUG=WARN\n";
        assert_eq!(rules("a.env", unused).0, ["suppression-unused"]);
        let no_such = "# ncclctl: ignore[env-value-missread] old\nNCCL_IB_DISABLE=true\n";
        assert_eq!(rules("a.env", no_such).0, ["suppression-unused", "env-value-misread"]);
        let reasonless = "# ncclctl: ignore[env-value-misread]\nNCCL_IB_DISABLE=true\n";
        let (loud, silenced) = rules("a.env", reasonless);
        assert_eq!((loud.len(), silenced.len()), (1, 1));
        assert_eq!(loud, ["suppression-without-reason"]);
        // behind a value of an env file it is no comment
        let behind = "NCCL_IB_DISABLE=1 # ncclctl: ignore[env-workaround-left] x\n";
        assert!(rules("a.env", behind).0.contains(&"suppression-unused".to_owned()));
    }
}
