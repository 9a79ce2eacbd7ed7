//! Why a trial ended without a result.

use ncclctl_findings::Evidence;
use ncclctl_findings::evidence::Failure;

/// A trial that could not be carried out. What had been measured until then is kept.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct TrialError {
    /// Who and what, in one line.
    pub message: String,
    /// What kind of failure it was.
    pub kind: Kind,
    /// What had been gathered.
    pub evidence: Box<Evidence>,
}

/// Kinds of failed trials, for exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bad input: a setting that can not be followed.
    Usage,
    /// The cluster, network or a library broke.
    Environment,
    /// The user ended it.
    Interrupted,
}

impl TrialError {
    pub(crate) fn environment(message: impl Into<String>) -> Self {
        Self { message: message.into(), kind: Kind::Environment, evidence: Box::default() }
    }

    pub(crate) fn lost(failures: Vec<Failure>, kind: Kind) -> Self {
        let message = match failures.first() {
            Some(failure) => describe(failure),
            None => "the trial was lost".to_owned(),
        };
        let evidence = Box::new(Evidence { failures, ..Evidence::default() });
        Self { message, kind, evidence }
    }
}

/// One failure in words.
pub fn describe(failure: &Failure) -> String {
    match failure.rank {
        Some(rank) => {
            format!("rank {rank} on {} during {}: {}", failure.host, failure.phase, failure.seen)
        }
        None => format!("worker {} during {}: {}", failure.host, failure.phase, failure.seen),
    }
}
