//! A rule: the catalogue entry, its documentation, and how it looks at each kind of input.

use ncclctl_facts::Facts;

use crate::documents::Documents;
use crate::evidence::Evidence;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;

/// Looks at the facts of nodes or containers together.
pub type LookAtNodes = fn(&[Facts], &mut Vec<Finding>);

/// One entry of the catalogue. One rule is one file under `rules/`, named like its id.
///
/// A rule may look at several kinds of input; a hook that is `None` has nothing to say there.
pub struct Rule {
    /// Slug, kebab-case, equal to the file name with `-` for `_`.
    pub id: &'static str,
    /// The severity it usually reports at.
    pub severity: Severity,
    /// One line for lists, lower case, no full stop.
    pub summary: &'static str,
    /// Looks at a finished trial.
    pub trial: Option<fn(&Evidence, &mut Vec<Finding>)>,
    /// Looks at what a user handed in about a run: logs, with the facts and files beside them.
    pub incident: Option<fn(&Incident, &mut Vec<Finding>)>,
    /// Looks at the facts of nodes or containers.
    pub nodes: Option<LookAtNodes>,
    /// Looks at the files that a job is made of: Dockerfiles, Compose files, manifests, env files.
    pub documents: Option<fn(&Documents, &mut Vec<Finding>)>,
}

impl Rule {
    /// An entry without any hook; rules fill in what they have with `..Rule::new(…)`.
    pub const fn new(id: &'static str, severity: Severity, summary: &'static str) -> Self {
        Self { id, severity, summary, trial: None, incident: None, nodes: None, documents: None }
    }

    /// A finding of this rule at its usual severity. What it rests on and how sure it is come with
    /// it; [`Finding::at`] changes the severity.
    pub fn found(
        &self,
        confidence: Confidence,
        message: impl Into<String>,
        cause: impl Into<String>,
        remedy: impl Into<String>,
        evidence: Vec<Exhibit>,
    ) -> Finding {
        Finding {
            rule: self.id.to_owned(),
            severity: self.severity,
            confidence,
            message: message.into(),
            cause: cause.into(),
            remedy: remedy.into(),
            evidence,
            fix: None,
        }
    }

    /// Its page: What, Why, Example, Remedy and Source as Markdown, from the head of its file.
    pub fn page(&self) -> &'static str {
        PAGES.iter().find(|(id, _)| *id == self.id).map_or("", |(_, page)| page)
    }
}

/// Pages by rule id.
static PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));
