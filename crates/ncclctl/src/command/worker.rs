//! `ncclctl worker`: takes part in a trial that is coordinated elsewhere.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ncclctl_trial::Token;
use ncclctl_trial::launch;
use ncclctl_trial::worker::{self, Ended, Options, WorkerError};

use crate::exit::{Exit, environment, usage};
use crate::quantity;

const EXAMPLES: &str = "\
Examples:
  ncclctl worker --join 10.0.0.5:7171 --token-file token
  NCCLCTL_TOKEN=… ncclctl worker --join coordinator:7171 --name rack3-node7";

/// Join a trial, run ranks for it, and end with it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Worker {
    /// Where the coordinator listens
    #[arg(long, value_name = "HOST:PORT", env = "NCCLCTL_COORDINATOR")]
    join: String,
    /// File with the join token; else the variable NCCLCTL_TOKEN is read
    #[arg(long, value_name = "FILE", env = "NCCLCTL_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// Name to show for this worker [default: the host name]
    #[arg(long)]
    name: Option<String>,
    /// Ranks to run here
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1024))]
    ranks: u32,
    /// How long to try to reach the coordinator
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = quantity::duration)]
    join_timeout: Duration,
}

pub(crate) fn run(arguments: &Worker, quiet: bool) -> anyhow::Result<Exit> {
    let token = match &arguments.token_file {
        Some(path) => Token::read(path).map_err(|error| {
            let why =
                std::error::Error::source(&error).map_or_else(String::new, |s| format!(": {s}"));
            usage(format!("{error}{why}"))
        })?,
        None => {
            let root = ncclctl_facts::Root::live();
            let text = root.variable("NCCLCTL_TOKEN").ok_or_else(|| {
                usage("no join token: give --token-file FILE, or set NCCLCTL_TOKEN")
            })?;
            Token::parse(text, "NCCLCTL_TOKEN").map_err(|error| usage(error.to_string()))?
        }
    };
    let seat = launch::seat(ncclctl_facts::Root::live().environment())
        .map_err(|error| usage(error.to_string()))?;
    let options = Options {
        // for the order only: several launches may make up the workers of one trial
        index: seat.map(|seat| seat.index),
        world: None,
        name: arguments.name.clone(),
        ranks: arguments.ranks as usize,
        patience: arguments.join_timeout,
        rank_program: rank_program(),
    };
    ended(worker::join(&arguments.join, &token, options), quiet)
}

/// How a worker's end is told.
pub(super) fn ended(end: Result<Ended, WorkerError>, quiet: bool) -> anyhow::Result<Exit> {
    match end {
        Ok(_) => Ok(Exit::Pass),
        Err(error @ WorkerError::Signalled { .. }) => {
            if !quiet {
                anstream::eprintln!("ncclctl: {error}");
            }
            Ok(Exit::Environment)
        }
        Err(error) => Err(environment(error.to_string())),
    }
}

/// What becomes a rank: this very program.
pub(crate) fn rank_program() -> (PathBuf, Vec<String>) {
    // the link stays right when the file is replaced or deleted in the meantime
    (PathBuf::from("/proc/self/exe"), vec!["rank".to_owned()])
}
