//! `ncclctl show FILE`: a saved result again, in any format.

use std::path::PathBuf;

use clap::Args;
use ncclctl_report::BenchResult;

use crate::exit::{Exit, usage};
use crate::input;
use crate::output::{self, Format};

const EXAMPLES: &str = "\
Examples:
  ncclctl bench --save run.json
  ncclctl show run.json
  ncclctl show run.json -o csv > run.csv";

/// Show a result that `bench --save` wrote. The exit code is the verdict's, as it was then.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Show {
    /// File that `--save` wrote, or `-`
    file: PathBuf,
    /// Output format
    #[arg(short = 'o', long = "output", value_name = "FORMAT", default_value = "table")]
    output: Format,
}

pub(crate) fn run(show: &Show) -> anyhow::Result<Exit> {
    let text = input::text(&show.file)?;
    let result = BenchResult::read(&text).map_err(|error| {
        let why = std::error::Error::source(&error).map_or_else(String::new, |s| format!(": {s}"));
        usage(format!("{}: {error}{why}", show.file.display()))
    })?;
    output::print(&result, show.output)?;
    if let Some(error) = &result.error {
        return Err(crate::exit::environment(error.clone()));
    }
    Ok(output::exit(&result, result.terms))
}
