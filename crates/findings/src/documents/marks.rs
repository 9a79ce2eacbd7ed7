//! Comments that silence a finding: `# ncclctl: ignore[rule, …] why`, behind the line that is meant
//! or on a line of its own above it.

use std::ops::RangeInclusive;

use super::gather::Form;
use super::{Spot, Text};

/// One such comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Rules that it names.
    pub rules: Vec<Text>,
    /// Why.
    pub reason: String,
    /// From `ncclctl:` to the end of the line.
    pub at: Spot,
    /// Lines that it is about, from 1.
    pub lines: RangeInclusive<u64>,
    /// It stands where this kind of file has no comment.
    pub no_comment: bool,
}

const SIGN: &str = "ncclctl: ignore";

/// Reads the comments of a file.
pub(super) fn read(file: usize, form: Form, text: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (at, _) in text.match_indices(SIGN) {
        let begin = text[..at].rfind('\n').map_or(0, |i| i + 1);
        let end = text[at..].find('\n').map_or(text.len(), |i| at + i);
        let before = text[begin..at].trim_end();
        let Some(lead) = before.strip_suffix("//").or_else(|| before.strip_suffix('#')) else {
            continue;
        };
        let number = text[..begin].matches('\n').count() as u64 + 1;
        let alone = lead.trim().is_empty();
        let lines = match alone {
            false => number..=number,
            true => below(form, text, end, number),
        };
        let rest = &text[at + SIGN.len()..end];
        let (names, reason, offset) = match rest.trim_start().strip_prefix('[') {
            Some(inner) => {
                let (names, reason) = inner.split_once(']').unwrap_or((inner, ""));
                (names, reason, end - inner.len())
            }
            None => ("", rest, end),
        };
        let mut from = offset;
        let mut rules = Vec::new();
        for name in names.split(',') {
            let lead = name.len() - name.trim_start().len();
            let span = from + lead..from + lead + name.trim().len();
            if !span.is_empty() {
                rules.push(Text { text: name.trim().to_owned(), at: Spot { file, span } });
            }
            from += name.len() + 1;
        }
        marks.push(Mark {
            rules,
            reason: reason.trim().trim_start_matches([':', '-', '–']).trim().to_owned(),
            at: Spot { file, span: at..end - usize::from(text[at..end].ends_with('\r')) },
            lines,
            // there a `#` behind a value belongs to the value
            no_comment: !alone && matches!(form, Form::Dockerfile | Form::EnvFile | Form::Conf),
        });
    }
    marks
}

/// The next line that says something, with the lines that go on behind a backslash.
fn below(form: Form, text: &str, end: usize, number: u64) -> RangeInclusive<u64> {
    let goes_on = matches!(form, Form::Dockerfile | Form::Shell);
    let mut first = None;
    let mut line = number;
    for next in text.get(end + 1..).unwrap_or_default().lines() {
        line += 1;
        let body = next.trim();
        let says = !body.is_empty() && !body.starts_with('#') && !body.starts_with("//");
        if says && first.is_none() {
            first = Some(line);
        }
        if first.is_some() && !(goes_on && (body.ends_with('\\') || !says)) {
            break;
        }
    }
    first.unwrap_or(number + 1)..=line.max(number + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(form: Form, text: &str) -> Mark {
        let marks = read(0, form, text);
        assert_eq!(marks.len(), 1, "{text}");
        marks.into_iter().next().unwrap()
    }

    #[test]
    fn which_lines_are_meant() {
        for (form, text, lines) in [
            (Form::Manifest, "a: 1 # ncclctl: ignore[x] why\nb: 2\n", 1..=1),
            (Form::Manifest, "  # ncclctl: ignore[x] why\n\n  # more\n  b: 2\nc: 3\n", 4..=4),
            (Form::Shell, "# ncclctl: ignore[x] why\nmpirun \\\n -x A=1 \\\n p\nq\n", 2..=4),
            (Form::Dockerfile, "# ncclctl: ignore[x] why\nENV A=1 \\\n# c\n B=2\nRUN x\n", 2..=4),
            (Form::EnvFile, "# ncclctl: ignore[x] why", 2..=2),
        ] {
            assert_eq!(one(form, text).lines, lines, "{text}");
        }
        assert!(one(Form::EnvFile, "A=1 # ncclctl: ignore[x] why\n").no_comment);
        assert_eq!(read(0, Form::Shell, "echo 'ncclctl: ignore[x]'\n"), []);
    }

    #[test]
    fn rules_and_reason() {
        let mark = one(Form::Compose, "a: # ncclctl: ignore[x-y, z]: bench image\r\n");
        let names: Vec<&str> = mark.rules.iter().map(|r| r.text.as_str()).collect();
        assert_eq!((names, mark.reason.as_str()), (vec!["x-y", "z"], "bench image"));
        assert_eq!(mark.rules[1].at.span, 26..27);
        assert_eq!(one(Form::Shell, "# ncclctl: ignore because\n").rules, []);
    }
}
