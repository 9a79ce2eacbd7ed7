//! The answer to an incident: all rules, then root before symptom.
//!
//! One cause with its consequences folded under it is worth more than ten findings: what follows
//! from a cause is tied to it, and what NCCL said beyond that is explained from the catalogue.

use ncclctl_nccl::log::{Notice, warning};
use schemars::JsonSchema;
use serde::Serialize;

use crate::documents;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rules::{self, RULES};

/// What kind of trouble it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Nothing at warning level or above.
    Healthy,
    /// Works, and loses speed or safety.
    Slow,
    /// Waits for somebody.
    Hung,
    /// Ended with an error.
    Failed,
    /// Nothing in it is about NCCL.
    Unknown,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// What kind of trouble it is.
    pub kind: Kind,
    /// The findings, worst root first, each root followed by its consequences.
    pub findings: Vec<Finding>,
    /// For each finding the index of the finding that it follows from.
    pub follows_from: Vec<Option<usize>>,
    /// What was looked at and is fine, one line each.
    pub fine: Vec<String>,
}

/// What follows from what: a finding of the right rule is a consequence where the left one stands.
const CONSEQUENCES: &[(&str, &[&str])] = &[
    ("env-empty-value", &["gid-index-wrong"]),
    ("acs-enabled", &["p2p-broken"]),
    ("ib-device-not-visible", &["silent-tcp-fallback", "transport-mixed"]),
    ("ib-userspace-missing", &["silent-tcp-fallback", "transport-mixed"]),
    ("net-plugin-not-found", &["silent-tcp-fallback", "net-plugin-mismatch", "transport-mixed"]),
    ("net-plugin-init-failed", &["silent-tcp-fallback", "net-plugin-mismatch", "transport-mixed"]),
    ("efa-provider-missing", &["silent-tcp-fallback", "net-plugin-init-failed"]),
    ("gid-index-wrong", &["ib-retry-exceeded"]),
    ("gid-index-differs", &["gid-index-wrong", "ib-retry-exceeded"]),
    ("gid-sparse-table", &["ib-retry-exceeded"]),
    ("gid-table-empty", &["ib-retry-exceeded"]),
    ("mtu-mismatch", &["ib-retry-exceeded"]),
    ("nic-pair-other-subnet", &["ib-retry-exceeded"]),
    ("rail-isolated-cross-nic", &["ib-retry-exceeded"]),
    ("ib-hca-fatal", &["ib-retry-exceeded", "ib-port-flap"]),
    ("ib-port-flap", &["ib-retry-exceeded"]),
    ("ib-timeout-too-low", &["ib-retry-exceeded"]),
    ("fabric-manager-down", &["nvls-multicast-failed", "p2p-broken"]),
    ("fabric-manager-restarted", &["nvls-multicast-failed"]),
    ("rank-behind", &["watchdog-timeout"]),
    ("socket-ifname-mismatch", &["socket-ifname-not-found"]),
    ("socket-ifname-is-address", &["socket-ifname-not-found"]),
    ("socket-ifname-loopback", &["bootstrap-unreachable"]),
    ("wrong-interface-virtual", &["bootstrap-unreachable"]),
    ("wrong-interface-linklocal", &["bootstrap-unreachable"]),
    ("wrong-interface-nonroutable", &["bootstrap-unreachable"]),
    ("service-mesh-sidecar", &["bootstrap-unreachable", "idle-connection-dropped"]),
    ("dns-resolution-failed", &["bootstrap-unreachable"]),
    ("host-network-dns-policy", &["dns-resolution-failed"]),
    ("pod-not-started", &["dns-resolution-failed", "bootstrap-unreachable", "init-stuck"]),
];

/// Findings that follow from any error.
const AFTERMATH: &[&str] =
    &["watchdog-timeout", "peer-died", "init-stuck", "bootstrap-unreachable"];

