//! `ncclctl logs`: what all containers of a run wrote.

use clap::Args;
use ncclctl_docker::Stream;

use super::deploy::Host;
use crate::exit::{Exit, environment, usage};

/// Print what all containers of a run wrote, each line behind its container's name.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Run
    run: String,
    #[command(flatten)]
    engine: Host,
    /// Go on until the run ends
    #[arg(short, long)]
    follow: bool,
    /// Only the last lines of each container
    #[arg(long, value_name = "N")]
    tail: Option<u32>,
    /// The coordinator's standard output too: the result, as JSON
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(logs: &Logs) -> anyhow::Result<Exit> {
    let engine = logs.engine.open()?;
    let mut gone = None;
    let seen = ncclctl_docker::logs(&engine, &logs.run, logs.follow, logs.tail, |name, line| {
        let result = line.stream == Stream::Out && name.ends_with("-coordinator");
        if gone.is_none() && (logs.all || !result) {
            let short = name.strip_prefix(&format!("{}-", logs.run)).unwrap_or(name);
            let mut out = std::io::stdout().lock();
            gone =
                std::io::Write::write_fmt(&mut out, format_args!("{short}: {}\n", line.text)).err();
        }
    })
    .map_err(|error| environment(error.to_string()))?;
    if seen == 0 {
        return Err(usage(format!("no run {} at {}", logs.run, engine.endpoint())));
    }
    gone.map_or(Ok(Exit::Pass), |error| Err(error.into()))
}
