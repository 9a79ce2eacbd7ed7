//! The answer of `explain`: first the cause, then the lines that show it, then what to do, then what
//! ran and what was found in order.

pub mod difference;
pub mod markdown;
pub mod model;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ncclctl_findings::diagnosis::Kind;
use ncclctl_findings::{Diagnosis, Finding, Incident, Severity};
use ncclctl_nccl::log::Model;
use schemars::JsonSchema;
use serde::Serialize;

use crate::envelope::Tool;
use crate::text::wrap;
use crate::verdict::{Style, finding};

/// Schema of [`ExplainResult`].
pub const EXPLAIN_SCHEMA: &str = "ncclctl/explain/v1";

/// Result of `ncclctl explain`, as `-o json` prints it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExplainResult<'a> {
    /// `ncclctl/explain/v1`. A field may be added within a version; none changes its meaning.
    pub schema: &'static str,
    /// What made it.
    pub tool: Tool,
    /// What kind of trouble it is.
    pub verdict: Kind,
    /// The answer in at most two sentences.
    pub summary: String,
    /// What was found, worst root first, each root followed by its consequences.
    pub findings: &'a [Finding],
    /// For each finding the index of the finding that it follows from.
    pub follows_from: &'a [Option<usize>],
    /// What ran, one line each.
    pub ran: Vec<String>,
    /// What was looked at and is in order.
    pub fine: &'a [String],
    /// What the logs tell: processes, communicators, connections, settings, warnings.
    #[schemars(with = "serde_json::Value")]
    pub model: &'a Model,
}

impl<'a> ExplainResult<'a> {
    /// The envelope of an answer.
    pub fn new(incident: &'a Incident, diagnosis: &'a Diagnosis) -> Self {
        Self {
            schema: EXPLAIN_SCHEMA,
            tool: Tool::this(),
            verdict: diagnosis.kind,
            summary: diagnosis.headline(),
            findings: &diagnosis.findings,
            follows_from: &diagnosis.follows_from,
            ran: ran(incident),
            fine: &diagnosis.fine,
            model: &incident.log,
        }
    }
}

/// The word of a kind of trouble.
pub fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Healthy => "HEALTHY",
        Kind::Slow => "IMPAIRED",
        Kind::Hung => "HUNG",
        Kind::Failed => "FAILED",
        Kind::Unknown => "UNKNOWN",
    }
}

/// The answer for a terminal.
pub fn render(incident: &Incident, diagnosis: &Diagnosis, style: Style) -> String {
    let mut out = String::new();
    let word = word(diagnosis.kind);
    let mut head = String::new();
    wrap(&mut head, style.width, &format!("{word}  "), "  ", &diagnosis.headline());
    let (on, off) = match (style.colour, diagnosis.kind) {
        (false, _) => ("", ""),
        (true, Kind::Healthy) => ("\x1b[1;32m", "\x1b[0m"),
        (true, Kind::Slow | Kind::Unknown) => ("\x1b[1;33m", "\x1b[0m"),
        (true, Kind::Hung | Kind::Failed) => ("\x1b[1;31m", "\x1b[0m"),
    };
    out.push_str(&head.replacen(word, &format!("{on}{word}{off}"), 1));
    let mut notes = Vec::new();
    for (index, root) in diagnosis.roots() {
        if root.severity == Severity::Info {
            notes.push(root);
            continue;
        }
        out.push('\n');
        finding(&mut out, root, style);
        for more in diagnosis.consequences(index) {
            let text = format!("{}: {}", more.rule, more.message);
            wrap(&mut out, style.width, "  so      ", "          ", &text);
        }
    }
    let section = |out: &mut String, label: &str, lines: &[String]| {
        for (at, line) in lines.iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            wrap(out, style.width, &format!("{label:<7} "), "        ", line);
        }
    };
    let noted: Vec<String> = notes.iter().map(|f| format!("{}: {}", f.rule, f.message)).collect();
    if !noted.is_empty() {
        out.push('\n');
        section(&mut out, "noted", &noted);
    }
    let ran = ran(incident);
    if !ran.is_empty() || !diagnosis.fine.is_empty() {
        out.push('\n');
        section(&mut out, "ran", &ran);
        section(&mut out, "fine", &diagnosis.fine);
    }
    for (name, why) in &incident.unreadable {
        section(&mut out, "unread", &[format!("{name}: {why}")]);
    }
    let unknown: u64 = incident.log.unknown.values().map(|u| u.count).sum();
    if unknown > 0 {
        let text = format!(
            "{unknown} lines of NCCL in {} shapes are not known to this version (--unknown lists them)",
            incident.log.unknown.len()
        );
        section(&mut out, "unknown", &[text]);
    }
    out
}

