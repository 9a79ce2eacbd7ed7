//! `ncclctl exec`, as a container's entry point: nothing is left between the user and the program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what goes wrong here fails the test that asked for it"
)]

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn ncclctl(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ncclctl"));
    command.args(arguments).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/nonexistent");
    command.stdin(Stdio::null());
    command
}

fn out(command: &mut Command) -> (Output, String, String) {
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, stdout, stderr)
}

/// A plan for this machine with these settings for the job.
fn plan(folder: &Path, settings: &[(&str, &str)]) -> String {
    let (_, text, error) = out(&mut ncclctl(&["plan", "-o", "json"]));
    let mut plan: serde_json::Value = serde_json::from_str(&text).expect(&error);
    plan["plan"]["settings"] = settings
        .iter()
        .map(|(name, value)| {
            serde_json::json!({
                "name": name, "value": value, "layer": "job", "rule": "test", "reason": "a test",
                "facts": [], "without": "nothing", "read_since": null, "shared": true
            })
        })
        .collect();
    let path = folder.join("plan.json");
    std::fs::write(&path, plan.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_programs_exit_code_signal_and_process_id_are_its_own() {
    let (output, ..) = out(&mut ncclctl(&["exec", "--", "sh", "-c", "exit 7"]));
    assert_eq!(output.status.code(), Some(7));
    let (output, ..) = out(&mut ncclctl(&["exec", "--", "sh", "-c", "kill -TERM $$"]));
    assert_eq!(output.status.signal(), Some(15));
    let child = ncclctl(&["exec", "--", "sh", "-c", "echo $$"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let id = child.id();
    let said = child.wait_with_output().unwrap().stdout;
    assert_eq!(String::from_utf8_lossy(&said).trim(), id.to_string(), "no process in between");
}

#[test]
fn a_program_that_is_not_there_ends_as_in_a_shell() {
    let (output, _, error) = out(&mut ncclctl(&["exec", "--", "/no/such/program"]));
    assert_eq!(output.status.code(), Some(127), "{error}");
    let (output, ..) = out(&mut ncclctl(&["exec", "--", "/etc/passwd"]));
    assert_eq!(output.status.code(), Some(126));
}

#[test]
fn what_the_user_has_set_stays_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path(), &[("NCCL_NET", "Socket"), ("NCCL_IB_TIMEOUT", "22")]);
    let mut command = ncclctl(&["exec", "--plan", &plan, "--", "env"]);
    let (_, env, log) = out(command.env("NCCL_IB_TIMEOUT", "20"));
    assert!(env.contains("NCCL_NET=Socket\n"), "{env}");
    assert!(env.contains("NCCL_IB_TIMEOUT=20\n"), "{env}");
    assert!(log.contains("NCCL_IB_TIMEOUT=20 is yours and stays (the plan has 22)"), "{log}");
    assert!(log.contains("NCCL_NET=Socket (test: a test)"), "{log}");
    let (_, env, log) = out(command.env("NCCLCTL_EXEC", "off"));
    assert!(!env.contains("NCCL_NET=") && log.is_empty(), "{env}{log}");
}

#[test]
fn a_dry_run_starts_nothing() {
    let (output, text, _) = out(&mut ncclctl(&["exec", "--dry-run", "--", "echo", "started"]));
    assert_eq!((output.status.code(), text.as_str()), (Some(0), ""));
}

#[test]
fn a_plan_that_can_not_be_read_keeps_nobody_from_working() {
    let (output, text, log) =
        out(&mut ncclctl(&["exec", "--plan", "/no/plan", "--", "echo", "started"]));
    assert_eq!((output.status.code(), text.as_str()), (Some(0), "started\n"), "{log}");
    assert!(log.contains("/no/plan"), "{log}");
    let (output, text, _) =
        out(&mut ncclctl(&["exec", "--strict", "--plan", "/no/plan", "--", "echo", "started"]));
    assert_eq!((output.status.code(), text.as_str()), (Some(4), ""));
}

#[test]
fn ranks_agree_or_nobody_acts() {
    let token = "5a".repeat(32);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let rank = |rank: usize, timeout: &str| {
        let port = port.to_string();
        let arguments = [
            "exec",
            "--agree",
            "--agree-port",
            &port,
            "--agree-timeout",
            timeout,
            "--",
            "echo",
            "started",
        ];
        let mut command = ncclctl(&arguments);
        command
            .env("RANK", rank.to_string())
            .env("WORLD_SIZE", "2")
            .env("MASTER_ADDR", "127.0.0.1")
            .env("NCCLCTL_TOKEN", &token)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let second = rank(1, "20s").spawn().unwrap();
    let first = rank(0, "20s").spawn().unwrap();
    for child in [first, second] {
        let output = child.wait_with_output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.stdout, b"started\n", "{log}");
        assert!(!log.contains("nothing that ranks must share"), "{log}");
    }
    let (_, text, log) = out(&mut rank(0, "1s"));
    assert_eq!(text, "started\n", "alone it starts all the same");
    assert!(log.contains("process 1 did not come"), "{log}");
}
