//! `ncclctl lint` as a user calls it: formats, exit codes, configuration, baseline, hostile trees.

#![expect(clippy::unwrap_used, reason = "tests of the built program")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Exit code, standard output, standard error.
fn lint(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_ncclctl"))
        .arg("lint")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

const MISREAD: &str = "NCCL_IB_DISABLE=true\n";

#[test]
fn the_exit_code_is_the_highest_severity() {
    let at = folder(&[("a.env", MISREAD), ("fine.env", "NCCL_DEBUG=WARN\n")]);
    assert_eq!(lint(at.path(), &["fine.env"]).0, 0);
    assert_eq!(lint(at.path(), &["a.env"]).0, 1);
    let info = folder(&[("i.env", "NCCL_NVLS_ENABLE=0\n")]);
    assert_eq!(lint(info.path(), &[]).0, 0);
    assert_eq!(lint(info.path(), &["--fail-on", "info"]).0, 1);
    let (code, _, error) = lint(at.path(), &["no-such"]);
    assert!(code == 2 && error.contains("no-such is not there"), "{error}");
}

#[test]
fn every_format_comes_out_whole() {
    let at = folder(&[("a.env", MISREAD)]);
    let (_, json, _) = lint(at.path(), &["-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["findings"][0]["rule"], "env-value-misread");
    let (_, sarif, _) = lint(at.path(), &["-o", "sarif"]);
    let sarif: serde_json::Value = serde_json::from_str(&sarif).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "env-value-misread");
    assert!(lint(at.path(), &["-o", "junit"]).1.contains("failures=\"1\""));
    assert!(lint(at.path(), &["-o", "github"]).1.starts_with("::error file=a.env,line=1"));
    let page = lint(at.path(), &["--explain", "env-value-misread"]).1;
    assert!(page.contains("## Why") && page.contains("## Remedy"), "{page}");
}

#[test]
fn standard_input_is_read() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ncclctl"))
        .args(["lint", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(MISREAD.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8(out.stdout).unwrap().contains("--> -:1:17"));
}

#[test]
fn the_configuration_is_found_above_the_path() {
    let at = folder(&[
        (
            "ncclctl.toml",
            "[lint]\nignore = [\"vendor/\"]\n[lint.severity]\nenv-value-misread = \"info\"\n",
        ),
        ("deep/er/a.env", MISREAD),
        ("vendor/b.env", "NCCL_P2P_DISABLE=1\n"),
        (".git/HEAD", ""),
        ("other/ncclctl.toml", "[lint]\n"),
        ("other/c.env", MISREAD),
    ]);
    let (code, text, _) = lint(at.path(), &["deep", "vendor"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("info[env-value-misread]") && !text.contains("P2P"), "{text}");
    // named or not, what is left out is left out
    assert!(lint(at.path(), &["vendor/b.env"]).1.contains("nothing found in 0 files"));
    let (code, _, error) = lint(at.path(), &["deep", "other"]);
    assert!(code == 2 && error.contains("name one with --config"), "{error}");
    assert_eq!(lint(at.path(), &["deep", "other", "--config", "other/ncclctl.toml"]).0, 1);

    std::fs::write(at.path().join("ncclctl.toml"), "[lint]\nnccl = 2\n").unwrap();
    let (code, _, error) = lint(at.path(), &["deep"]);
    assert!(code == 2 && error.contains("ncclctl.toml:2:8: invalid type"), "{error}");
}

#[test]
fn a_baseline_knows_what_was_there() {
    let at = folder(&[("sub/a.env", MISREAD)]);
    assert_eq!(lint(at.path(), &["--write-baseline", "known.json"]).0, 0);
    let (code, text, _) = lint(at.path(), &["--baseline", "known.json"]);
    assert!(code == 0 && text.contains("nothing found in 1 file; 1 known and silent"), "{text}");
    // from another folder the paths are the same
    let (code, ..) = lint(&at.path().join("sub"), &["--baseline", "../known.json"]);
    assert_eq!(code, 0);
    std::fs::write(at.path().join("sub/a.env"), "\n\nNCCL_P2P_DISABLE=1\n").unwrap();
    let (code, text, _) = lint(at.path(), &["--baseline", "known.json"]);
    assert!(code == 1 && text.contains("it is not there any more"), "{text}");
    std::fs::write(at.path().join("bad.json"), "{}").unwrap();
    let (code, _, error) = lint(at.path(), &["--baseline", "bad.json"]);
    assert!(code == 2 && error.contains("bad.json:1:2: no baseline"), "{error}");
}

/// What can not be read is told with its place, and the rest is still looked at.
#[test]
fn hostile_trees() {
    let mut bomb = "apiVersion: v1\nkind: List\na0: &a0 [x, x]\n".to_owned();
    for i in 1..40 {
        bomb.push_str(&format!("a{i}: &a{i} [*a{0}, *a{0}]\n", i - 1));
    }
    let deep = format!("apiVersion: v1\nkind: List\nx: {}\n", "[".repeat(5000));
    let at = folder(&[
        ("a.env", MISREAD),
        ("bomb.yaml", &bomb),
        ("deep.yaml", &deep),
        ("tab.yaml", "apiVersion: v1\nkind: Pod\nspec:\n\tcontainers: []\n"),
    ]);
    std::fs::write(at.path().join("latin.env"), b"# caf\xe9\nNCCL_P2P_DISABLE=1\n").unwrap();
    std::os::unix::fs::symlink(at.path(), at.path().join("loop")).unwrap();
    let big = std::fs::File::create(at.path().join("big.yaml")).unwrap();
    big.set_len(101 << 20).unwrap();
    let data = std::fs::File::create(at.path().join("big.bin")).unwrap();
    data.set_len(101 << 20).unwrap();
    let (code, text, _) = lint(at.path(), &[]);
    assert_eq!(code, 2);
    for told in [
        "big.yaml:1:1: larger than 100 MiB",
        "bomb.yaml:",
        "aliases make this file grow",
        "deep.yaml:3:",
        "latin.env:1:6: not UTF-8 text: byte 0xe9",
        "tab.yaml:4:",
        // the rest
        "error[env-value-misread]",
        "--> latin.env:2:1",
    ] {
        assert!(text.contains(told), "{told} in\n{text}");
    }
    assert!(!text.contains("big.bin") && !text.contains("loop/"), "{text}");
}

/// A secret that stands in a line of a finding is not shown in any format.
#[test]
fn secrets_stay_where_they_are() {
    let secret = "hf_Zq81mfKx02";
    let at = folder(&[
        ("Dockerfile", &format!("FROM a/b:1\nENV NCCL_IB_DISABLE=true HF_TOKEN={secret}\n")),
        ("d.env", &format!("export HF_TOKEN={secret}\nNCCL_DEBUG=WARN\n")),
        (
            "pod.yaml",
            &format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  containers:\n  - name: a\n    image: a:1\n    args: [\"--hf-token={secret}\"]\n    resources: {{limits: {{nvidia.com/gpu: 1}}}}\n"
            ),
        ),
    ]);
    for format in ["text", "json", "sarif", "github", "junit"] {
        let (_, text, _) = lint(at.path(), &["-o", format]);
        assert!(text.contains("secret-in-env") && text.contains("token-in-arguments"), "{text}");
        assert!(!text.contains(secret), "{format}: {text}");
    }
}
