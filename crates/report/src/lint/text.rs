//! Text for people, in rustc's manner.

use std::fmt::Write as _;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use ncclctl_findings::documents::Documents;
use ncclctl_findings::{Confidence, Finding, Severity};

use super::{LintResult, underlined};

/// Text for people: each finding with its line, the span underlined, why, and what to write.
pub fn render(result: &LintResult, documents: &Documents, colour: bool, width: usize) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() }.term_width(width);
    let mut out = String::new();
    for unread in &result.unread {
        let _ = writeln!(
            out,
            "error: {}:{}:{}: {}\n",
            unread.file, unread.line, unread.column, unread.why
        );
    }
    for finding in &result.findings {
        out.push_str(&one(finding, documents, &renderer));
        out.push_str("\n\n");
    }
    for known in &result.gone {
        let _ = writeln!(
            out,
            "note: the baseline knows {}[{}] in {}, and it is not there any more: {}\n",
            if known.count > 1 { format!("{} times ", known.count) } else { String::new() },
            known.rule,
            known.file,
            known.message
        );
    }
    out.push_str(&count(result));
    out
}

/// One finding without colour.
pub(super) fn plain(finding: &Finding, documents: &Documents) -> String {
    one(finding, documents, &Renderer::plain().term_width(120))
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
    let place = underlined(finding, documents);
    let mut group = level
        .primary_title(title)
        .id(finding.rule.as_str())
        .elements(Vec::<Snippet<'_, annotate_snippets::Annotation<'_>>>::new());
    if let Some((file, span)) = place {
        // only its own lines: a large file is not looked through once more for every finding
        let text = file.shown();
        let begin = text[..span.start].rfind('\n').map_or(0, |i| i + 1);
        let end = text[span.end..].find('\n').map_or(text.len(), |i| span.end + i);
        let number = text[..begin].matches('\n').count() + 1;
        group = group.element(
            Snippet::source(&text[begin..end])
                .line_start(number)
                .path(file.name.as_str())
                .annotation(AnnotationKind::Primary.span(span.start - begin..span.end - begin)),
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

fn count(result: &LintResult) -> String {
    let of = |severity| result.findings.iter().filter(|f| f.severity == severity).count();
    let word = |n: usize, name: &str| format!("{n} {name}{}", if n == 1 { "" } else { "s" });
    let (errors, warnings, infos) =
        (of(Severity::Error), of(Severity::Warning), of(Severity::Info));
    let files = word(result.files, "file");
    if errors + warnings + infos == 0 && result.unread.is_empty() {
        let known = match result.silenced.len() {
            0 => String::new(),
            n => format!("; {n} known and silent"),
        };
        return format!("nothing found in {files}{known}\n");
    }
    let mut parts = vec![word(errors, "error"), word(warnings, "warning")];
    if infos > 0 {
        parts.push(format!("{infos} for information"));
    }
    let fixable = result.findings.iter().filter(|f| f.fix.as_ref().is_some_and(|x| x.safe)).count();
    let hint = if fixable > 0 { format!("; --fix mends {fixable}") } else { String::new() };
    let known = match result.silenced.len() {
        0 => String::new(),
        n => format!("; {n} known and silent"),
    };
    format!("{} in {files}{hint}{known}\n", parts.join(", "))
}
