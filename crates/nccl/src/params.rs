//! The catalogue of variables that NCCL reads, by version, and how it reads their values.
//!
//! The data is `data/params.tsv`: every variable read by any release from 2.3.5 to 2.32.3, mined
//! from NVIDIA/nccl's tags and the wheels after 2.30.7, with curated meanings. One line is one
//! variable; its `source` column names tag and file.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::version::Version;

mod nearest;
mod taken;
mod value;

pub use nearest::nearest;
pub use taken::{PATH_LEVELS, Taken, Trap};
pub use value::{Integer, Reading, read_integer};

const TABLE: &str = include_str!("../data/params.tsv");

/// What kind of value a variable takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// 0 or 1. Almost always read as an integer, so that `true` is 0.
    Bool,
    /// An integer in base 10, 0x or 0.
    Int,
    /// One of several words.
    Enum,
    /// Several words.
    List,
    /// A file or library.
    Path,
    /// Free text.
    Text,
}

/// One variable.
#[derive(Debug)]
pub struct Param {
    /// Full name, with its `NCCL_` where it has one.
    pub name: &'static str,
    /// Kind of value.
    pub kind: Kind,
    /// Default of the newest release, as text; `unset` where absence has a meaning of its own.
    pub default: &'static str,
    /// Defaults over time, oldest first; empty where it never changed.
    pub defaults: Vec<(Version, &'static str)>,
    /// First release that reads it; `None` if older than 2.3.5.
    pub since: Option<Version>,
    /// Last release that reads it; `None` if the newest still does.
    pub last: Option<Version>,
    /// Whether NVIDIA's user guide names it.
    pub documented: bool,
    /// Accepted values, in words.
    pub accepted: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// What replaced it, or what it replaces; often empty.
    pub replaced_by: &'static str,
    /// What can go wrong with it, in short marks: `safe`, `debug-only`, `equal on every rank`, …
    pub risk: &'static str,
    /// Who reads it: `lib`, or a plug-in by folder.
    pub scope: &'static str,
    /// Tag and files that this line was read from.
    pub source: &'static str,
}

impl Param {
    /// Whether that release reads it.
    pub fn read_in(&self, version: Version) -> bool {
        self.since.is_none_or(|v| v <= version) && self.last.is_none_or(|v| version <= v)
    }

    /// Whether the newest known release does not read it any more.
    pub fn removed(&self) -> bool {
        self.last.is_some()
    }

    /// Default in that release.
    pub fn default_in(&self, version: Version) -> &'static str {
        self.defaults
            .iter()
            .rev()
            .find(|(since, _)| *since <= version)
            .map_or_else(|| self.defaults.first().map_or(self.default, |d| d.1), |(_, d)| d)
    }

    /// Whether ranks that disagree about it may hang or fail.
    pub fn must_match(&self) -> bool {
        self.risk.contains("equal on every") || self.risk.contains("equal in effect")
    }

    /// Whether its value must never be shown.
    pub fn secret(&self) -> bool {
        self.risk.contains("secret")
    }

    /// Whether it is meant for debugging and costs speed or safety when left behind.
    pub fn debug_only(&self) -> bool {
        self.risk.contains("debug-only")
    }

    /// Whether this variable is read by the integer conversion of [`read_integer`] in that
    /// release. The settings of the newer registry (2.30.3+, recognised by a default of `true` or
    /// `false`) read words instead.
    pub fn is_integer_in(&self, version: Version) -> bool {
        matches!(self.kind, Kind::Int | Kind::Bool)
            && !matches!(self.default_in(version), "true" | "false")
            && !self.name.starts_with("CUDA_")
    }
}

/// Every variable, by name.
pub fn all() -> &'static [Param] {
    &CATALOGUE.params
}

/// The variable of exactly that name.
pub fn get(name: &str) -> Option<&'static Param> {
    CATALOGUE.index.get(name).and_then(|&i| CATALOGUE.params.get(i))
}

