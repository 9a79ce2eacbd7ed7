//! `ncclctl lint`: mistakes in the files that a job is made of, before anything runs.

use std::path::{Path, PathBuf};

use clap::Args;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ncclctl_findings::baseline::Baseline;
use ncclctl_findings::documents::gather::{Gather, Unread};
use ncclctl_findings::documents::{Documents, Spot};
use ncclctl_findings::rules::RULES;
use ncclctl_findings::silence::judge;
use ncclctl_findings::{Finding, Policy, Severity};
use ncclctl_nccl::Version;
use ncclctl_report::lint::{self, LintResult, github, junit, sarif, text};

use crate::exit::{Exit, environment, usage};
use crate::{input, output};

const EXAMPLES: &str = "\
Examples:
  ncclctl lint                                  # everything below this folder, .gitignore respected
  ncclctl lint k8s/ Dockerfile nccl.env
  helm template chart | ncclctl lint -          # rendered output
  ncclctl lint --nccl 2.21 --fix nccl.env
  ncclctl lint -o sarif > lint.sarif            # for a code scanning service
  ncclctl lint --write-baseline known.json      # from now on only what is new:
  ncclctl lint --baseline known.json
  ncclctl lint --explain env-value-misread";

/// Find NCCL's mistakes in Dockerfiles, Compose files, manifests, env files, nccl.conf, scripts.
///
/// Each file is recognised by its content; what is none of these is passed over. Everything is read as
/// one set, so that an env file or a ConfigMap counts where it is used. A comment
/// `# ncclctl: ignore[RULE] why` silences a rule for its line; `ncclctl.toml` beside the files or above
/// them says what a project wants.
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
    /// Lowest severity that makes the exit code 1
    #[arg(long, value_name = "SEVERITY", default_value = "warning")]
    fail_on: Level,
    /// Configuration, instead of the ncclctl.toml beside the files or above them
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Findings that are known: silent, and told when they are gone
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write what is found now as the baseline, and end
    #[arg(long, value_name = "FILE", conflicts_with_all = ["baseline", "fix", "diff"])]
    write_baseline: Option<PathBuf>,
    /// Write the safe edits into the files
    #[arg(long)]
    fix: bool,
    /// With --fix or --diff: also edits that may change more than what was meant
    #[arg(long = "unsafe")]
    unsafe_too: bool,
    /// Show the edits and write nothing
    #[arg(long, conflicts_with = "fix")]
    diff: bool,
    /// Print the page of a rule, and end
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
    /// SARIF 2.1.0, for code scanning services and editors
    Sarif,
    /// Annotations of GitHub Actions
    Github,
    /// JUnit XML
    Junit,
}

/// Severities by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Level {
    /// Anything at all
    Info,
    /// What costs speed or safety
    Warning,
    /// What breaks the run
    Error,
}

pub(crate) fn run(arguments: &Lint) -> anyhow::Result<Exit> {
    if let Some(id) = &arguments.explain {
        return explain(id);
    }
    let here = [PathBuf::from(".")];
    let paths = if arguments.paths.is_empty() { &here[..] } else { &arguments.paths };
    let (policy, leave_out) = policy(arguments.config.as_deref(), paths)?;
    let mut gather = Gather::new(
        arguments.nccl.or(policy.nccl),
        arguments.driver.or(policy.driver),
        arguments.pedantic || policy.pedantic,
    );
    gather.platform(policy.platform);
    let mut files = 0;
    let mut broken = Vec::new();
    for path in paths {
        input::documents(path, &leave_out, &mut |name, text| match text {
            Ok(text) => files += usize::from(gather.add(name, text).is_some()),
            Err(input::Broken { line, column, why }) => {
                broken.push(lint::Unread { file: name.to_owned(), line, column, why });
            }
        })?;
    }
    let (documents, unread) = gather.finish();
    broken.extend(unread.iter().map(|u| place(&documents, u)));
    let (findings, silenced) = judge(&documents);
    let findings = policy.apply(findings);
    if arguments.fix || arguments.diff {
        return mend(arguments, &documents, &findings);
    }
    if let Some(path) = &arguments.write_baseline {
        return write_baseline(path, &findings);
    }
    let mut result = LintResult::new(files, findings, broken);
    result.silenced = silenced;
    if let Some(path) = &arguments.baseline {
        let baseline = Baseline::read(&input::text(path)?)
            .map_err(|why| usage(format!("{}:{why}", path.display())))?;
        let found = std::mem::take(&mut result.findings);
        let (new, known, gone) = baseline.apply(found, |name| from_folder_of(path, name));
        result.findings = new;
        result.silenced.extend(known);
        result.gone = gone;
    }
    let least = match arguments.fail_on {
        Level::Info => Severity::Info,
        Level::Warning => Severity::Warning,
        Level::Error => Severity::Error,
    };
    let loud = result.findings.iter().any(|f| f.severity >= least);
    let style = output::style("");
    output::text(&match arguments.output {
        Format::Text => text::render(&result, &documents, style.colour, style.width),
        Format::Json => serde_json::to_string_pretty(&result)? + "\n",
        Format::Sarif => sarif::render(&result, &documents)?,
        Format::Github => github::render(&result),
        Format::Junit => junit::render(&result, &documents),
    })?;
    Ok(if !result.unread.is_empty() {
        Exit::Usage
    } else if loud {
        Exit::Fail
    } else {
        Exit::Pass
    })
}