/// What ran, over what.
pub fn ran(incident: &Incident) -> Vec<String> {
    let log = &incident.log;
    let mut out = Vec::new();
    if !log.processes.is_empty() {
        let hosts = log.hosts();
        let versions: BTreeSet<String> =
            log.processes.iter().filter_map(|p| p.version).map(|v| v.to_string()).collect();
        let version = if versions.is_empty() {
            "NCCL of unknown version".to_owned()
        } else {
            format!("NCCL {}", versions.into_iter().collect::<Vec<_>>().join(" and "))
        };
        let names = if hosts.len() <= 6 {
            hosts.join(", ")
        } else {
            format!("{}, … {}", hosts[..3].join(", "), hosts[hosts.len() - 1])
        };
        out.push(format!(
            "{version}; {} on {} ({names})",
            plural_of(log.processes.len(), "process", "processes"),
            plural(hosts.len(), "host")
        ));
    }
    for comm in log.communicators.iter().filter(|c| !c.child).take(4) {
        let done = comm.members.values().filter(|m| m.complete).count();
        let nodes = comm.nodes.map_or(String::new(), |n| format!(" on {n} nodes"));
        out.push(format!(
            "communicator {} of {} ranks{nodes}: {} seen, {done} set up",
            comm.id,
            comm.nranks,
            comm.members.len()
        ));
    }
    let mut ways: BTreeSet<String> = BTreeSet::new();
    for p in &log.processes {
        if p.network.value.is_empty() {
            continue;
        }
        let over: Vec<&str> = if p.network.value == "Socket" {
            p.sockets.value.iter().map(|s| s.interface.as_str()).collect()
        } else {
            p.ports.value.iter().map(|d| d.device.as_str()).collect()
        };
        let meet = p
            .bootstrap
            .value
            .first()
            .map_or(String::new(), |b| format!(", meets on {}", b.interface));
        ways.insert(format!("network {} over {}{meet}", p.network.value, list(&over)));
    }
    out.extend(ways.into_iter().take(4));
    out
}

fn list(names: &[&str]) -> String {
    match names {
        [] => "unknown devices".to_owned(),
        [one] => (*one).to_owned(),
        _ if names.len() <= 8 => names.join(", "),
        _ => format!("{} devices ({} … {})", names.len(), names[0], names[names.len() - 1]),
    }
}

fn plural_of(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

pub(crate) fn plural(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// Lines of NCCL that no table has, the most frequent first.
pub fn unknown(incident: &Incident) -> String {
    let mut shapes: Vec<_> = incident.log.unknown.iter().collect();
    shapes.sort_by_key(|(_, u)| std::cmp::Reverse(u.count));
    let mut out = String::new();
    for (shape, seen) in shapes {
        let shape = if shape.is_empty() { "(more shapes than are told apart)" } else { shape };
        let _ = writeln!(out, "{:>8}  {shape}", seen.count);
        let source =
            incident.log.sources.get(seen.first.source as usize).map_or("", String::as_str);
        let _ = writeln!(out, "          {source}:{}: {}", seen.first.line, seen.first.text);
    }
    if out.is_empty() {
        out.push_str("every line of NCCL is known\n");
    }
    out
}
