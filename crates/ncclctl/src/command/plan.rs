//! `ncclctl plan`: which settings are needed here, and why each.

use clap::Args;
use ncclctl_artefacts::write::{Choice, Kind, Work, write};
use ncclctl_nccl::doubt::Weight;
use ncclctl_nccl::params;
use ncclctl_report::plan::{PlanResult, explain, render};

use super::look::Look;
use crate::exit::{Exit, usage};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  ncclctl plan
  ncclctl plan --nccl 2.21.5 --goal stability
  ncclctl plan --explain NCCL_SOCKET_IFNAME
  ncclctl plan -o facts > nodes/$(hostname).json    on each node, then
  ncclctl plan --fleet nodes/ -o json > plan.json";

/// Plan: look, and say which settings are needed, only those, and why each; what the container must be
/// given; and what is doubtful about the settings that are there.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Plan {
    #[command(flatten)]
    look: Look,
    /// Say why a variable has its value, or why it is not set
    #[arg(long, value_name = "NAME")]
    explain: Option<String>,
    /// Output format
    #[arg(short = 'o', long = "output", value_name = "FORMAT", default_value = "table")]
    output: Format,
}

/// Output formats of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A page to read
    Table,
    /// One JSON document, which --plan reads
    Json,
    /// An env file
    Env,
    /// What is known of this machine, which --from and --fleet read
    Facts,
}

pub(crate) fn run(arguments: &Plan) -> anyhow::Result<Exit> {
    if arguments.output == Format::Facts {
        let facts = arguments.look.facts()?;
        output::text(&(serde_json::to_string_pretty(&facts)? + "\n"))?;
        return Ok(Exit::Pass);
    }
    let nodes = arguments.look.nodes()?;
    let plan = arguments.look.plan(&nodes)?;
    let width = output::style("").width;
    if let Some(name) = &arguments.explain {
        let mut upper = name.to_ascii_uppercase();
        if params::get(&upper).is_none() && !upper.starts_with("NCCL_") {
            upper.insert_str(0, "NCCL_");
        }
        let text = explain(&plan, &upper, width).ok_or_else(|| {
            let hint = params::nearest(name)
                .map_or_else(String::new, |p| format!("; {} was meant?", p.name));
            usage(format!("no release of NCCL reads {name}{hint}"))
        })?;
        output::text(&text)?;
        return Ok(Exit::Pass);
    }
    let loud = plan.questions.iter().any(|q| q.weight >= Weight::Warning);
    let text = match arguments.output {
        Format::Table => render(&plan, width),
        Format::Json => serde_json::to_string_pretty(&PlanResult::new(plan))? + "\n",
        Format::Facts => String::new(),
        Format::Env => {
            let choice = Choice::default();
            let files = write(Kind::Env, Work { plan: &plan, nodes: &nodes, choice: &choice })
                .map_err(|error| usage(error.to_string()))?;
            files.into_iter().next().map(|file| file.text).unwrap_or_default()
        }
    };
    output::text(&text)?;
    Ok(if loud { Exit::Fail } else { Exit::Pass })
}
