//! Where results go: formats, the terminal's width, files.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use ncclctl_findings::verdict::{Outcome, Terms};
use ncclctl_report::verdict::Style;
use ncclctl_report::{BenchResult, csv, junit, network, scaling, table, verdict};
use serde::Serialize;

use crate::exit::{Exit, usage};

/// Output formats of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// nccl-tests' table, then the verdict as comment lines
    Table,
    /// One JSON document with everything
    Json,
    /// Events as JSON, one a line, while they happen; the result last
    Jsonl,
    /// One line a size
    Csv,
    /// JUnit XML
    Junit,
}

/// Prints a result to standard output.
pub(crate) fn print(result: &BenchResult, format: Format) -> anyhow::Result<()> {
    let text = match format {
        Format::Table => table_and_verdict(result),
        Format::Json => serde_json::to_string_pretty(result)? + "\n",
        Format::Jsonl => serde_json::to_string(result)? + "\n",
        Format::Csv => csv::render(&result.evidence),
        Format::Junit => junit::render(&result.evidence, result.judgement().as_ref()),
    };
    self::text(&text)
}

/// Prints text to standard output, without colour where none is wanted.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::AutoStream::auto(std::io::stdout().lock());
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

fn table_and_verdict(result: &BenchResult) -> String {
    let style = style("# ");
    let mut text = table::render(&result.evidence);
    let scaling = scaling::render(&result.evidence, style.prefix);
    if !scaling.is_empty() {
        text.push_str("#\n");
        text.push_str(&scaling);
    }
    text.push_str("#\n");
    text.push_str(&network::render(&result.evidence, style.width, style.prefix));
    if let Some(judgement) = result.judgement() {
        text.push_str("#\n");
        text.push_str(&verdict::render(&judgement, style));
    }
    text
}

/// How to write text to standard output.
pub(crate) fn style(prefix: &'static str) -> Style {
    Style { width: width(), prefix, colour: std::io::stdout().is_terminal() }
}

/// Exit code of a result.
pub(crate) fn exit(result: &BenchResult, terms: Terms) -> Exit {
    let wrong = result.evidence.series.iter().any(|p| p.wrong.is_some_and(|wrong| wrong > 0));
    match result.verdict.as_ref().map(|verdict| verdict.outcome) {
        Some(Outcome::Pass) => Exit::Pass,
        Some(Outcome::Fail) => Exit::Fail,
        Some(Outcome::Inconclusive) if terms.strict => Exit::Fail,
        Some(Outcome::Inconclusive) => Exit::Inconclusive,
        // without a verdict, wrong data is still wrong, as in nccl-tests
        None if wrong => Exit::Fail,
        None => Exit::Pass,
    }
}

/// Prints one event as a line of JSON; a reader that went away is noticed when the result is printed.
pub(crate) fn json_line(event: &impl Serialize) {
    if let Ok(line) = serde_json::to_string(event) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// Writes a result whole or not at all.
pub(crate) fn save(path: &Path, result: &BenchResult) -> anyhow::Result<()> {
    let bytes = serde_json::to_vec_pretty(result)?;
    whole(path, &bytes).map_err(|error| usage(format!("--save {}: {error}", path.display())))
}

/// Writes a text file whole or not at all, and the folders above it; a script may be run.
pub(crate) fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    let fail = |error: std::io::Error| usage(format!("{}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(fail)?;
    }
    whole(path, text.as_bytes()).map_err(fail)?;
    if text.starts_with("#!") {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).map_err(fail)?;
    }
    Ok(())
}

fn whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // a device or pipe can not be replaced by a rename
    if path.metadata().is_ok_and(|meta| !meta.is_file()) {
        return std::fs::write(path, bytes);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let temporary = path.with_file_name(name);
    let written =
        std::fs::write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Columns of the terminal; 100 where there is none, or one that does not say.
fn width() -> usize {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col).clamp(60, 160),
        _ => 100,
    }
}

/// Whether progress may move about on standard error.
pub(crate) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// The command line as it was given.
pub(crate) fn arguments() -> Vec<String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}