/// Looks at everything.
pub fn diagnose(incident: &Incident) -> Diagnosis {
    let mut findings = Vec::new();
    for rule in RULES {
        if let Some(look) = rule.incident {
            look(incident, &mut findings);
        }
        if let Some(look) = rule.nodes.filter(|_| !incident.nodes.is_empty()) {
            look(&incident.nodes, &mut findings);
        }
    }
    findings.extend(documents::check(&incident.documents));
    let failed = findings
        .iter()
        .any(|f| f.severity == Severity::Error && !AFTERMATH.contains(&f.rule.as_str()));
    if failed {
        // a run that failed never got to show its speed
        for finding in &mut findings {
            if SPEED.contains(&finding.rule.as_str()) {
                finding.severity = Severity::Info;
            }
        }
        findings.retain(|f| f.rule != "init-stuck");
    }
    catalogue(incident, &mut findings);
    let (findings, follows_from) = fold(findings);
    let kind = match kind(&findings) {
        Kind::Healthy if incident.is_empty() => Kind::Unknown,
        kind => kind,
    };
    Diagnosis { kind, fine: crate::fine::of(incident, &findings), findings, follows_from }
}

/// Rules about speed: they need a run that works.
const SPEED: &[&str] = &["gdr-disabled", "single-nic-used", "cpu-affinity-restricted"];

/// Explains what no rule took up.
fn catalogue(incident: &Incident, findings: &mut Vec<Finding>) {
    let taken: Vec<&Notice> = incident
        .log
        .warnings()
        .filter(|n| findings.iter().any(|f| shows(incident, f, n)))
        .collect();
    let same = |a: &Notice, b: &Notice| {
        let (x, y) = (warning::find(&a.text, None), warning::find(&b.text, None));
        match (x, y) {
            (Some(x), Some(y)) => x.pattern == y.pattern,
            (None, None) => head(&a.text) == head(&b.text),
            _ => false,
        }
    };
    let error = findings.iter().any(|f| f.severity == Severity::Error);
    let finished = incident.finished();
    let mut kinds: Vec<(&Notice, usize)> = Vec::new();
    let mut secondary: Vec<&Notice> = Vec::new();
    for notice in incident.log.warnings() {
        if taken.iter().any(|t| same(t, notice)) {
            continue;
        }
        if warning::find(&notice.text, None).is_some_and(warning::Warning::is_secondary) {
            secondary.push(notice);
        } else if let Some(kind) = kinds.iter_mut().find(|(k, _)| same(k, notice)) {
            kind.1 += 1;
        } else {
            kinds.push((notice, 1));
        }
    }
    let primary = kinds.iter().any(|(n, _)| !rules::nccl_warning::is_benign(n));
    for (notice, count) in kinds.into_iter().take(32) {
        let quiet = error || finished || rules::nccl_warning::is_benign(notice);
        let severity = if quiet { Severity::Info } else { Severity::Warning };
        findings.push(rules::nccl_warning::explain(incident, notice, count, severity));
    }
    if !secondary.is_empty() {
        let severity = if error || primary { Severity::Info } else { Severity::Warning };
        findings.push(rules::peer_died::explain(incident, &secondary, severity));
    }
    if !findings.iter().any(|f| f.severity >= Severity::Warning) {
        findings.extend(rules::nccl_error_unexplained::explain(incident));
    }
}

fn head(text: &str) -> &str {
    text.char_indices().nth(24).map_or(text, |(at, _)| &text[..at])
}

fn shows(incident: &Incident, finding: &Finding, notice: &Notice) -> bool {
    finding.evidence.iter().any(|e| match e {
        Exhibit::Text { file, line, .. } => {
            *line == notice.at.line
                && incident.log.sources.get(notice.at.source as usize).is_some_and(|s| s == file)
        }
        _ => false,
    })
}

