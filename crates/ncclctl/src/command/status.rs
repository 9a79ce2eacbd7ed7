//! `ncclctl status`: runs on an engine.

use std::fmt::Write as _;

use clap::Args;
use ncclctl_docker::State;

use super::deploy::Host;
use crate::exit::{Exit, environment, usage};

/// Show runs that `deploy` made, and how they stand.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Run; all of them if none
    run: Option<String>,
    #[command(flatten)]
    engine: Host,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(status: &Status) -> anyhow::Result<Exit> {
    let engine = status.engine.open()?;
    let runs = ncclctl_docker::runs(&engine, status.run.as_deref())
        .map_err(|error| environment(error.to_string()))?;
    if let Some(name) = status.run.as_ref().filter(|_| runs.is_empty()) {
        return Err(usage(format!("no run {name} at {}", engine.endpoint())));
    }
    let mut out = String::new();
    if status.json {
        let body = serde_json::json!({"schema": "ncclctl/status/v1", "runs": runs});
        out = serde_json::to_string_pretty(&body)? + "\n";
    } else {
        for run in &runs {
            let state = match (run.state, run.code) {
                (State::Starting, _) => "starting".to_owned(),
                (State::Running, _) => "running".to_owned(),
                (State::Ended, Some(0)) => "pass".to_owned(),
                (State::Ended, Some(1)) => "fail".to_owned(),
                (State::Ended, Some(3)) => "inconclusive".to_owned(),
                (State::Ended, code) => format!("broke (exit code {})", code.unwrap_or(4)),
            };
            let _ = writeln!(out, "{}  {state}", run.name);
            for one in &run.containers {
                let _ = writeln!(out, "  {:<32} {}", one.name, one.status);
            }
        }
        if runs.is_empty() {
            out.push_str("no runs\n");
        }
    }
    std::io::Write::write_all(&mut std::io::stdout().lock(), out.as_bytes())?;
    Ok(Exit::Pass)
}
