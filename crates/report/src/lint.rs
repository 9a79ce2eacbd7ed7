//! Findings about files: rustc's manner for people, JSON, and GitHub's annotations.

use std::fmt::Write as _;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use ncclctl_findings::documents::{Documents, File};
use ncclctl_findings::{Confidence, Exhibit, Finding, Severity};
use schemars::JsonSchema;
use serde::Serialize;

use crate::envelope::Tool;

/// Schema of [`LintResult`].
pub const LINT_SCHEMA: &str = "ncclctl/lint/v1";

/// Result of `ncclctl lint`, as `-o json` prints it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LintResult {
    /// `ncclctl/lint/v1`. A field may be added within a version; none changes its meaning.
    pub schema: &'static str,
    /// What made it.
    pub tool: Tool,
    /// Files that were read.
    pub files: usize,
    /// What was found, in the order of the files.
    pub findings: Vec<Finding>,
    /// Files that could not be read to their end: name, line, column, why.
    pub unread: Vec<Unread>,
}

/// A file that could not be read to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unread {
    /// Path as given.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// Column in bytes, from 1.
    pub column: u64,
    /// Why.
    pub why: String,
}

impl LintResult {
    /// The envelope.
    pub fn new(files: usize, findings: Vec<Finding>, unread: Vec<Unread>) -> Self {
        Self { schema: LINT_SCHEMA, tool: Tool::this(), files, findings, unread }
    }
}

/// Text for people: each finding with its line, the span underlined, why, and what to write.
pub fn render(result: &LintResult, documents: &Documents, colour: bool, width: usize) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() }.term_width(width);
    let mut out = String::new();
    for unread in &result.unread {
        let _ = writeln!(
            out,
            "error: {}:{}:{}: {}; what stands after it was not looked at\n",
            unread.file, unread.line, unread.column, unread.why
        );
    }
    for finding in &result.findings {
        out.push_str(&one(finding, documents, &renderer));
        out.push_str("\n\n");
    }
    out.push_str(&count(result));
    out
}

fn one(finding: &Finding, documents: &Documents, renderer: &Renderer) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let sure = match finding.confidence {
        Confidence::Certain => "",
        Confidence::Likely => " (likely)",
        Confidence::Possible => " (possible)",
    };
    let title = format!("{}{sure}", finding.message);
    let place = finding.evidence.iter().find_map(|exhibit| match exhibit {
        Exhibit::Text { file, line, column, .. } => {
            let known = documents.files.iter().find(|f| f.name == *file)?;
            Some((known, span(known, *line, *column, finding)?))
        }
        _ => None,
    });
    let mut group = level
        .primary_title(title)
        .id(finding.rule.as_str())
        .elements(Vec::<Snippet<'_, annotate_snippets::Annotation<'_>>>::new());
    if let Some((file, span)) = place {
        group = group.element(
            Snippet::source(file.text.as_str())
                .path(file.name.as_str())
                .annotation(AnnotationKind::Primary.span(span)),
        );
    }
    if !finding.cause.is_empty() {
        group = group.element(Level::NOTE.message(finding.cause.as_str()));
    }
    if !finding.remedy.is_empty() {
        group = group.element(Level::HELP.message(finding.remedy.as_str()));
    }
    renderer.render(&[group])
}

/// The bytes to underline: the word at the place, or the rest of its line.
fn span(file: &File, line: u64, column: u64, finding: &Finding) -> Option<std::ops::Range<usize>> {
    let line = usize::try_from(line).ok()?.checked_sub(1)?;
    let begin = match line {
        0 => 0,
        n => file.text.match_indices('\n').nth(n - 1)?.0 + 1,
    };
    let start = begin + usize::try_from(column).ok()?.checked_sub(1)?;
    let rest = file.text.get(start..)?;
    let end_of_line = rest.find('\n').unwrap_or(rest.len());
    let text = rest[..end_of_line].trim_end();
    // an edit that begins here says exactly what is meant
    if let Some(fix) =
        finding.fix.as_ref().filter(|f| f.file == file.name && f.start >= start && f.end > f.start)
        && fix.end <= start + text.len()
        && file.text.is_char_boundary(fix.start)
        && file.text.is_char_boundary(fix.end)
    {
        return Some(fix.start..fix.end);
    }
    let length = match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text[1..].find(quote).map_or(text.len(), |i| i + 2),
        _ => text.find([' ', '\t', ',']).unwrap_or(text.len()),
    };
    Some(start..start + length.max(1).min(rest.len()))
}

fn count(result: &LintResult) -> String {
    let of = |severity| result.findings.iter().filter(|f| f.severity == severity).count();
    let word = |n: usize, name: &str| format!("{n} {name}{}", if n == 1 { "" } else { "s" });
    let (errors, warnings, infos) =
        (of(Severity::Error), of(Severity::Warning), of(Severity::Info));
    let files = word(result.files, "file");
    if errors + warnings + infos == 0 && result.unread.is_empty() {
        return format!("nothing found in {files}\n");
    }
    let mut parts = vec![word(errors, "error"), word(warnings, "warning")];
    if infos > 0 {
        parts.push(format!("{infos} for information"));
    }
    let fixable = result.findings.iter().filter(|f| f.fix.as_ref().is_some_and(|x| x.safe)).count();
    let hint = if fixable > 0 { format!("; --fix mends {fixable}") } else { String::new() };
    format!("{} in {files}{hint}\n", parts.join(", "))
}

