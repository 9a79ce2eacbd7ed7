//! The answer as Markdown, for an issue tracker.

use std::fmt::Write as _;

use ncclctl_findings::{Confidence, Diagnosis, Exhibit, Finding, Incident, Severity};

/// Renders the answer.
pub fn render(incident: &Incident, diagnosis: &Diagnosis) -> String {
    let mut out = String::new();
    let _ =
        writeln!(out, "## {}: {}\n", super::word(diagnosis.kind), escape(&diagnosis.headline()));
    for (index, root) in diagnosis.roots() {
        if root.severity == Severity::Info {
            continue;
        }
        finding(&mut out, root);
        for more in diagnosis.consequences(index) {
            let _ = writeln!(out, "- follows: `{}`: {}", more.rule, escape(&more.message));
        }
        out.push('\n');
    }
    let mut section = |title: &str, lines: &[String]| {
        if !lines.is_empty() {
            let _ = writeln!(out, "### {title}\n");
            for line in lines {
                let _ = writeln!(out, "- {}", escape(line));
            }
            out.push('\n');
        }
    };
    section("What ran", &super::ran(incident));
    section("Found in order", &diagnosis.fine);
    out
}

fn finding(out: &mut String, found: &Finding) {
    let sure = match found.confidence {
        Confidence::Certain => "certain",
        Confidence::Likely => "likely",
        Confidence::Possible => "possible",
    };
    let _ = writeln!(out, "### `{}`: {} ({sure})\n", found.rule, escape(&found.message));
    let _ = writeln!(out, "{}\n", escape(&found.cause));
    let _ = writeln!(out, "**Do:** {}\n", escape(&found.remedy));
    let lines: Vec<String> = found.evidence.iter().map(seen).collect();
    if !lines.is_empty() {
        // a fence longer than any run of ticks inside
        let ticks = lines.iter().map(|l| longest_run(l)).max().unwrap_or(0).max(2) + 1;
        let fence = "`".repeat(ticks);
        let _ = writeln!(out, "{fence}text\n{}\n{fence}\n", lines.join("\n"));
    }
}

fn seen(exhibit: &Exhibit) -> String {
    match exhibit {
        Exhibit::Text { file, line, text, .. } => format!("{file}:{line}: {text}"),
        Exhibit::Rank { rank, seen } => format!("rank {rank}: {seen}"),
        Exhibit::Nic { nic, host, seen } => format!("{nic} of {host}: {seen}"),
        Exhibit::Fact { fact, value } => format!("{fact} = {value}"),
        Exhibit::Measured { measured, value } => format!("{measured}: {value}"),
    }
}

fn longest_run(text: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Text in which nothing of Markdown or HTML takes effect.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '_' | '<' | '>' | '[' | ']' | '|' | '\\' | '#') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
