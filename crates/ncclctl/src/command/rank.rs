//! `ncclctl rank`: the process of one rank. Started by a worker, never by hand.

use clap::Args;

use crate::exit::{Exit, environment};

/// No arguments: everything comes over standard input.
#[derive(Debug, Args)]
pub(crate) struct Rank {}

pub(crate) fn run(_: &Rank) -> anyhow::Result<Exit> {
    match ncclctl_trial::rank::main() {
        Ok(()) => Ok(Exit::Pass),
        Err(error @ ncclctl_trial::rank::RankError::NoWorker(_)) => {
            Err(crate::exit::usage(error.to_string()))
        }
        Err(error) => Err(environment(error.to_string())),
    }
}
