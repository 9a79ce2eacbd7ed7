//! SARIF 2.1.0, for code scanning services and editors.

use std::ops::Range;

use ncclctl_findings::documents::{Documents, File};
use ncclctl_findings::rules::RULES;
use ncclctl_findings::{By, Finding, Rule, Severity};
use serde_json::{Value, json};

use super::{LintResult, underlined};

/// The document.
pub fn render(result: &LintResult, documents: &Documents) -> Result<String, serde_json::Error> {
    let silenced = result.silenced.iter().map(|s| &s.finding);
    let mut rules: Vec<&Rule> = Vec::new();
    for finding in result.findings.iter().chain(silenced) {
        let known = RULES.iter().find(|r| r.id == finding.rule);
        rules.extend(known.filter(|r| !rules.iter().any(|k| k.id == r.id)));
    }
    rules.sort_by_key(|r| r.id);
    let mut results: Vec<Value> =
        result.findings.iter().map(|f| one(f, documents, &rules)).collect();
    for silenced in &result.silenced {
        let mut value = one(&silenced.finding, documents, &rules);
        let kind = match silenced.by {
            By::Comment => "inSource",
            By::Baseline => "external",
        };
        value["suppressions"] = json!([{"kind": kind, "justification": silenced.reason}]);
        results.push(value);
    }
    let notes: Vec<Value> = result
        .unread
        .iter()
        .map(|u| {
            json!({
                "level": "error",
                "message": {"text": u.why},
                "locations": [{"physicalLocation": {
                    "artifactLocation": {"uri": uri(&u.file)},
                    "region": {"startLine": u.line.max(1), "startColumn": u.column.max(1)},
                }}],
            })
        })
        .collect();
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "ncclctl",
                "semanticVersion": result.tool.version,
                "rules": rules.iter().map(|rule| json!({
                    "id": rule.id,
                    "shortDescription": {"text": rule.summary},
                    "help": {"text": rule.page(), "markdown": rule.page()},
                    "defaultConfiguration": {"level": level(rule.severity)},
                })).collect::<Vec<_>>(),
            }},
            "invocations": [{
                "executionSuccessful": result.unread.is_empty(),
                "toolExecutionNotifications": notes,
            }],
            // columns count characters, as editors do
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn one(finding: &Finding, documents: &Documents, rules: &[&Rule]) -> Value {
    let text = [&finding.message, &finding.cause, &finding.remedy];
    let text: Vec<&str> = text.into_iter().map(String::as_str).filter(|t| !t.is_empty()).collect();
    let mut value = json!({
        "ruleId": finding.rule,
        "level": level(finding.severity),
        "message": {"text": text.join("\n")},
    });
    if let Some(index) = rules.iter().position(|r| r.id == finding.rule) {
        value["ruleIndex"] = json!(index);
    }
    let Some((file, span)) = underlined(finding, documents) else { return value };
    value["locations"] = json!([{"physicalLocation": {
        "artifactLocation": {"uri": uri(&file.name)},
        "region": region(file, span),
    }}]);
    let fix = finding
        .fix
        .as_ref()
        .filter(|fix| fix.file == file.name && file.text.get(fix.start..fix.end).is_some());
    if let Some(fix) = fix {
        value["fixes"] = json!([{
            "description": {"text": finding.remedy},
            "artifactChanges": [{
                "artifactLocation": {"uri": uri(&file.name)},
                "replacements": [{
                    "deletedRegion": region(file, fix.start..fix.end),
                    "insertedContent": {"text": fix.text},
                }],
            }],
        }]);
    }
    value
}

/// Lines and columns of bytes, from 1; the end column is the one behind the last.
fn region(file: &File, span: Range<usize>) -> Value {
    let place = |at: usize| {
        let before = file.text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        (line, before[start..].chars().count() + 1)
    };
    let ((line, column), (end_line, end_column)) = (place(span.start), place(span.end));
    json!({
        "startLine": line, "startColumn": column,
        "endLine": end_line, "endColumn": end_column,
    })
}

/// A path as a URI reference.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
