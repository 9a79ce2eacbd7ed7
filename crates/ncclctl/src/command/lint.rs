//! `ncclctl lint`: mistakes in the files that a job is made of, before anything runs.

use std::path::PathBuf;

use clap::Args;
use ncclctl_findings::documents::gather::{Gather, Unread};
use ncclctl_findings::documents::{Documents, Spot, check};
use ncclctl_findings::rules::RULES;
use ncclctl_findings::{Finding, Severity};
use ncclctl_nccl::Version;
use ncclctl_report::lint::{self, LintResult};

use crate::exit::{Exit, environment, usage};
use crate::{input, output};

const EXAMPLES: &str = "\
Examples:
  ncclctl lint                                  # everything below this folder, .gitignore respected
  ncclctl lint k8s/ Dockerfile nccl.env
  helm template chart | ncclctl lint -          # rendered output
  ncclctl lint --nccl 2.21 --fix nccl.env
  ncclctl lint --explain env-value-misread";

/// Find NCCL's mistakes in Dockerfiles, Compose files, manifests, env files, nccl.conf, scripts.
///
/// Each file is recognised by its content; what is none of these is passed over. Everything is read as
/// one set, so that an env file or a ConfigMap counts where it is used.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Lint {
    /// Files and folders; `-` is standard input [default: this folder]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Output format
    #[arg(short = 'o', long = "output", value_name = "FORMAT", default_value = "text")]
    output: Format,
    /// NCCL release that the job uses, where no file says it
    #[arg(long, value_name = "VERSION")]
    nccl: Option<Version>,
    /// GPU driver of the nodes, like 535
    #[arg(long, value_name = "MAJOR")]
    driver: Option<u32>,
    /// Speak of what is only possible too
    #[arg(long)]
    pedantic: bool,
    /// Write the safe edits into the files
    #[arg(long)]
    fix: bool,
    /// With --fix or --diff: also edits that may change more than what was meant
    #[arg(long = "unsafe")]
    unsafe_too: bool,
    /// Show the edits and write nothing
    #[arg(long, conflicts_with = "fix")]
    diff: bool,
    /// Say what a rule is about, and end
    #[arg(long, value_name = "RULE", conflicts_with_all = ["fix", "diff"])]
    explain: Option<String>,
}

/// Output formats of findings about files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people: the line, the span, why, what to write
    Text,
    /// One JSON document
    Json,
    /// Annotations of GitHub Actions
    Github,
}

pub(crate) fn run(arguments: &Lint) -> anyhow::Result<Exit> {
    if let Some(id) = &arguments.explain {
        return explain(id);
    }
    let mut gather = Gather::new(arguments.nccl, arguments.driver, arguments.pedantic);
    let here = [PathBuf::from(".")];
    let paths = if arguments.paths.is_empty() { &here[..] } else { &arguments.paths };
    let mut files = 0;
    let mut broken = Vec::new();
    for path in paths {
        input::documents(path, &mut |name, text| match text {
            Ok(text) => files += usize::from(gather.add(name, &text).is_some()),
            Err(why) => {
                broken.push(lint::Unread { file: name.to_owned(), line: 1, column: 1, why })
            }
        })?;
    }
    let (documents, unread) = gather.finish();
    broken.extend(unread.iter().map(|u| place(&documents, u)));
    let findings = check(&documents);
    if arguments.fix || arguments.diff {
        return mend(arguments, &documents, &findings);
    }
    let loud = findings.iter().any(|f| f.severity >= Severity::Warning);
    let result = LintResult::new(files, findings, broken);
    let style = output::style("");
    output::text(&match arguments.output {
        Format::Text => lint::render(&result, &documents, style.colour, style.width),
        Format::Json => serde_json::to_string_pretty(&result)? + "\n",
        Format::Github => lint::github(&result),
    })?;
    Ok(if !result.unread.is_empty() {
        Exit::Usage
    } else if loud {
        Exit::Fail
    } else {
        Exit::Pass
    })
}

fn place(documents: &Documents, unread: &Unread) -> lint::Unread {
    let file = documents.files.get(unread.file);
    let text = file.map_or("", |f| f.text.as_str());
    let (line, column, _) = Spot { file: unread.file, span: unread.at..unread.at }.line(text);
    let name = file.map_or_else(String::new, |f| f.name.clone());
    lint::Unread { file: name, line, column, why: unread.why.clone() }
}

fn mend(arguments: &Lint, documents: &Documents, findings: &[Finding]) -> anyhow::Result<Exit> {
    let mut text = String::new();
    for file in &documents.files {
        let (new, applied) = lint::mend(&file.name, &file.text, findings, arguments.unsafe_too);
        if applied == 0 || new == file.text {
            continue;
        }
        if arguments.diff || file.name == "-" {
            text.push_str(&lint::difference(&file.name, &file.text, &new));
            continue;
        }
        std::fs::write(&file.name, &new)
            .map_err(|error| environment(format!("{} can not be written: {error}", file.name)))?;
        text.push_str(&format!("{}: {applied} mended\n", file.name));
    }
    output::text(if text.is_empty() { "nothing to mend\n" } else { &text })?;
    Ok(Exit::Pass)
}

fn explain(id: &str) -> anyhow::Result<Exit> {
    let Some(rule) = RULES.iter().find(|rule| rule.id == id) else {
        let near: Vec<&str> = RULES
            .iter()
            .map(|r| r.id)
            .filter(|r| r.split('-').any(|w| id.contains(w)))
            .take(5)
            .collect();
        return Err(usage(format!("no rule is called {id}; near it: {}", near.join(", "))));
    };
    let severity = format!("{:?}", rule.severity).to_lowercase();
    output::text(&format!(
        "{} ({severity}): {}\n\nits page: docs/rules/{}.md\n",
        rule.id, rule.summary, rule.id
    ))?;
    Ok(Exit::Pass)
}
