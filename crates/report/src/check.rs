//! Whether a container is fit for NCCL, for people and programs.

use std::fmt::Write as _;

use ncclctl_findings::check::{Check, State, Subject};
use schemars::JsonSchema;
use serde::Serialize;

use crate::envelope::Tool;
use crate::text::wrap;
use crate::vars::InForceResult;

/// Schema of [`CheckResult`].
pub const CHECK_SCHEMA: &str = "ncclctl/check/v1";

/// Result of `ncclctl check`, as `-o json` prints it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CheckResult {
    /// `ncclctl/check/v1`.
    pub schema: String,
    /// What made it.
    pub tool: Tool,
    /// What was checked.
    pub subject: Subject,
    /// Its name.
    pub name: String,
    /// The worst state of all checks.
    pub state: State,
    /// The checks, in the order in which NCCL would stumble.
    pub checks: Vec<Check>,
    /// NCCL's settings in force there.
    pub settings: InForceResult,
}

impl CheckResult {
    /// The envelope.
    pub fn new(subject: Subject, name: &str, checks: Vec<Check>, settings: InForceResult) -> Self {
        Self {
            schema: CHECK_SCHEMA.to_owned(),
            tool: Tool::this(),
            subject,
            name: name.to_owned(),
            state: ncclctl_findings::check::worst(&checks),
            checks,
            settings,
        }
    }
}

/// The page.
pub fn render(result: &CheckResult, width: usize) -> String {
    let mut out = String::new();
    let what = match result.subject {
        Subject::Here => "this container",
        Subject::Container => "container",
        Subject::Image => "image",
    };
    let verdict = match result.state {
        State::Fail => "not fit for NCCL",
        State::Warning => "NCCL runs, with what is said below",
        State::Unknown => "nothing wrong is known; see what could not be told",
        State::Ok => "fit for NCCL",
    };
    let _ = writeln!(out, "{what} {}: {verdict}\n", result.name);
    let widest = result.checks.iter().map(|c| c.name.len()).max().unwrap_or(0);
    for check in &result.checks {
        one(&mut out, check, widest, width);
    }
    if !result.settings.in_force.is_empty() {
        out.push_str("\nsettings in force\n");
        for s in &result.settings.in_force {
            let _ = writeln!(out, "  {}={}  from {}", s.name, s.value, s.origin);
        }
    }
    out
}

fn one(out: &mut String, check: &Check, widest: usize, width: usize) {
    let mark = match check.state {
        State::Ok => "ok  ",
        State::Unknown => "?   ",
        State::Warning => "warn",
        State::Fail => "FAIL",
    };
    let indent = " ".repeat(widest + 8);
    let head = format!("{mark}  {:<widest$}  ", check.name);
    wrap(out, width, &head, &indent, &check.seen);
    let mut line = |label: &str, text: &str| {
        if !text.is_empty() {
            let hang = format!("{indent}{:<9}", "");
            wrap(out, width, &format!("{indent}{label:<9}"), &hang, text);
        }
    };
    line("costs", &check.costs);
    line("remedy", &check.remedy);
    for (label, lines) in
        [("docker", &check.docker), ("compose", &check.compose), ("pod", &check.pod)]
    {
        for text in lines {
            line(label, text);
        }
    }
}
