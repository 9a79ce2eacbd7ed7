//! The finding: one diagnosed statement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How bad it is, least first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Info,
    /// Costs speed or safety, or will fail elsewhere.
    Warning,
    /// Breaks the run, or makes its result wrong.
    Error,
}

/// How sure it is, least first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// One of several explanations that fit.
    Possible,
    /// The best explanation of what was seen.
    Likely,
    /// Follows from what was seen.
    Certain,
}

/// One piece of what a finding rests on. Untagged on output: the key says what it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "evidence")]
pub enum Exhibit {
    /// A place in a document or log. Lines and columns count from 1; columns are bytes.
    Text {
        /// Path as given by the user, `-` for standard input.
        file: String,
        /// First line, from 1.
        line: u64,
        /// First column in bytes, from 1.
        column: u64,
        /// The line itself, cut to a sensible length.
        text: String,
    },
    /// A rank of the trial.
    Rank {
        /// Rank number.
        rank: usize,
        /// What was seen of it.
        seen: String,
    },
    /// A network interface or RDMA device of one host.
    Nic {
        /// Device name, like `eth0` or `mlx5_0`.
        nic: String,
        /// Host it belongs to.
        host: String,
        /// What was seen of it.
        seen: String,
    },
    /// A fact by path, like `container.shm.size`, and its value.
    Fact {
        /// Dotted path of the fact.
        fact: String,
        /// Its value as text.
        value: String,
    },
    /// A figure or relation that was measured.
    Measured {
        /// What was measured, like `path h1 -> h2`.
        measured: String,
        /// The figure with its unit.
        value: String,
    },
}

/// A diagnosed statement: what is wrong, why, how sure, on which evidence, what to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Id of the rule that made it; a slug such as `shm-too-small`.
    pub rule: String,
    /// How bad it is.
    pub severity: Severity,
    /// How sure it is.
    pub confidence: Confidence,
    /// One line: what was found, with the names and figures of this case.
    pub message: String,
    /// Why it is so, or why NCCL behaves so.
    pub cause: String,
    /// What to do, as the exact setting or text to write where there is one.
    pub remedy: String,
    /// What it rests on; never empty for a warning or error.
    pub evidence: Vec<Exhibit>,
    /// The edit of a file that mends it, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
}

/// An edit of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "fix")]
pub struct Fix {
    /// Path as given by the user.
    pub file: String,
    /// First byte that goes, from 0.
    pub start: usize,
    /// Byte behind the last one that goes.
    pub end: usize,
    /// What comes in their place.
    pub text: String,
    /// Nothing but what was plainly meant changes.
    pub safe: bool,
}

impl Finding {
    /// The same finding at another severity.
    #[must_use]
    pub fn at(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }
}

impl Exhibit {
    /// A device of a host.
    pub fn nic(nic: impl Into<String>, host: impl Into<String>, seen: impl Into<String>) -> Self {
        Self::Nic { nic: nic.into(), host: host.into(), seen: seen.into() }
    }

    /// A rank.
    pub fn rank(rank: usize, seen: impl Into<String>) -> Self {
        Self::Rank { rank, seen: seen.into() }
    }

    /// A measured figure.
    pub fn measured(what: impl Into<String>, value: impl Into<String>) -> Self {
        Self::Measured { measured: what.into(), value: value.into() }
    }

    /// A fact by path.
    pub fn fact(path: impl Into<String>, value: impl Into<String>) -> Self {
        Self::Fact { fact: path.into(), value: value.into() }
    }
}
