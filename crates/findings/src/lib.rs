//! Findings and what they are drawn from.
//!
//! A [`Finding`] is a diagnosed statement with cause and remedy. Every command that diagnoses
//! (bench, lint, explain, preflight) produces the same type from the one catalogue in [`rules`].
//! Nothing in this crate does I/O: rules are functions from data to findings, text is rendered late.

pub mod baseline;
pub mod check;
pub mod diagnosis;
pub mod documents;
pub mod evidence;
mod figures;
pub mod finding;
mod fine;
pub mod incident;
pub mod intake;
pub mod nodes;
mod paths;
pub mod policy;
pub mod rule;
pub mod rules;
pub mod silence;
#[cfg(test)]
mod synthetic;
pub mod verdict;

pub use diagnosis::{Diagnosis, diagnose};
pub use documents::Documents;
pub use evidence::Evidence;
pub use finding::{Confidence, Exhibit, Finding, Fix, Severity};
pub use incident::Incident;
pub use policy::Policy;
pub use rule::Rule;
pub use silence::{By, Silenced};
pub use verdict::{Judgement, Outcome, Terms, Verdict, judge, wants_pairs};
