//! `nccl-warning`: a warning of NCCL that no other rule explains.
//!
//! ## What
//!
//! NCCL printed a warning; the catalogue says what it means and what to look at.
//!
//! ## Why
//!
//! Every WARN call of NCCL 2.3.5 to 2.30.7 is in the catalogue. Where no rule joins it with other
//! evidence it is explained by itself.
//!
//! ## Example
//!
//! `h1: `NET/IB : unable to allocate requests` (too many outstanding requests)`
//!
//! ## Remedy
//!
//! As the finding says.
//!
//! ## Source
//!
//! crates/nccl/data/warnings.tsv, read out of the WARN calls of all tags.

use ncclctl_nccl::log::{Notice, warning};

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(crate) const RULE: Rule =
    Rule::new("nccl-warning", Severity::Warning, "a warning of NCCL that no other rule explains");

/// Warnings that print in runs that work: they are told, never counted against a run.
const BENIGN: &[&str] = &[
    "Failed to open libibverbs",
    "dlvsym failed",
    "wrong magic",
    "discarding peer connection",
    "Could not find real path of",
    "not dumping topology",
    "Could not open XML topology file",
    "Set CPU affinity : unable",
    "sched_setaffinity failed",
    "shm unlink failed",
    "shm close failed",
    "munmap of shared memory",
    "unlink shared memory",
    "Legacy IPC cleanup callback failed",
    "Disabling shared memory failed",
];

/// The finding for one kind of warning.
pub(crate) fn explain(
    incident: &Incident,
    notice: &Notice,
    count: usize,
    severity: Severity,
) -> Finding {
    let version = incident.log.version_of(notice.process);
    let known = warning::find(&notice.text, version);
    let host = incident.process(notice).map_or("a host", |p| p.host.as_str());
    let times = if count > 1 { format!(" ({count} processes)") } else { String::new() };
    let text = notice.text.split('\n').next().unwrap_or(&notice.text);
    let (confidence, cause, check) = match known {
        Some(w) if w.curated => (Confidence::Likely, w.cause.to_owned(), w.check.to_owned()),
        Some(w) => (Confidence::Possible, w.cause.to_owned(), w.check.to_owned()),
        None => (
            Confidence::Possible,
            "not a message of NCCL itself up to 2.32: a plugin's, or a newer version's".to_owned(),
            "read the lines around it; look the text up in the plugin's source".to_owned(),
        ),
    };
    RULE.found(
        confidence,
        format!("{host}{times}: {text}"),
        cause,
        format!("look at: {check}"),
        incident.exhibits([&notice.at], 1),
    )
    .at(severity)
}

/// Whether a warning says nothing about the run.
pub(crate) fn is_benign(notice: &Notice) -> bool {
    BENIGN.iter().any(|b| notice.text.contains(b))
        || warning::find(&notice.text, None).is_some_and(|w| w.category == "ras")
}
