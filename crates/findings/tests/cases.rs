//! Real failures as small inputs: every expected cause is found, none of the wrong ones, and a
//! healthy case has nothing at warning level or above. Format: fixtures/cases/README.md.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "what goes wrong here fails the test or the measurement that asked for it"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ncclctl_findings::intake::Intake;
use ncclctl_findings::{Diagnosis, Severity, diagnose};

#[derive(Debug, Default)]
struct Case {
    name: String,
    folder: PathBuf,
    inputs: Vec<String>,
    expected: Vec<String>,
    must_not: Vec<String>,
}

fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cases");
    let mut out: Vec<Case> = std::fs::read_dir(&root)
        .unwrap()
        .filter_map(|entry| {
            let folder = entry.unwrap().path();
            let text = std::fs::read_to_string(folder.join("case.toml")).ok()?;
            let field = |key: &str| {
                text.lines()
                    .find_map(|l| l.strip_prefix(key)?.trim_start().strip_prefix('='))
                    .map(str::trim)
                    .unwrap_or("")
                    .to_owned()
            };
            let list = |key: &str| {
                field(key).split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
            };
            Some(Case {
                name: folder.file_name()?.to_string_lossy().into_owned(),
                inputs: list("inputs"),
                expected: list("expected"),
                must_not: list("must_not"),
                folder,
            })
        })
        .collect();
    out.sort_by(|a, b| a.name.cmp(&b.name));
    out
}

fn answer(case: &Case) -> Diagnosis {
    let mut intake = Intake::default();
    for input in &case.inputs {
        intake.add(input, &std::fs::read(case.folder.join(input)).unwrap());
    }
    diagnose(&intake.finish())
}

fn judge(case: &Case, answer: &Diagnosis) -> Vec<String> {
    let loud: BTreeSet<&str> = answer
        .findings
        .iter()
        .filter(|f| f.severity >= Severity::Warning)
        .map(|f| f.rule.as_str())
        .collect();
    let mut wrong = Vec::new();
    for want in &case.expected {
        match answer.findings.iter().find(|f| f.rule == *want) {
            None => wrong.push(format!("{}: misses {want}; has {loud:?}", case.name)),
            Some(f) if f.evidence.is_empty() => {
                wrong.push(format!("{}: {want} has no evidence", case.name));
            }
            Some(_) => {}
        }
    }
    for not in &case.must_not {
        if answer.findings.iter().any(|f| f.rule == *not) {
            wrong.push(format!("{}: must not say {not}", case.name));
        }
    }
    if case.expected.is_empty() && !loud.is_empty() {
        wrong.push(format!("{}: healthy, but has {loud:?}", case.name));
    }
    wrong
}

#[test]
fn every_case_has_the_right_answer() {
    let mut wrong = Vec::new();
    let mut answered = 0;
    for case in &cases() {
        let answer = answer(case);
        let bad = judge(case, &answer);
        if std::env::var_os("SHOW").is_some() {
            println!("== {} {:?}: {}", case.name, answer.kind, answer.headline());
            for f in &answer.findings {
                println!("   {} {:?} {:?}: {}", f.rule, f.severity, f.confidence, f.message);
            }
        }
        answered += 1;
        wrong.extend(bad);
    }
    assert!(answered > 30, "{answered} cases found");
    assert!(wrong.is_empty(), "{} of {answered}:\n{}", wrong.len(), wrong.join("\n"));
}
