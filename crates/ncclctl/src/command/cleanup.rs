//! `ncclctl cleanup`: removes what runs left.

use clap::Args;

use super::deploy::Host;
use crate::exit::{Exit, environment, usage};

/// Remove what a run made, and nothing else: containers, network, volume that carry its label.
#[derive(Debug, Args)]
pub(crate) struct Cleanup {
    /// Run
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    run: Option<String>,
    /// Every run on this engine
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    engine: Host,
}

pub(crate) fn run(cleanup: &Cleanup, quiet: bool) -> anyhow::Result<Exit> {
    let engine = cleanup.engine.open()?;
    let broke = |error: ncclctl_docker::EngineError| environment(error.to_string());
    let names = match &cleanup.run {
        Some(name) if name.is_empty() => return Err(usage("the name of a run is empty")),
        Some(name) => vec![name.clone()],
        None => ncclctl_docker::names(&engine).map_err(broke)?,
    };
    let mut removed = 0;
    for name in &names {
        removed += ncclctl_docker::cleanup(&engine, name).map_err(broke)?;
    }
    if !quiet {
        anstream::eprintln!("{removed} removed");
    }
    Ok(Exit::Pass)
}
