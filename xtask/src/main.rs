//! Writes what is committed but derived from the code: JSON schemas, a page for each rule, shell
//! completions and manual pages. `cargo xtask generate` renews them, `--check` fails where they are
//! not what the code says. `cargo xtask dist` makes the files of a release.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

mod dist;
mod machines;
mod packages;
mod pages;
mod sbom;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["generate"] => {
            machines::write(&repository())?;
            write(&generate()?)
        }
        ["generate", "--check"] => {
            machines::check(&repository())?;
            check(&generate()?)
        }
        ["dist"] => dist::run(&repository(), false),
        ["dist", "--twice"] => dist::run(&repository(), true),
        _ => bail!("usage: cargo xtask generate [--check] | dist [--twice]"),
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every generated file by its path in the repository.
fn generate() -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    let schema = schemars::schema_for!(ncclctl_report::BenchResult);
    files.insert("schemas/bench.v1.json".to_owned(), serde_json::to_string_pretty(&schema)? + "\n");
    let schema = schemars::schema_for!(ncclctl_report::explain::ExplainResult<'_>);
    files.insert(
        "schemas/explain.v1.json".to_owned(),
        serde_json::to_string_pretty(&schema)? + "\n",
    );
    let schema = schemars::schema_for!(ncclctl_report::check::CheckResult);
    files.insert("schemas/check.v1.json".to_owned(), serde_json::to_string_pretty(&schema)? + "\n");
    let schema = schemars::schema_for!(ncclctl_report::facts::FactsResult);
    files.insert("schemas/facts.v1.json".to_owned(), serde_json::to_string_pretty(&schema)? + "\n");
    let schema = schemars::schema_for!(ncclctl_report::lint::LintResult);
    files.insert("schemas/lint.v1.json".to_owned(), serde_json::to_string_pretty(&schema)? + "\n");
    let schema = schemars::schema_for!(ncclctl_report::plan::PlanResult);
    files.insert("schemas/plan.v1.json".to_owned(), serde_json::to_string_pretty(&schema)? + "\n");
    let schema = schemars::schema_for!(ncclctl_report::vars::VarsResult);
    files.insert("schemas/vars.v1.json".to_owned(), serde_json::to_string_pretty(&schema)? + "\n");
    let schema = schemars::schema_for!(ncclctl_report::vars::InForceResult);
    files.insert(
        "schemas/vars-in-force.v1.json".to_owned(),
        serde_json::to_string_pretty(&schema)? + "\n",
    );
    pages::rules(&mut files)?;
    for (shell, name) in [("bash", "ncclctl.bash"), ("zsh", "_ncclctl"), ("fish", "ncclctl.fish")] {
        files.insert(
            format!("docs/generated/completions/{name}"),
            ncclctl(&["completions", shell])?,
        );
    }
    files.insert("docs/generated/man/ncclctl.1".to_owned(), ncclctl(&["man"])?);
    for command in commands()? {
        let page = ncclctl(&["man", &command])?;
        files.insert(format!("docs/generated/man/ncclctl-{command}.1"), page);
    }
    Ok(files)
}

/// Visible commands, as the program's own help lists them.
fn commands() -> anyhow::Result<Vec<String>> {
    let help = ncclctl(&["--help"])?;
    let list = help.split("Commands:").nth(1).and_then(|rest| rest.split("Options:").next());
    let list = list.context("the help has no list of commands")?;
    Ok(list
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect())
}

/// Output of the program as the code is now.
fn ncclctl(arguments: &[&str]) -> anyhow::Result<String> {
    let out = Command::new(env!("CARGO"))
        .current_dir(repository())
        .args(["run", "--quiet", "--package", "ncclctl", "--"])
        .args(arguments)
        .env("COLUMNS", "100")
        .output()
        .context("cargo run")?;
    if !out.status.success() {
        bail!("ncclctl {}: {}", arguments.join(" "), String::from_utf8_lossy(&out.stderr));
    }
    Ok(String::from_utf8(out.stdout)?)
}

/// Folders that hold nothing but generated files.
const FOLDERS: [&str; 3] = ["schemas", "docs/rules", "docs/generated"];

/// Files there now.
fn present() -> anyhow::Result<Vec<String>> {
    fn walk(folder: &Path, base: &Path, found: &mut Vec<String>) -> anyhow::Result<()> {
        let Ok(entries) = folder.read_dir() else { return Ok(()) };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                walk(&path, base, found)?;
            } else {
                found.push(path.strip_prefix(base)?.to_string_lossy().into_owned());
            }
        }
        Ok(())
    }
    let base = repository();
    let mut found = Vec::new();
    for folder in FOLDERS {
        walk(&base.join(folder), &base, &mut found)?;
    }
    Ok(found)
}

fn write(files: &BTreeMap<String, String>) -> anyhow::Result<()> {
    for stale in present()?.iter().filter(|path| !files.contains_key(*path)) {
        std::fs::remove_file(repository().join(stale))?;
    }
    for (path, text) in files {
        let path = repository().join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, text)?;
    }
    Ok(())
}

fn check(files: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let mut wrong: Vec<String> =
        present()?.into_iter().filter(|path| !files.contains_key(path)).collect();
    for (path, text) in files {
        if pages::read(&repository().join(path)).as_deref() != Some(text) {
            wrong.push(path.clone());
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("not up to date, run `cargo xtask generate`: {}", wrong.join(", "))
}
