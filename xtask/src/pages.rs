//! A page for each rule, from the doc comment at the head of its file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use ncclctl_findings::Severity;
use ncclctl_findings::rules::RULES;

/// Sections that every rule's doc has, in this order.
const SECTIONS: [&str; 5] = ["What", "Why", "Example", "Remedy", "Source"];

/// Reads a file of the repository.
#[expect(clippy::disallowed_methods, reason = "the generator reads the repository itself")]
pub(crate) fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Adds `docs/rules/ID.md` for every rule and the list of them.
pub(crate) fn rules(repository: &Path, files: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    let mut list = String::from(
        "# Rules\n\nEvery finding names its rule. A page says what it means, why NCCL behaves so, and what to do.\n\n| rule | severity | what |\n| --- | --- | --- |\n",
    );
    for rule in RULES {
        let file = format!("crates/findings/src/rules/{}.rs", rule.id.replace('-', "_"));
        let source =
            read(&repository.join(&file)).with_context(|| format!("{file} of rule {}", rule.id))?;
        let doc = head(&source);
        let mut from = 0;
        for section in SECTIONS {
            let mark = format!("## {section}");
            match doc[from..].find(&mark) {
                Some(at) => from += at,
                None => bail!(
                    "{file}: the doc comment has no section `{mark}` (expected {SECTIONS:?}, in this order)"
                ),
            }
        }
        let severity = match rule.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        // the first line says the id again, for readers of the source
        let body = doc.split_once('\n').map_or("", |(_, rest)| rest).trim();
        let page = format!("# {}\n\n{} ({severity})\n\n{body}", rule.id, rule.summary);
        files.insert(format!("docs/rules/{}.md", rule.id), page + "\n");
        let _ = writeln!(list, "| [{0}]({0}.md) | {severity} | {1} |", rule.id, rule.summary);
    }
    files.insert("docs/rules/README.md".to_owned(), list);
    Ok(())
}

/// The `//!` comment at the head of a source file.
fn head(source: &str) -> String {
    source
        .lines()
        .take_while(|line| line.starts_with("//!"))
        .map(|line| line.trim_start_matches("//!").strip_prefix(' ').unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}
