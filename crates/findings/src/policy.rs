//! `ncclctl.toml`: what a project wants of `lint`.

use std::collections::BTreeMap;
use std::ops::Range;

use ncclctl_nccl::Version;
use serde::Deserialize;
use toml::Spanned;

use crate::finding::{Finding, Severity};
use crate::rules::RULES;

/// What a project wants of `lint`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// NCCL release that jobs use, where no file says it.
    pub nccl: Option<Version>,
    /// Major version of the nodes' GPU driver.
    pub driver: Option<u32>,
    /// Where jobs run.
    pub platform: Option<Provider>,
    /// What is only possible is wanted too.
    pub pedantic: bool,
    /// Paths that are not looked at, as in .gitignore, from the folder of the file.
    pub ignore: Vec<String>,
    /// Severity of rules; `None` is off.
    pub severity: BTreeMap<String, Option<Severity>>,
}

/// Where jobs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Amazon: EFA.
    Eks,
    /// Google: TCPX, TCPXO, RoCE.
    Gke,
    /// Azure: InfiniBand in VMs.
    Aks,
    /// Anything else.
    Other,
}

/// Why a policy can not be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct PolicyError {
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    /// Why, and what may stand there.
    pub why: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(default)]
    lint: RawLint,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLint {
    nccl: Option<Spanned<String>>,
    driver: Option<u32>,
    platform: Option<Spanned<String>>,
    #[serde(default)]
    pedantic: bool,
    #[serde(default)]
    ignore: Vec<String>,
    #[serde(default)]
    severity: BTreeMap<Spanned<String>, Spanned<String>>,
}

impl Provider {
    /// By its name in the file.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "eks" => Some(Self::Eks),
            "gke" => Some(Self::Gke),
            "aks" => Some(Self::Aks),
            "other" => Some(Self::Other),
            _ => None,
        }
    }
}

impl Policy {
    /// Reads the text of a file.
    pub fn read(text: &str) -> Result<Self, PolicyError> {
        let fail = |span: Range<usize>, why: String| {
            let before = text.get(..span.start).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            let column = before.len() - before.rfind('\n').map_or(0, |i| i + 1) + 1;
            PolicyError { line, column, why }
        };
        let raw: Raw = toml::from_str(text).map_err(|error| {
            let why = error.message().lines().collect::<Vec<_>>().join(" ");
            fail(error.span().unwrap_or(0..0), why)
        })?;
        let raw = raw.lint;
        let nccl = raw.nccl.map(|v| {
            v.get_ref().parse::<Version>().map_err(|_| {
                fail(v.span(), format!("{} is no release of NCCL, like 2.21.5", v.get_ref()))
            })
        });
        let platform = raw.platform.map(|p| {
            Provider::named(p.get_ref()).ok_or_else(|| {
                let what = format!("no platform {}; it is eks, gke, aks or other", p.get_ref());
                fail(p.span(), what)
            })
        });
        let mut severity = BTreeMap::new();
        for (rule, level) in raw.severity {
            if !RULES.iter().any(|r| r.id == rule.get_ref()) {
                let why = match near(rule.get_ref()) {
                    Some(near) => format!("no rule is called {}; {near} is", rule.get_ref()),
                    None => format!("no rule is called {}", rule.get_ref()),
                };
                return Err(fail(rule.span(), why));
            }
            let at = match level.get_ref().as_str() {
                "off" => None,
                "info" => Some(Severity::Info),
                "warning" => Some(Severity::Warning),
                "error" => Some(Severity::Error),
                other => {
                    let why = format!("no severity {other}; it is off, info, warning or error");
                    return Err(fail(level.span(), why));
                }
            };
            severity.insert(rule.into_inner(), at);
        }
        Ok(Self {
            nccl: nccl.transpose()?,
            driver: raw.driver,
            platform: platform.transpose()?,
            pedantic: raw.pedantic,
            ignore: raw.ignore,
            severity,
        })
    }

    /// Findings at the severities that are wanted.
    pub fn apply(&self, findings: Vec<Finding>) -> Vec<Finding> {
        let at = |mut finding: Finding| match self.severity.get(&finding.rule) {
            Some(None) => None,
            Some(Some(severity)) => {
                finding.severity = *severity;
                Some(finding)
            }
            None => Some(finding),
        };
        findings.into_iter().filter_map(at).collect()
    }
}

/// The rule whose name shares most of its beginning and end.
fn near(name: &str) -> Option<&'static str> {
    let alike = |id: &str| {
        let front = id.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
        let back = id.bytes().rev().zip(name.bytes().rev()).take_while(|(a, b)| a == b).count();
        front + back
    };
    RULES.iter().map(|r| r.id).max_by_key(|id| alike(id)).filter(|id| alike(id) * 2 >= name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_stand_there() {
        let policy = Policy::read(
            "[lint]\nnccl = \"2.21\"\ndriver = 535\nplatform = \"eks\"\nignore = [\"vendor/\"]\n\n[lint.severity]\nhost-namespaces = \"off\"\nimage-not-pinned = \"error\"\n",
        )
        .unwrap();
        assert_eq!(policy.nccl, Some("2.21".parse().unwrap()));
        assert_eq!(policy.platform, Some(Provider::Eks));
        assert_eq!(policy.severity["host-namespaces"], None);
        assert_eq!(policy.severity["image-not-pinned"], Some(Severity::Error));
        assert_eq!(Policy::read(""), Ok(Policy::default()));
    }

    #[test]
    fn mistakes_have_a_place_and_say_what_may_stand_there() {
        for (text, line, column, why) in [
            ("[lint]\nnccl = \"two\"\n", 2, 8, "two is no release of NCCL, like 2.21.5"),
            (
                "[lint]\nnccl = 2.21\n",
                2,
                8,
                "invalid type: floating point `2.21`, expected a string",
            ),
            (
                "[lint]\nncl = \"2.21\"\n",
                2,
                1,
                "unknown field `ncl`, expected one of `nccl`, `driver`, `platform`, `pedantic`, `ignore`, `severity`",
            ),
            (
                "[lint]\nplatform = \"aws\"\n",
                2,
                12,
                "no platform aws; it is eks, gke, aks or other",
            ),
            (
                "[lint.severity]\nhost-namespace = \"off\"\n",
                2,
                1,
                "no rule is called host-namespace; host-namespaces is",
            ),
            (
                "[lint.severity]\nhost-namespaces = \"no\"\n",
                2,
                19,
                "no severity no; it is off, info, warning or error",
            ),
            ("[lint\n", 1, 6, "unclosed table, expected `]`"),
        ] {
            let error = Policy::read(text).unwrap_err();
            assert_eq!(
                (error.line, error.column, error.why.as_str()),
                (line, column, why),
                "{text}"
            );
        }
    }
}
