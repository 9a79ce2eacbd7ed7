//! Machines as captures: what `facts` and `plan` say of each stands beside it, judged by hand, and
//! every file that is rendered for it has nothing that `lint` would warn of.
//! `UPDATE=1 cargo test -p ncclctl --test machines` writes the texts anew.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "what goes wrong here fails the test that asked for it"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn ncclctl(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ncclctl"))
        .args(arguments)
        .env_clear()
        .env("HOME", "/nonexistent")
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(arguments: &[&str]) -> String {
    let out = ncclctl(arguments);
    let error = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.code().is_some_and(|c| c < 2), "{arguments:?}: {error}");
    String::from_utf8(out.stdout).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines")
}

/// Folders of single machines and of fleets; a machine is where its answers are.
fn folders() -> (Vec<PathBuf>, Vec<PathBuf>) {
    let all: Vec<PathBuf> = {
        let entries = std::fs::read_dir(root()).unwrap();
        let mut all: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
        all.retain(|path| path.is_dir());
        all.sort();
        all
    };
    let (machines, fleets): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|path| path.join(".ncclctl").is_dir());
    assert!(machines.len() > 9 && !fleets.is_empty(), "the fixtures are there");
    (machines, fleets)
}

/// Holds a text against the one that stands beside the machine.
fn hold(path: &Path, is: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, is).unwrap();
    }
    let was = std::fs::read_to_string(path).unwrap_or_default();
    let (a, b): (Vec<&str>, Vec<&str>) = (is.lines().collect(), was.lines().collect());
    for at in 0..a.len().max(b.len()) {
        assert_eq!(a.get(at), b.get(at), "line {} of {}", at + 1, path.display());
    }
}

#[test]
fn facts_and_plan_of_each_machine() {
    let (machines, fleets) = folders();
    for machine in &machines {
        let from = machine.to_str().unwrap();
        hold(&machine.with_extension("facts.txt"), &text(&["facts", "--from", from]));
        hold(&machine.with_extension("plan.txt"), &text(&["plan", "--from", from]));
    }
    for fleet in &fleets {
        let folder = fleet.to_str().unwrap();
        hold(&fleet.with_extension("plan.txt"), &text(&["plan", "--fleet", folder]));
    }
}

#[test]
fn every_rendered_file_passes_lint() {
    let (machines, fleets) = folders();
    let mut wrong = String::new();
    let one = machines.iter().map(|path| ("--from", path));
    for (how, path) in one.chain(fleets.iter().map(|path| ("--fleet", path))) {
        for kind in ["docker", "compose", "env", "conf", "kubernetes", "dockerfile", "systemd"] {
            let folder = tempfile::tempdir().unwrap();
            let into = folder.path().to_str().unwrap();
            let from = path.to_str().unwrap();
            let mut arguments = vec!["render", kind, how, from, "--dir", into];
            if kind == "dockerfile" {
                arguments.extend(["--base", "docker.io/library/debian:12.11"]);
            }
            let out = ncclctl(&arguments);
            let error = String::from_utf8_lossy(&out.stderr).into_owned();
            if kind == "systemd" && error.contains("nothing for systemd to do") {
                continue;
            }
            assert_eq!(out.status.code(), Some(0), "{arguments:?}: {error}");
            let checked = ncclctl(&[&arguments[..], &["--check"]].concat());
            assert_eq!(checked.status.code(), Some(0), "{arguments:?} --check");
            let lint = ncclctl(&["lint", into]);
            if lint.status.code() != Some(0) {
                let said = String::from_utf8_lossy(&lint.stdout);
                wrong.push_str(&format!("{} as {kind}:\n{said}\n", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_capture_of_the_wrong_kind_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("facts.json");
    std::fs::write(&file, "{\"interfaces\": 3").unwrap();
    let out = ncclctl(&["facts", "--from", file.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("facts.json"));
    let missing = folder.path().join("nowhere");
    let out = ncclctl(&["plan", "--from", missing.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
}
