//! `ncclctl completions SHELL`.

use clap::{Args, CommandFactory as _};

use crate::arguments::Arguments;
use crate::exit::Exit;

/// Which shell.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell to complete in
    shell: clap_complete::Shell,
}

pub(crate) fn run(completions: &Completions) -> anyhow::Result<Exit> {
    let mut out = Vec::new();
    clap_complete::generate(completions.shell, &mut Arguments::command(), "ncclctl", &mut out);
    std::io::Write::write_all(&mut std::io::stdout().lock(), &out)?;
    Ok(Exit::Pass)
}
