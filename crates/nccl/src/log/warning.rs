//! The catalogue of NCCL's warnings: what each means, from which version to which it exists, and
//! what to look at. Read out of the WARN calls of all tags from 2.3.5 to 2.30.7.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use serde::Serialize;

use crate::Version;

/// One pattern of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Literal part of the message.
    pub pattern: &'static str,
    /// Source files that print it.
    pub file: &'static str,
    /// First version that has it.
    pub since: Option<Version>,
    /// Last version that has it, `None` while it is still there.
    pub until: Option<Version>,
    /// Category, like `socket` or `ib-connect`.
    pub category: &'static str,
    /// Most likely cause.
    pub cause: &'static str,
    /// What to look at.
    pub check: &'static str,
    /// Cause written for this very message, not derived from the source file.
    pub curated: bool,
}

/// The table as data: pattern, file, first tag, last tag, category, cause, check, origin, count.
const TABLE: &str = include_str!("../../data/warnings.tsv");

static WARNINGS: LazyLock<Vec<Warning>> = LazyLock::new(|| {
    TABLE
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut field = line.split('\t');
            let mut next = || field.next();
            Some(Warning {
                pattern: next()?,
                file: next()?,
                since: next()?.parse().ok(),
                until: next()?.parse().ok(),
                category: next()?,
                cause: next()?,
                check: next()?,
                curated: next()? == "curated",
            })
        })
        .collect()
});

static AUTOMATON: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::new(WARNINGS.iter().map(|w| w.pattern)).ok());

/// Every warning known.
pub fn all() -> &'static [Warning] {
    &WARNINGS
}

/// The warning that a message is: the longest pattern in it wins, among equally long ones the one
/// that this version has.
pub fn find(message: &str, version: Option<Version>) -> Option<&'static Warning> {
    AUTOMATON
        .as_ref()?
        .find_overlapping_iter(message)
        .map(|hit| &WARNINGS[hit.pattern().as_usize()])
        .max_by_key(|w| (w.pattern.len(), version.is_none_or(|v| w.exists_in(v))))
}

impl Warning {
    /// Whether a version has it.
    pub fn exists_in(&self, version: Version) -> bool {
        self.since.is_none_or(|s| s <= version) && self.until.is_none_or(|u| version <= u)
    }

    /// Follows from another error: some process went away or a helper thread gave up.
    pub fn is_secondary(&self) -> bool {
        matches!(self.category, "peer-died" | "proxy" | "internal")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads_whole() {
        assert_eq!(all().len(), TABLE.lines().count() - 1);
        assert!(all().iter().all(|w| !w.pattern.is_empty() && !w.check.is_empty()));
        assert!(all().iter().all(|w| w.since.is_some()));
    }

    #[test]
    fn the_longest_pattern_wins() {
        let text = "NET/IB: Call to ibv_modify_qp failed with 110 Connection timed out";
        assert_eq!(find(text, None).unwrap().category, "ib-connect");
        assert_eq!(find("Call to bind failed: x", None).unwrap().category, "system");
        assert_eq!(find("no such message", None), None);
    }

    #[test]
    fn every_pattern_finds_itself() {
        for w in all() {
            let found = find(w.pattern, w.since).unwrap();
            assert!(found.pattern.len() >= w.pattern.len(), "{}", w.pattern);
        }
    }
}
