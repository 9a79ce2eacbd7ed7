//! The verdict: pass, fail or inconclusive, against which ceiling, and why.
//!
//! A verdict joins three proofs and says which of them it had:
//! 1. *transport*: what carried each edge;
//! 2. *wire*: what the NICs' own counters say;
//! 3. *busbw*: what was reached, against what is to be expected here.
//!
//! Pass at or over [`Terms::threshold`] of expected; fail under [`Terms::fail_under`], or under the
//! threshold with a cause proven, or on wrong data; between them inconclusive, with what would
//! settle it. Nothing here does I/O: the whole is a function of the [`Evidence`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(doc)]
use crate::evidence::Evidence;
use crate::finding::Finding;

mod ceiling;
mod gpu;
#[cfg(test)]
mod gpu_tests;
mod judge;
mod others;
#[cfg(test)]
mod tests;
mod wire;

pub use judge::{judge, suspects, too_slow, wants_pairs};
pub use others::other_interfaces;

/// What counts as good enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Terms {
    /// Share of the expected rate from which a run passes.
    pub threshold: f64,
    /// Share of the expected rate under which a run fails without any further proof.
    pub fail_under: f64,
    /// Whether an inconclusive result between the two counts as fail.
    pub strict: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self { threshold: 0.90, fail_under: 0.70, strict: false }
    }
}

/// The three ends of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The run reached what this place allows.
    Pass,
    /// It did not, or its data was wrong, or it did not end.
    Fail,
    /// What was seen is not enough to say.
    Inconclusive,
}

/// A verdict and the findings behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Findings of every rule that looks at trials, the worst first.
    pub findings: Vec<Finding>,
}

/// Pass, fail or inconclusive, and everything that it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The outcome.
    pub outcome: Outcome,
    /// Why, in one short sentence with names and figures.
    pub summary: String,
    /// What was to be expected of the point that decided; `None` where nothing could be derived.
    pub expected: Option<Expected>,
    /// Bus bandwidth of the point that decided, GB/s (10^9 bytes).
    pub achieved: Option<f64>,
    /// Achieved over expected.
    pub ratio: Option<f64>,
    /// Index into [`Evidence::series`] of the point that decided.
    pub decided_by: Option<usize>,
    /// Each line of the table: judged, or why not.
    pub points: Vec<PointVerdict>,
    /// The three proofs.
    pub proofs: Proofs,
    /// How sure the figures are.
    pub noise: Noise,
    /// What the verdict could not know, in short sentences.
    pub unknown: Vec<String>,
    /// What would settle it, or make it stronger: the next command or setting.
    pub settle: Vec<String>,
}

/// Where an expectation comes from, weakest first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The same ranks' raw paths, measured in this trial.
    Measured,
    /// Limits of the hardware in use and NCCL's own model of it.
    Model,
    /// A physical NIC's own line rate.
    Nic,
    /// The line rate that the user stated.
    Stated,
    /// A figure published for the very platform.
    Published,
}

/// What is to be expected of one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expected {
    /// Bus bandwidth, GB/s (10^9 bytes).
    pub busbw: f64,
    /// Under [`Terms::fail_under`] of this it fails; less than `busbw` where something is not known
    /// (the algorithm, how far published figures differ).
    pub floor: f64,
    /// Where it comes from.
    pub basis: Basis,
    /// The limit that is the lowest, in words: `path 0 -> 1 (measured)`, `eth0 of h2 (10 Gbit/s)`.
    pub limited_by: String,
    /// Every limit that was looked at, lowest first.
    pub limits: Vec<Limit>,
}

/// One upper limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// What limits.
    pub what: String,
    /// Bus bandwidth that it allows, GB/s (10^9 bytes).
    pub busbw: f64,
    /// How the figure came about, as a short formula with its figures.
    pub how: String,
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointVerdict {
    /// Index into [`Evidence::series`].
    pub point: usize,
    /// Whether it counts for the verdict.
    pub judged: bool,
    /// Why it is not judged; `None` where it is.
    pub why_not: Option<String>,
    /// Bus bandwidth expected of it, GB/s.
    pub expected: Option<f64>,
    /// Achieved over expected.
    pub ratio: Option<f64>,
}

/// A proof: had or not, and what it says or why it could not be had.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// Whether it could be had.
    pub had: bool,
    /// What it says, or why it is missing.
    pub says: String,
}

/// The three proofs of a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proofs {
    /// Which transport each edge used.
    pub transport: Proof,
    /// What the NICs' counters say of the steady part.
    pub wire: Proof,
    /// The bus bandwidth against the expectation.
    pub busbw: Proof,
}

/// How far the figures can be trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Noise {
    /// Half width of the 95% confidence interval over the mean, of the point that decided.
    pub ci95: f64,
    /// Greatest drift of a judged point: last third over first third, minus 1.
    pub drift: f64,
    /// How far the raw paths differ before and after: greater over lesser, minus 1.
    pub path_change: f64,
    /// Operations that the point which decided rests on.
    pub operations: u64,
    /// One short sentence.
    pub says: String,
}
