//! The versioned JSON envelope of results.

use ncclctl_findings::verdict::{Judgement, Terms, Verdict};
use ncclctl_findings::{Evidence, Finding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Schema of [`BenchResult`].
pub const BENCH_SCHEMA: &str = "ncclctl/bench/v1";

/// What made a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Always `ncclctl`.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Tool {
    /// This program.
    pub fn this() -> Self {
        Self { name: "ncclctl".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// Result of `ncclctl bench`, as `-o json` prints and `--save` writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchResult {
    /// `ncclctl/bench/v1`. A field may be added within a version; none changes its meaning.
    pub schema: String,
    /// What made it.
    pub tool: Tool,
    /// When the trial ended, RFC 3339 in UTC.
    pub finished: String,
    /// The command line, as given.
    pub arguments: Vec<String>,
    /// The terms that the verdict was held to.
    pub terms: Terms,
    /// Pass, fail or inconclusive, and why; absent with `--no-verdict` and where the trial broke.
    pub verdict: Option<Verdict>,
    /// Why the trial broke, where it did.
    pub error: Option<String>,
    /// What was found.
    pub findings: Vec<Finding>,
    /// Everything that was measured and seen.
    pub evidence: Evidence,
}

/// A saved result that can not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No JSON, or other JSON.
    #[error("no result of ncclctl")]
    Json(#[from] serde_json::Error),
    /// Written by a newer version.
    #[error("its schema is `{0}`, this ncclctl reads `{BENCH_SCHEMA}`; use a newer ncclctl")]
    Schema(String),
}

impl BenchResult {
    /// A result as of now.
    pub fn new(
        evidence: Evidence,
        judgement: Option<Judgement>,
        terms: Terms,
        arguments: Vec<String>,
    ) -> Self {
        let (verdict, findings) = match judgement {
            Some(judgement) => (Some(judgement.verdict), judgement.findings),
            None => (None, Vec::new()),
        };
        Self {
            schema: BENCH_SCHEMA.to_owned(),
            tool: Tool::this(),
            finished: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            arguments,
            terms,
            verdict,
            error: None,
            findings,
            evidence,
        }
    }

    /// Reads a saved result.
    pub fn read(text: &str) -> Result<Self, ReadError> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let head: Head = serde_json::from_str(text)?;
        if head.schema != BENCH_SCHEMA {
            return Err(ReadError::Schema(head.schema));
        }
        Ok(serde_json::from_str(text)?)
    }

    /// Verdict and findings together, where there is a verdict.
    pub fn judgement(&self) -> Option<Judgement> {
        let verdict = self.verdict.clone()?;
        Some(Judgement { verdict, findings: self.findings.clone() })
    }
}
