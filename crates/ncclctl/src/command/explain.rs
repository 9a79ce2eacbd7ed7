//! `ncclctl explain FILE…`: what ran, over what, what is wrong, how sure, and what to do.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use ncclctl_findings::intake::Intake;
use ncclctl_findings::{Incident, Severity, diagnose};
use ncclctl_report::explain::{self, ExplainResult};
use ncclctl_report::redact::Redactor;

use crate::exit::{Exit, usage};
use crate::{input, output};

const EXAMPLES: &str = "\
Examples:
  ncclctl explain train.log
  kubectl logs -l job-name=train --all-containers --prefix | ncclctl explain
  ncclctl explain logs/ facts.txt nccl.env
  ncclctl explain good.log --against bad.log";

/// Explain a run: give it any logs, tables, dumps, facts and files of the run, in any mix.
///
/// Each input is recognised by its content. Directories, .gz files and .tar archives are read whole;
/// without a file, or with `-`, standard input is read.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// Files, directories or archives; `-` is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output format
    #[arg(short = 'o', long = "output", value_name = "FORMAT", default_value = "text")]
    output: Format,
    /// Print who talks to whom over what, instead of the answer
    #[arg(long, conflicts_with_all = ["unknown", "against"])]
    model: bool,
    /// Print the lines of NCCL that this version does not know
    #[arg(long, conflicts_with = "against")]
    unknown: bool,
    /// Replace host names, addresses, user names and secrets, each by the same stand-in everywhere
    #[arg(long)]
    redact: bool,
    /// Say what is different in this second run
    #[arg(long, value_name = "FILE")]
    against: Vec<PathBuf>,
}

/// Output formats of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// The answer for a terminal
    Text,
    /// One JSON document with everything
    Json,
    /// Markdown, for an issue tracker
    Md,
}

pub(crate) fn run(explain: &Explain) -> anyhow::Result<Exit> {
    let incident = take_in(&explain.files)?;
    let diagnosis = diagnose(&incident);
    let text = if !explain.against.is_empty() {
        let other = take_in(&explain.against)?;
        let second = diagnose(&other);
        explain::difference::render((&incident, &diagnosis), (&other, &second))
    } else if explain.model {
        explain::model::render(&incident)
    } else if explain.unknown {
        explain::unknown(&incident)
    } else {
        match explain.output {
            Format::Text => explain::render(&incident, &diagnosis, output::style("")),
            Format::Md => explain::markdown::render(&incident, &diagnosis),
            Format::Json => {
                serde_json::to_string_pretty(&ExplainResult::new(&incident, &diagnosis))? + "\n"
            }
        }
    };
    let text = if explain.redact {
        let hosts = incident.hosts();
        Redactor::new(hosts.iter().map(String::as_str)).text(&text)
    } else {
        text
    };
    let mut out = anstream::AutoStream::auto(std::io::stdout().lock());
    out.write_all(text.as_bytes())?;
    out.flush()?;
    let loud = diagnosis.findings.iter().any(|f| f.severity >= Severity::Warning);
    Ok(if loud {
        Exit::Fail
    } else if incident.is_empty() {
        Exit::Inconclusive
    } else {
        Exit::Pass
    })
}

fn take_in(files: &[PathBuf]) -> anyhow::Result<Incident> {
    let mut intake = Intake::default();
    let standard = [PathBuf::from("-")];
    for file in if files.is_empty() { &standard[..] } else { files } {
        input::each(file, &mut intake)?;
    }
    let incident = intake.finish();
    if incident.log.lines == 0 && incident.is_empty() {
        return Err(usage("nothing to explain: every input is empty"));
    }
    Ok(incident)
}
