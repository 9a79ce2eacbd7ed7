//! `ncclctl facts`: what this node or container really has.

use std::path::PathBuf;

use clap::Args;
use ncclctl_facts::{Facts, Root, capture, difference};
use ncclctl_report::facts::{FactsResult, render, render_difference};
use ncclctl_report::topology_xml::topology_xml;

use crate::exit::{Exit, usage};
use crate::{input, output};

const EXAMPLES: &str = "\
Examples:
  ncclctl facts
  ncclctl facts -o json > host.json            # on the host
  ncclctl facts --diff host.json               # in the container: what it can not see
  ncclctl facts --save capture/                # everything it was read from, to send or replay
  ncclctl facts --from capture/
  ncclctl facts -o topo-xml > topo.xml         # for NCCL_TOPO_FILE";

/// What this node or container really has: GPUs, NICs, RDMA, PCI tree, limits, libraries, each with
/// where it was read.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FactsArguments {
    /// Read a capture, a file of facts, or pasted output of `ip addr`, `ibstat`, `nvidia-smi topo -m`
    /// and the like, instead of this machine
    #[arg(long, value_name = "PATH")]
    from: Vec<PathBuf>,
    /// Also write everything that was read, as a tree, to this new folder
    #[arg(long, value_name = "DIR", conflicts_with = "from")]
    save: Option<PathBuf>,
    /// Say what this container can not see of its host, and what that costs
    #[arg(long, value_name = "HOST.json")]
    diff: Option<PathBuf>,
    /// Output format
    #[arg(short = 'o', long = "output", value_name = "FORMAT", default_value = "table")]
    output: Format,
}

/// Output formats of facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    Table,
    /// One JSON document
    Json,
    /// The same as YAML
    Yaml,
    /// NCCL's topology file
    TopoXml,
}

pub(crate) fn run(arguments: &FactsArguments) -> anyhow::Result<Exit> {
    let nodes =
        match &arguments.save {
            Some(folder) => vec![capture::save(folder).map_err(|error| {
                usage(format!("{} can not be written: {error}", folder.display()))
            })?],
            None if arguments.from.is_empty() => vec![Facts::collect(&Root::live())],
            None => input::facts(&arguments.from)?,
        };
    let findings = ncclctl_findings::nodes::judge(&nodes);
    let mut result = FactsResult::new(nodes, findings);
    if let Some(path) = &arguments.diff {
        let host = FactsResult::read(&input::text(path)?)
            .map_err(|error| usage(format!("{}: {error}", path.display())))?;
        let (Some(host), Some(here)) = (host.facts.first(), result.facts.first()) else {
            return Err(usage(format!("{} holds no node", path.display())));
        };
        result.difference = Some(difference::difference(here, host));
    }
    print(arguments, &result)?;
    Ok(Exit::Pass)
}

fn print(arguments: &FactsArguments, result: &FactsResult) -> anyhow::Result<()> {
    let style = output::style("");
    output::text(&match arguments.output {
        Format::Json => serde_json::to_string_pretty(result)? + "\n",
        Format::Yaml => serde_saphyr::to_string(result)?,
        Format::TopoXml => result.facts.iter().map(topology_xml).collect(),
        Format::Table => {
            let mut text = match &result.difference {
                Some(differences) => render_difference(differences, style.width),
                None => result
                    .facts
                    .iter()
                    .map(|n| render(n, style.width))
                    .collect::<Vec<_>>()
                    .join("\n"),
            };
            if !result.findings.is_empty() {
                text.push('\n');
                for finding in &result.findings {
                    ncclctl_report::verdict::finding(&mut text, finding, style);
                }
            }
            text
        }
    })
}
