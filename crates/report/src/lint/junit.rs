//! JUnit XML: one case for each file with findings, and one that stands for all others.

use std::fmt::Write as _;

use ncclctl_findings::documents::Documents;
use ncclctl_findings::{Exhibit, Finding, Severity};

use super::{LintResult, text};
use crate::junit::escape;

/// The document. A file with a finding at warning level or above fails; what is for information is
/// its output.
pub fn render(result: &LintResult, documents: &Documents) -> String {
    let mut files: Vec<(&str, Vec<&Finding>)> = Vec::new();
    for finding in &result.findings {
        let name = finding.evidence.iter().find_map(|e| match e {
            Exhibit::Text { file, .. } => Some(file.as_str()),
            _ => None,
        });
        let name = name.unwrap_or("all files");
        match files.iter_mut().find(|(known, _)| *known == name) {
            Some((_, found)) => found.push(finding),
            None => files.push((name, vec![finding])),
        }
    }
    let mut cases = String::new();
    let mut failures = 0;
    for (name, found) in &files {
        let loud: Vec<&&Finding> =
            found.iter().filter(|f| f.severity >= Severity::Warning).collect();
        let _ = writeln!(cases, "  <testcase classname=\"lint\" name=\"{}\">", escape(name));
        if let Some(first) = loud.first() {
            failures += 1;
            let more = match loud.len() {
                1 => String::new(),
                n => format!(", and {} more", n - 1),
            };
            let details: Vec<String> = loud.iter().map(|f| text::plain(f, documents)).collect();
            let _ = writeln!(
                cases,
                "    <failure type=\"{}\" message=\"{}{more}\">{}</failure>",
                escape(&first.rule),
                escape(&first.message),
                escape(&details.join("\n\n"))
            );
        }
        let quiet = found.iter().filter(|f| f.severity < Severity::Warning);
        let quiet: Vec<String> = quiet.map(|f| text::plain(f, documents)).collect();
        if !quiet.is_empty() {
            let _ = writeln!(cases, "    <system-out>{}</system-out>", escape(&quiet.join("\n\n")));
        }
        cases.push_str("  </testcase>\n");
    }
    for unread in &result.unread {
        let _ = writeln!(
            cases,
            "  <testcase classname=\"lint.read\" name=\"{}\">\n    <error message=\"line {} column {}: {}\"/>\n  </testcase>",
            escape(&unread.file),
            unread.line,
            unread.column,
            escape(&unread.why)
        );
    }
    let others = result.files.saturating_sub(files.len());
    if others > 0 {
        let _ = writeln!(
            cases,
            "  <testcase classname=\"lint\" name=\"{others} files without findings\"/>"
        );
    }
    let tests = files.len() + result.unread.len() + usize::from(others > 0);
    let errors = result.unread.len();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"ncclctl lint\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">\n{cases}</testsuite>\n"
    )
}
