//! Findings about files: rustc's manner for people, JSON, SARIF, JUnit and GitHub's annotations.

pub mod github;
pub mod junit;
pub mod mend;
pub mod sarif;
pub mod text;

use std::ops::Range;

use ncclctl_findings::baseline::Known;
use ncclctl_findings::documents::{Documents, File};
use ncclctl_findings::{Exhibit, Finding, Silenced};
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
    /// What was found and is known: by a comment in the file, or by the baseline.
    pub silenced: Vec<Silenced>,
    /// What the baseline knows and is not there any more.
    pub gone: Vec<Known>,
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
        Self {
            schema: LINT_SCHEMA,
            tool: Tool::this(),
            files,
            findings,
            silenced: Vec::new(),
            gone: Vec::new(),
            unread,
        }
    }
}

/// The file of a finding with the bytes to underline.
fn underlined<'a>(finding: &Finding, documents: &'a Documents) -> Option<(&'a File, Range<usize>)> {
    finding.evidence.iter().find_map(|exhibit| match exhibit {
        Exhibit::Text { file, line, column, .. } => {
            let known = documents.files.iter().find(|f| f.name == *file)?;
            Some((known, span(known, *line, *column, finding)?))
        }
        _ => None,
    })
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

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use ncclctl_findings::documents::check;
    use ncclctl_findings::documents::gather::Gather;
    use proptest::prelude::*;

    use super::*;

    const MISREAD: &str = "# x: é\nNCCL_IB_DISABLE=true\n";

    fn lint(name: &str, text: &str) -> (LintResult, Documents) {
        let mut gather = Gather::new(None, None, false);
        gather.add(name, text);
        let (documents, _) = gather.finish();
        (LintResult::new(1, check(&documents), Vec::new()), documents)
    }

    #[test]
    fn a_finding_underlines_what_is_meant() {
        let (result, documents) = lint("nccl.env", "NCCL_DEBUG=WARN\nNCCL_IB_DISABLE=true\n");
        assert_snapshot!(text::render(&result, &documents, false, 100), @r"
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
        let text = github::render(&result);
        assert_eq!(text.lines().count(), result.findings.len());
        assert!(text.contains("file=nccl.env,line=1,col="), "{text}");
    }

    /// SARIF as its schema wants it, with places that a viewer finds.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "reads the schema that it is held against")]
    fn sarif_is_what_its_schema_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/schemas/sarif-2.1.0.json");
        let mut schema: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        // one pattern of it has a bracket too many, which makes it no regular expression
        for part in ["run", "toolComponent"] {
            let language = &mut schema["definitions"][part]["properties"]["language"];
            language.as_object_mut().unwrap().remove("pattern").unwrap();
        }
        let validator = jsonschema::validator_for(&schema).unwrap();
        let (mut result, documents) = lint("a b/nccl.env", MISREAD);
        result.unread.push(Unread { file: "x.yaml".into(), line: 3, column: 1, why: "cut".into() });
        result.silenced.push(Silenced {
            finding: result.findings[0].clone(),
            by: ncclctl_findings::By::Comment,
            reason: "on purpose".into(),
        });
        let sarif: serde_json::Value =
            serde_json::from_str(&sarif::render(&result, &documents).unwrap()).unwrap();
        let wrong: Vec<String> = validator.iter_errors(&sarif).map(|e| e.to_string()).collect();
        assert_eq!(wrong, [""; 0]);
        // the schema is one that can say no
        assert!(!validator.is_valid(&serde_json::json!({"version": "2.1.0", "runs": [{}]})));
        let results = &sarif["runs"][0]["results"];
        let place = &results[0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "a%20b/nccl.env");
        assert_eq!(
            place["region"],
            serde_json::json!({"startLine": 2, "startColumn": 17, "endLine": 2, "endColumn": 21})
        );
        // what --fix would do
        let change = &results[0]["fixes"][0]["artifactChanges"][0]["replacements"][0];
        assert_eq!(change["insertedContent"]["text"], "1");
        assert_eq!(results[1]["suppressions"][0]["justification"], "on purpose");
        let notes = &sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"];
        assert_eq!(notes[0]["message"]["text"], "cut");
    }

    #[test]
    fn junit_has_a_case_for_each_file_and_its_findings() {
        let (mut result, documents) = lint("nccl.env", MISREAD);
        result.unread.push(Unread {
            file: "x.yaml".into(),
            line: 3,
            column: 1,
            why: "a < b".into(),
        });
        assert_snapshot!(junit::render(&result, &documents), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuite name="ncclctl lint" tests="2" failures="1" errors="1">
          <testcase classname="lint" name="nccl.env">
            <failure type="env-value-misread" message="NCCL_IB_DISABLE=true is read as 0">error[env-value-misread]: NCCL_IB_DISABLE=true is read as 0
         --&gt; nccl.env:2:17
          |
        2 | NCCL_IB_DISABLE=true
          |                 ^^^^
          |
          = note: text counts as 0, without a message
          = help: write NCCL_IB_DISABLE=1</failure>
          </testcase>
          <testcase classname="lint.read" name="x.yaml">
            <error message="line 3 column 1: a &lt; b"/>
          </testcase>
        </testsuite>
        "#);
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
                now = mend::mend("nccl.env", &now, &result.findings, false).0;
            }
            let (result, _) = lint("nccl.env", &now);
            let (again, applied) = mend::mend("nccl.env", &now, &result.findings, false);
            prop_assert!(again == now, "{applied} edits left in {now:?}");
            // what has nothing to do with a finding is as it was
            prop_assert_eq!(now.matches("FOO=bar").count(), text.matches("FOO=bar").count());
            prop_assert_eq!(now.matches("# a comment").count(), text.matches("# a comment").count());
        }
    }
}