/// What the project wants, and the paths that it leaves out.
fn policy(given: Option<&Path>, paths: &[PathBuf]) -> anyhow::Result<(Policy, Gitignore)> {
    let mut found: Option<(&Path, PathBuf)> = None;
    if given.is_none() {
        for path in paths {
            let Some(file) = input::configuration(path) else { continue };
            match &found {
                Some((other, known)) if *known != file => {
                    return Err(usage(format!(
                        "{} goes by {}, {} by {}: name one with --config",
                        other.display(),
                        known.display(),
                        path.display(),
                        file.display()
                    )));
                }
                _ => found = Some((path, file)),
            }
        }
    }
    let file = given.map(Path::to_owned).or(found.map(|(_, file)| file));
    let Some(file) = file else { return Ok((Policy::default(), Gitignore::empty())) };
    let policy = Policy::read(&input::text(&file)?).map_err(|error| {
        usage(format!("{}:{}:{}: {}", file.display(), error.line, error.column, error.why))
    })?;
    let whole = std::path::absolute(&file)?;
    let mut builder = GitignoreBuilder::new(whole.parent().unwrap_or(&whole));
    for line in &policy.ignore {
        builder
            .add_line(None, line)
            .map_err(|error| usage(format!("{}: ignore = {line:?}: {error}", file.display())))?;
    }
    let leave_out =
        builder.build().map_err(|error| usage(format!("{}: {error}", file.display())))?;
    Ok((policy, leave_out))
}

fn write_baseline(path: &Path, findings: &[Finding]) -> anyhow::Result<Exit> {
    let baseline = Baseline::of(findings, |name| from_folder_of(path, name));
    output::write_file(path, &(serde_json::to_string_pretty(&baseline)? + "\n"))?;
    output::text(&format!(
        "{}: {} findings are known from now on\n",
        path.display(),
        findings.len()
    ))?;
    Ok(Exit::Pass)
}

/// A path as one from the folder of the baseline, so that it is the same wherever lint is started.
fn from_folder_of(baseline: &Path, name: &str) -> String {
    let folder = match baseline.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let below = folder.canonicalize().ok().and_then(|folder| {
        let file = Path::new(name).canonicalize().ok()?;
        Some(file.strip_prefix(folder).ok()?.display().to_string())
    });
    below.filter(|_| name != "-").unwrap_or_else(|| name.to_owned())
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
        let (new, applied) =
            lint::mend::mend(&file.name, &file.text, findings, arguments.unsafe_too);
        if applied == 0 || new == file.text {
            continue;
        }
        if arguments.diff || file.name == "-" {
            text.push_str(&lint::mend::difference(&file.name, &file.text, &new));
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
    output::text(&format!("{} ({severity}): {}\n\n{}\n", rule.id, rule.summary, rule.page()))?;
    Ok(Exit::Pass)
}
