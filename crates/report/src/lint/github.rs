//! Annotations of GitHub Actions, one a line.

use std::fmt::Write as _;

use ncclctl_findings::{Exhibit, Severity};

use super::LintResult;

/// GitHub's annotations, one a line.
pub fn render(result: &LintResult) -> String {
    let escape = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let field = |text: &str| escape(text).replace(':', "%3A").replace(',', "%2C");
    let mut out = String::new();
    for unread in &result.unread {
        let _ = writeln!(
            out,
            "::error file={},line={},col={}::{}",
            field(&unread.file),
            unread.line,
            unread.column,
            escape(&unread.why)
        );
    }
    for f in &result.findings {
        let level = match f.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "notice",
        };
        let place = f.evidence.iter().find_map(|e| match e {
            Exhibit::Text { file, line, column, .. } => {
                Some(format!("file={},line={line},col={column},", field(file)))
            }
            _ => None,
        });
        let text = format!("{}\n{}\n{}", f.message, f.cause, f.remedy);
        let _ = writeln!(
            out,
            "::{level} {}title={}::{}",
            place.unwrap_or_default(),
            field(&f.rule),
            escape(&text)
        );
    }
    out
}