/// GitHub's annotations, one a line.
pub fn github(result: &LintResult) -> String {
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

/// Applies the edits of one file: those that overlap an earlier one are left for the next time.
/// Returns the new text and how many were applied.
pub fn mend(file: &str, text: &str, findings: &[Finding], unsafe_too: bool) -> (String, usize) {
    let mut fixes: Vec<_> = findings
        .iter()
        .filter_map(|f| f.fix.as_ref())
        .filter(|f| f.file == file && (f.safe || unsafe_too))
        .filter(|f| {
            f.start <= f.end && text.is_char_boundary(f.start) && text.is_char_boundary(f.end)
        })
        .collect();
    fixes.sort_by_key(|f| (f.start, f.end));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let mut applied = 0;
    let mut last: Option<(usize, usize)> = None;
    for fix in fixes {
        if fix.start < at || last == Some((fix.start, fix.end)) || fix.end > text.len() {
            continue;
        }
        out.push_str(&text[at..fix.start]);
        out.push_str(&fix.text);
        at = fix.end;
        last = Some((fix.start, fix.end));
        applied += 1;
    }
    out.push_str(&text[at..]);
    (out, applied)
}

/// What an edit changes, as lines taken out and put in.
pub fn difference(file: &str, old: &str, new: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let before = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let after =
        a[before..].iter().rev().zip(b[before..].iter().rev()).take_while(|(x, y)| x == y).count();
    let mut out = format!("--- {file}\n+++ {file}\n");
    let (gone, come) = (&a[before..a.len() - after], &b[before..b.len() - after]);
    let _ = writeln!(out, "@@ -{},{} +{},{} @@", before + 1, gone.len(), before + 1, come.len());
    for line in gone {
        let _ = writeln!(out, "-{line}");
    }
    for line in come {
        let _ = writeln!(out, "+{line}");
    }
    out
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use ncclctl_findings::documents::check;
    use ncclctl_findings::documents::gather::Gather;
    use proptest::prelude::*;

    use super::*;

    fn lint(name: &str, text: &str) -> (LintResult, Documents) {
        let mut gather = Gather::new(None, None, false);
        gather.add(name, text);
        let (documents, _) = gather.finish();
        (LintResult::new(1, check(&documents), Vec::new()), documents)
    }

    #[test]
    fn a_finding_underlines_what_is_meant() {
        let (result, documents) = lint("nccl.env", "NCCL_DEBUG=WARN\nNCCL_IB_DISABLE=true\n");
        assert_snapshot!(render(&result, &documents, false, 100), @r"
        error[env-value-misread]: NCCL_IB_DISABLE=true is read as 0
         --> nccl.env:2:17
          |
        2 | NCCL_IB_DISABLE=true
          |                 ^^^^
          |
          = note: text counts as 0, without a message
          = help: write NCCL_IB_DISABLE=1

        1 error, 0 warnings in 1 file
        ");
    }

    #[test]
    fn annotations_for_github_are_one_line_each() {
        let (result, _) = lint("nccl.env", "NCCL_IB_DISABLE=true\n");
        let text = github(&result);
        assert_eq!(text.lines().count(), result.findings.len());
        assert!(text.contains("file=nccl.env,line=1,col="), "{text}");
    }

    proptest! {
        #[test]
        fn mending_twice_is_mending_once(
            lines in prop::collection::vec(prop::sample::select(vec![
                "NCCL_IB_DISABLE=true", "NCCL_DEBUG=INFO", "NCCL_BUFFSIZE=8M", "NCCL_SOCKET_IFNAME=eth*",
                "# a comment", "", "NCCL_P2P_DISABLE = 1", "export NCCL_ALGO=Ring", "FOO=bar", "NCCL_IB_GID_INDEX=",
            ]), 1..8)
        ) {
            let text = lines.join("\n") + "\n";
            let mut now = text.clone();
            // edits that overlapped wait for the next round: it comes to rest
            for _ in 0..6 {
                let (result, _) = lint("nccl.env", &now);
                now = mend("nccl.env", &now, &result.findings, false).0;
            }
            let (result, _) = lint("nccl.env", &now);
            let (again, applied) = mend("nccl.env", &now, &result.findings, false);
            prop_assert!(again == now, "{applied} edits left in {now:?}");
            // what has nothing to do with a finding is as it was
            prop_assert_eq!(now.matches("FOO=bar").count(), text.matches("FOO=bar").count());
            prop_assert_eq!(now.matches("# a comment").count(), text.matches("# a comment").count());
        }
    }
}
