//! Finding and running the binary under test.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What a finished run left.
#[derive(Debug)]
pub struct Finished {
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Wall time.
    pub took: Duration,
}

/// A run in progress, killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Option<Child>,
    started: Instant,
}

/// Reads one variable of the test's environment.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

fn target() -> PathBuf {
    environment("CARGO_TARGET_DIR").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target")),
        PathBuf::from,
    )
}

/// The binary under test: `NCCLCTL_BIN`, else the release build, else the dev build.
pub fn path() -> PathBuf {
    if let Some(given) = environment("NCCLCTL_BIN") {
        return given.into();
    }
    let release = target().join("release/ncclctl");
    if release.exists() { release } else { target().join("debug/ncclctl") }
}

/// The binary that can be told to do wrong (`fault-injection`), where it was built.
pub fn faulty() -> Option<PathBuf> {
    let path = environment("NCCLCTL_FAULTY_BIN")
        .map_or_else(|| target().join("faulty/debug/ncclctl"), PathBuf::from);
    path.exists().then_some(path)
}

/// A command of the binary under test with a clean NCCL environment.
pub fn command(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(path());
    command.args(args);
    isolate(&mut command);
    command
}

/// Takes away what the developer's own shell could add to a run.
pub fn isolate(command: &mut Command) {
    for name in
        ["NCCL_SOCKET_IFNAME", "NCCL_DEBUG", "NO_COLOR", "RANK", "WORLD_SIZE", "SLURM_PROCID"]
    {
        command.env_remove(name);
    }
}

/// Runs to the end, at most `limit`.
pub fn run(args: impl IntoIterator<Item = impl AsRef<OsStr>>, limit: Duration) -> Finished {
    start(command(args)).finish(limit)
}

/// Starts a prepared command with both streams captured.
pub fn start(mut command: Command) -> Running {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    Running { child: Some(child), started: Instant::now() }
}

/// Sends a signal, by its number, to any process.
pub fn signal_process(pid: u32, signal: i32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid as i32)
        && let Some(signal) = rustix::process::Signal::from_named_raw(signal)
    {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

impl Running {
    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: i32) {
        signal_process(self.pid(), signal);
    }

    /// Waits for the end, at most `limit` since the start; kills and fails the test after it.
    pub fn finish(mut self, limit: Duration) -> Finished {
        let Some(mut child) = self.child.take() else { panic!("already finished") };
        let pid = child.id();
        let started = self.started;
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        let drain = |stream: Option<Box<dyn std::io::Read + Send>>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                if let Some(mut stream) = stream {
                    let _ = stream.read_to_end(&mut bytes);
                }
                String::from_utf8_lossy(&bytes).into_owned()
            })
        };
        let out = drain(stdout.map(|s| Box::new(s) as _));
        let err = drain(stderr.map(|s| Box::new(s) as _));
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if started.elapsed() > limit => {
                    let _ = child.kill();
                    let _ = child.wait();
                    panic!(
                        "process {pid} still ran after {limit:?}\nstdout:\n{}\nstderr:\n{}",
                        out.join().unwrap_or_default(),
                        err.join().unwrap_or_default()
                    );
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                Err(error) => panic!("waiting for {pid}: {error}"),
            }
        };
        let took = started.elapsed();
        Finished {
            status,
            stdout: out.join().unwrap_or_default(),
            stderr: err.join().unwrap_or_default(),
            took,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Finished {
    /// Asserts the exit code, showing both streams where it differs.
    #[track_caller]
    pub fn expect_code(&self, code: i32) -> &Self {
        assert_eq!(
            self.status.code(),
            Some(code),
            "exit status {}\nstdout:\n{}\nstderr:\n{}",
            self.status,
            self.stdout,
            self.stderr
        );
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("stdout is no JSON: {error}\n{}\nstderr:\n{}", self.stdout, self.stderr)
        })
    }
}

/// Runs what must pass on a machine that is left alone. Somebody may not leave it alone, and then an
/// honest verdict is no pass: one of three runs must be one. What fails at every try is broken.
#[track_caller]
pub fn passes(mut run: impl FnMut() -> Finished) -> Finished {
    for _ in 0..2 {
        let finished = run();
        if finished.status.success() {
            return finished;
        }
        eprintln!("no pass, again: {}", finished.stdout.lines().last().unwrap_or_default());
    }
    let last = run();
    last.expect_code(0);
    last
}

/// Rule ids of the findings in a JSON result.
pub fn rules(result: &serde_json::Value) -> Vec<String> {
    result["findings"]
        .as_array()
        .map(|findings| {
            findings.iter().filter_map(|f| f["rule"].as_str().map(str::to_owned)).collect()
        })
        .unwrap_or_default()
}