/// Variables that a release reads, by name.
pub fn read_in(version: Version) -> impl Iterator<Item = &'static Param> {
    all().iter().filter(move |p| p.read_in(version))
}

struct Catalogue {
    params: Vec<Param>,
    index: HashMap<&'static str, usize>,
}

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let params: Vec<Param> = TABLE.lines().skip(1).filter_map(line).collect();
    let index = params.iter().enumerate().map(|(i, p)| (p.name, i)).collect();
    Catalogue { params, index }
});

fn line(line: &'static str) -> Option<Param> {
    let mut fields = line.split('\t');
    let mut next = || fields.next().unwrap_or_default();
    let (name, kind, default, changes) = (next(), next(), next(), next());
    let (first, last) = (next(), next());
    let documented = next() == "yes";
    let kind = match kind {
        "bool" => Kind::Bool,
        "int" => Kind::Int,
        "enum" => Kind::Enum,
        "list" => Kind::List,
        "path" => Kind::Path,
        "string" => Kind::Text,
        _ => return None,
    };
    let defaults = changes
        .split(';')
        .filter_map(|c| c.split_once(':'))
        .filter_map(|(v, d)| Some((v.parse().ok()?, d)))
        .collect();
    // `pre-v2.3.5-5`: known from the documents, read by no release since
    let last =
        if last.starts_with("pre-") { Some(Version::new(2, 3, 4)) } else { last.parse().ok() };
    Some(Param {
        name,
        kind,
        default,
        defaults,
        since: first.parse().ok(),
        last,
        documented,
        accepted: next(),
        meaning: next(),
        replaced_by: next(),
        risk: next(),
        scope: next(),
        source: next(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        assert_eq!(all().len(), TABLE.lines().count() - 1);
        assert!(all().is_sorted_by(|a, b| a.name < b.name), "by name, each once");
        for p in all() {
            assert!(!p.name.is_empty() && !p.meaning.is_empty(), "{}", p.name);
            assert!(p.since.is_none_or(|s| p.last.is_none_or(|l| s <= l)), "{}", p.name);
            assert!(p.defaults.is_sorted_by_key(|d| d.0), "{}", p.name);
        }
        let fields = TABLE.lines().map(|l| l.split('\t').count());
        assert!(fields.into_iter().all(|n| n == 13));
    }

    #[test]
    fn versions_decide_what_is_read_and_what_the_default_is() {
        let gid = get("NCCL_IB_GID_INDEX").unwrap();
        assert_eq!(gid.default_in(Version::new(2, 20, 5)), "0");
        assert_eq!(gid.default_in(Version::new(2, 21, 5)), "-1");
        let tree = get("NCCL_TREE_THRESHOLD").unwrap();
        assert!(tree.read_in(Version::new(2, 4, 8)) && !tree.read_in(Version::new(2, 5, 6)));
        assert!(tree.removed());
        let psk = get("NCCL_PSK").unwrap();
        assert!(psk.secret() && !psk.read_in(Version::new(2, 30, 7)));
        assert!(psk.read_in(Version::new(2, 32, 6)));
        assert!(get("NCCL_CHECKS_DISABLE").is_some_and(|p| !p.read_in(Version::new(2, 3, 5))));
        let old = read_in(Version::new(2, 18, 1)).count();
        assert!(old < read_in(Version::new(2, 30, 7)).count());
        assert!(get("NCCL_BUFFSIZE").unwrap().must_match());
        assert!(get("NCCL_IB_TIMEOUT").is_some() && get("NCCL_IB_TIMEOUTS").is_none());
    }

    #[test]
    fn words_are_read_only_by_the_newer_registry() {
        let words = all().iter().filter(|p| matches!(p.default, "true" | "false"));
        for p in words {
            assert!(!p.is_integer_in(Version::new(2, 32, 3)), "{}", p.name);
        }
        assert!(get("NCCL_IB_DISABLE").unwrap().is_integer_in(Version::new(2, 30, 7)));
    }
}
