//! Files as users have them: what is said about each stands in `fixtures/documents/findings.txt`,
//! judged by hand. `UPDATE=1 cargo test -p ncclctl-findings --test documents` writes it anew.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "what goes wrong here fails the test that asked for it"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ncclctl_findings::documents::check;
use ncclctl_findings::documents::gather::Gather;
use ncclctl_findings::{Exhibit, Finding, Severity};

/// Files that a careful user wrote: nothing at warning level or above may be said about them.
const HEALTHY: &[&str] = &[
    "coreweave-nccl-test-mpijob.yaml",
    "gke-a3-ultra-gib.yaml",
    "eks-efa-mpijob.yaml",
    "aks-ndv5-mpijob.yaml",
    "kubeflow-pytorchjob-ddp.yaml",
    "trainjob-runtime.yaml",
    "vllm-deployment.yaml",
    "vllm-lws.yaml",
    "sglang-compose.yaml",
    "megatron-sbatch.sh",
    "deepspeed.env",
    "site/nccl.conf",
    "ray-cluster.yaml",
    "jobset-indexed-healthy.yaml",
    "gb200-dra.yaml",
    "multi-stage/Dockerfile",
    "gke-tcpxo-hand.yaml",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/documents")
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = folder.read_dir().unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if !path.ends_with("findings.txt") {
            found.push(path);
        }
    }
}

fn lint(name: &str, text: &str) -> Vec<Finding> {
    let mut gather = Gather::default();
    assert!(gather.add(name, text).is_some(), "{name} is not recognised");
    let (set, unread) = gather.finish();
    assert_eq!(unread, [], "{name}");
    check(&set)
}

fn show(out: &mut String, finding: &Finding) {
    let severity = format!("{:?}", finding.severity).to_lowercase();
    let Some(Exhibit::Text { line, column, text, .. }) = finding.evidence.first() else {
        panic!("no place: {finding:?}");
    };
    writeln!(out, "{line}:{column} {severity}[{}]: {}", finding.rule, finding.message).unwrap();
    writeln!(out, "    | {text}\n    why: {}\n    do:  {}", finding.cause, finding.remedy).unwrap();
    if let Some(fix) = &finding.fix {
        let kind = if fix.safe { "safe fix" } else { "fix" };
        writeln!(out, "    {kind}: {:?} for bytes {}..{}", fix.text, fix.start, fix.end).unwrap();
    }
}

fn all() -> Vec<(String, String)> {
    let mut found = Vec::new();
    files(&root(), &mut found);
    found
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            (name, text)
        })
        .collect()
}

#[test]
fn what_is_said_about_each_file() {
    let mut out = String::new();
    let documents = all();
    assert!(documents.len() >= 30, "{}", documents.len());
    for (name, text) in &documents {
        writeln!(out, "== {name}").unwrap();
        for finding in lint(name, text) {
            show(&mut out, &finding);
        }
    }
    let golden = root().join("findings.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&golden, &out).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap();
    for (number, (is, was)) in out.lines().zip(expected.lines()).enumerate() {
        assert_eq!(is, was, "line {} of findings.txt", number + 1);
    }
    assert_eq!(out.lines().count(), expected.lines().count());
}

#[test]
fn careful_files_are_left_alone() {
    for (name, text) in all().iter().filter(|(n, _)| HEALTHY.contains(&n.as_str())) {
        let loud: Vec<_> = lint(name, text)
            .into_iter()
            .filter(|f| f.severity > Severity::Info)
            .map(|f| f.message)
            .collect();
        assert_eq!(loud, [""; 0], "{name}");
    }
}

/// A rule that no file here makes speak could as well say anything.
#[test]
fn every_rule_speaks_about_one_of_them() {
    let mut spoken = std::collections::BTreeSet::new();
    for (name, text) in all() {
        let mut gather = Gather::new(None, None, true);
        gather.add(&name, &text);
        spoken.extend(check(&gather.finish().0).into_iter().map(|f| f.rule));
    }
    // these look at several files at once: their pairs stand with the cases
    spoken.insert("tcpxo-env-mismatch".to_owned());
    let silent: Vec<&str> = ncclctl_findings::rules::RULES
        .iter()
        .filter(|r| r.documents.is_some() && !spoken.contains(r.id))
        .map(|r| r.id)
        .collect();
    assert_eq!(silent, [""; 0]);
}

/// Applies edits from the end to the start; of two that overlap the later one waits.
fn apply(text: &str, findings: &[Finding], safe_only: bool) -> String {
    let mut fixes: Vec<_> = findings.iter().filter_map(|f| f.fix.as_ref()).collect();
    fixes.retain(|f| f.safe || !safe_only);
    fixes.sort_by_key(|f| (f.start, f.end));
    let mut out = text.to_owned();
    let mut free = usize::MAX;
    for fix in fixes.into_iter().rev() {
        if fix.end <= free {
            out.replace_range(fix.start..fix.end, &fix.text);
            free = fix.start;
        }
    }
    out
}

#[test]
fn edits_end_and_mend_what_they_are_for() {
    for (name, text) in all() {
        for safe_only in [true, false] {
            let mut now = text.clone();
            let mut before = lint(&name, &now).iter().filter(|f| f.fix.is_some()).count();
            for _ in 0..6 {
                let next = apply(&now, &lint(&name, &now), safe_only);
                if next == now {
                    break;
                }
                now = next;
                let mut gather = Gather::default();
                // a file whose last setting went is nothing any more
                if gather.add(&name, &now).is_none() {
                    before = 0;
                    break;
                }
                let (_, unread) = gather.finish();
                assert_eq!(unread, [], "{name}: broken by its edits\n{now}");
            }
            let findings = match before {
                0 => Vec::new(),
                _ => lint(&name, &now),
            };
            assert_eq!(apply(&now, &findings, safe_only), now, "{name}: edits do not end");
            let left: Vec<_> = findings
                .iter()
                .filter(|f| f.fix.as_ref().is_some_and(|fix| fix.safe || !safe_only))
                .map(|f| f.message.as_str())
                .collect();
            assert_eq!(left, [""; 0], "{name}: not mended");
        }
    }
}

/// Values where they stand: the bytes of a setting's place hold its text.
#[test]
fn places_hold_what_they_say() {
    for (name, text) in all() {
        for finding in lint(&name, &text) {
            let Some(Exhibit::Text { line, text: shown, .. }) = finding.evidence.first() else {
                panic!("{name}: no place");
            };
            let whole = text.lines().nth(usize::try_from(*line - 1).unwrap()).unwrap();
            let hidden = shown.contains("*****");
            assert!(hidden || whole.contains(shown.as_str()), "{name}: {shown}");
        }
    }
}
