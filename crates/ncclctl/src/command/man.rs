//! `ncclctl man [COMMAND]`.

use clap::{Args, CommandFactory as _};

use crate::arguments::Arguments;
use crate::exit::{Exit, usage};

/// Which page.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Command to describe; the program itself if none
    command: Option<String>,
}

pub(crate) fn run(man: &Man) -> anyhow::Result<Exit> {
    let program = Arguments::command();
    let page = match &man.command {
        None => program,
        Some(name) => {
            let known = program.get_subcommands().find(|c| c.get_name() == name).cloned();
            let known = known.ok_or_else(|| usage(format!("no command `{name}`")))?;
            known.display_name(format!("ncclctl-{name}")).version(env!("CARGO_PKG_VERSION"))
        }
    };
    let mut out = Vec::new();
    clap_mangen::Man::new(page).render(&mut out)?;
    std::io::Write::write_all(&mut std::io::stdout().lock(), &out)?;
    Ok(Exit::Pass)
}