/// Orders the findings, worst root first, and ties consequences to their root.
fn fold(mut findings: Vec<Finding>) -> (Vec<Finding>, Vec<Option<usize>>) {
    findings.sort_by_key(|f| {
        let late = AFTERMATH.contains(&f.rule.as_str());
        (std::cmp::Reverse(f.severity), late, std::cmp::Reverse(f.confidence))
    });
    let root_of = |index: usize| -> Option<usize> {
        let rule = findings[index].rule.as_str();
        let root = CONSEQUENCES
            .iter()
            .filter(|(_, follow)| follow.contains(&rule))
            .find_map(|(root, _)| findings.iter().position(|f| f.rule == *root));
        root.or_else(|| {
            AFTERMATH.contains(&rule).then(|| {
                findings.iter().position(|f| {
                    f.severity == Severity::Error && !AFTERMATH.contains(&f.rule.as_str())
                })
            })?
        })
        .filter(|r| *r != index)
    };
    let roots: Vec<Option<usize>> = (0..findings.len()).map(root_of).collect();
    // a chain of consequences hangs on its first root
    let top = |mut index: usize| {
        for _ in 0..4 {
            match roots[index] {
                Some(next) => index = next,
                None => break,
            }
        }
        index
    };
    let mut order: Vec<usize> = Vec::new();
    for index in 0..findings.len() {
        if roots[index].is_none() {
            order.push(index);
            order.extend((0..findings.len()).filter(|i| roots[*i].is_some() && top(*i) == index));
        }
    }
    // whatever a cycle of the table would leave out
    order.extend((0..findings.len()).filter(|i| !order.contains(i)).collect::<Vec<_>>());
    let place = |index: usize| order.iter().position(|o| *o == index);
    let follows = order.iter().map(|i| roots[*i].and_then(|_| place(top(*i)))).collect();
    let ordered = order.iter().map(|i| findings[*i].clone()).collect();
    (ordered, follows)
}

/// Errors about speed alone: the run went through.
fn only_slow(findings: &[Finding]) -> bool {
    findings.iter().filter(|f| f.severity == Severity::Error).all(|f| f.rule == "slow-node")
}

fn kind(findings: &[Finding]) -> Kind {
    let has = |rules: &[&str]| {
        findings.iter().any(|f| f.severity >= Severity::Warning && rules.contains(&f.rule.as_str()))
    };
    let worst = findings.iter().map(|f| f.severity).max();
    if has(&["watchdog-timeout", "rank-behind", "init-stuck"]) {
        return Kind::Hung;
    }
    match worst {
        Some(Severity::Error) if only_slow(findings) => Kind::Slow,
        Some(Severity::Error) => Kind::Failed,
        Some(Severity::Warning) => Kind::Slow,
        _ => Kind::Healthy,
    }
}

impl Diagnosis {
    /// Roots only, with their index.
    pub fn roots(&self) -> impl Iterator<Item = (usize, &Finding)> {
        self.findings.iter().enumerate().filter(|(i, _)| self.follows_from[*i].is_none())
    }

    /// What follows from a finding.
    pub fn consequences(&self, root: usize) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .zip(&self.follows_from)
            .filter(move |(_, f)| **f == Some(root))
            .map(|(finding, _)| finding)
    }

    /// The answer in at most two sentences.
    pub fn headline(&self) -> String {
        let causes: Vec<&Finding> =
            self.roots().map(|(_, f)| f).filter(|f| f.severity >= Severity::Warning).collect();
        let Some(first) = causes.first() else {
            if self.kind == Kind::Unknown {
                return "nothing in these inputs is about NCCL: give it the log of a run with \
                        NCCL_DEBUG=INFO, a table of nccl-tests, or a dump"
                    .to_owned();
            }
            let shows = self.fine.first().map_or(String::new(), |f| format!("; {f}"));
            return format!("nothing at warning level or above{shows}");
        };
        let sure = match first.confidence {
            Confidence::Certain => "",
            Confidence::Likely => "likely: ",
            Confidence::Possible => "possibly: ",
        };
        let more = match causes.len() {
            1 => String::new(),
            2 => "; and 1 more cause".to_owned(),
            n => format!("; and {} more causes", n - 1),
        };
        format!("{sure}{}{more}", first.message)
    }
}
