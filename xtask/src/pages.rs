//! A page for each rule, from the doc comment at the head of its file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::bail;
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
pub(crate) fn rules(files: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    let mut list = String::from(
        "# Rules\n\nEvery finding names its rule. A page says what it means, why NCCL behaves so, and what to do.\n\n| rule | severity | what |\n| --- | --- | --- |\n",
    );
    for rule in RULES {
        let doc = rule.page();
        let mut from = 0;
        for section in SECTIONS {
            let mark = format!("## {section}");
            match doc[from..].find(&mark) {
                Some(at) => from += at,
                None => bail!(
                    "the doc comment of rule {} has no section `{mark}` (expected {SECTIONS:?}, in this order)",
                    rule.id
                ),
            }
        }
        let severity = match rule.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        let page = format!("# {}\n\n{} ({severity})\n\n{doc}", rule.id, rule.summary);
        files.insert(format!("docs/rules/{}.md", rule.id), page + "\n");
        let _ = writeln!(list, "| [{0}]({0}.md) | {severity} | {1} |", rule.id, rule.summary);
    }
    files.insert("docs/rules/README.md".to_owned(), list);
    Ok(())
}
