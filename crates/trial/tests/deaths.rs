//! Real processes that are killed, stopped and interrupted: whoever is left ends, says who was lost,
//! and leaves nothing behind. The parts are those of `examples/parts.rs`.

#![expect(
    clippy::expect_used,
    reason = "what goes wrong here fails the test or the measurement that asked for it"
)]
#![expect(clippy::disallowed_methods, reason = "tests look at processes and files directly")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Far more than anything here needs on a busy machine.
const LONG: Duration = Duration::from_secs(90);

fn parts() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test.ancestors().nth(2).expect("target/debug/deps/test");
    let program = folder.join("examples/parts");
    assert!(program.exists(), "run `cargo build --examples` first");
    program
}

fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Part {
    let mut command = Command::new(parts());
    command.args(arguments).env("NCCL_SOCKET_IFNAME", "lo");
    command.env("DEADLINE", "5").env("BYTES", "1048576").env("ITERATIONS", "100000000");
    for name in ["RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_SIZE", "PMI_RANK"] {
        command.env_remove(name);
    }
    command.envs(environment.iter().copied());
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("parts start");
    Part { child }
}

/// One process; killed when a test fails.
struct Part {
    child: Child,
}

impl Part {
    fn signal(&self, signal: Signal) {
        send(self.child.id(), signal);
    }

    /// Waits for the end; exit code and standard error.
    fn ends(mut self) -> (Option<i32>, String) {
        let started = Instant::now();
        while self.child.try_wait().expect("it can be waited for").is_none() {
            assert!(started.elapsed() < LONG, "process {} still runs", self.child.id());
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut text).expect("text");
        }
        (self.child.wait().expect("it has ended").code(), text)
    }

    /// Reads standard error up to a line with this word.
    fn says(&mut self, word: &str) {
        let stderr = self.child.stderr.take().expect("read once");
        let mut reader = BufReader::new(stderr);
        let mut line = String::new();
        while !line.contains(word) {
            line.clear();
            assert!(reader.read_line(&mut line).expect("text") > 0, "ended before `{word}`");
        }
        self.child.stderr = Some(reader.into_inner());
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("not zero");
    let _ = kill_process(pid, signal);
}

/// Processes whose parent this is.
fn children(parent: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let after = stat.rfind(')').map_or("", |at| &stat[at + 1..]);
        if after.split_whitespace().nth(1) == Some(&parent.to_string()) {
            found.push(pid);
        }
    }
    found
}

/// Waits until a process is gone; a zombie that nobody takes counts as gone.
fn gone(pid: u32) {
    let started = Instant::now();
    loop {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        match stat {
            Err(_) => return,
            Ok(text) if text.rsplit_once(") ").is_some_and(|(_, s)| s.starts_with('Z')) => return,
            Ok(_) => {}
        }
        assert!(started.elapsed() < LONG, "process {pid} was left behind");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A trial of a coordinator and two workers that is under way.
struct Trial {
    coordinator: Part,
    workers: Vec<Part>,
    ranks: Vec<u32>,
    _folder: tempfile::TempDir,
}

fn trial() -> Trial {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("token");
    let token = file.to_str().expect("UTF-8 path");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let mut coordinator = start(&["listen", &address, "2", token], &[]);
    coordinator.says("Listening");
    let workers: Vec<Part> =
        ["w0", "w1"].map(|name| start(&["worker", &address, token, name], &[])).into();
    coordinator.says("PathsMeasured");
    let ranks = workers.iter().flat_map(|worker| children(worker.child.id())).collect();
    let trial = Trial { coordinator, workers, ranks, _folder: folder };
    assert_eq!(trial.ranks.len(), 2);
    trial
}

impl Trial {
    /// The coordinator ends with the code of a broken environment and names the culprit; all others end.
    fn ends(self, says: &[&str]) {
        let (code, text) = self.coordinator.ends();
        assert_eq!(code, Some(4), "{text}");
        for word in says {
            assert!(text.contains(word), "no `{word}` in:\n{text}");
        }
        for worker in self.workers {
            let (code, _) = worker.ends();
            assert_ne!(code, Some(0));
        }
        self.ranks.into_iter().for_each(gone);
    }
}

#[test]
fn a_killed_rank_is_named() {
    let trial = trial();
    let rank = *trial.ranks.last().expect("two ranks");
    send(rank, Signal::KILL);
    trial.ends(&["error: rank ", "exited with signal 9"]);
}

#[test]
fn a_killed_worker_takes_its_rank_along_and_is_named() {
    let trial = trial();
    trial.workers[1].signal(Signal::KILL);
    trial.ends(&["error: worker w1 during ", "the process ended"]);
}

#[test]
fn a_killed_coordinator_ends_everybody() {
    let Trial { coordinator, workers, ranks, _folder } = trial();
    coordinator.signal(Signal::KILL);
    for worker in workers {
        let (code, text) = worker.ends();
        assert_eq!(code, Some(4), "{text}");
        assert!(text.contains("is gone"), "{text}");
    }
    ranks.into_iter().for_each(gone);
}

#[test]
fn a_stopped_rank_is_named_with_its_state() {
    let trial = trial();
    let rank = *trial.ranks.last().expect("two ranks");
    send(rank, Signal::STOP);
    trial.ends(&["no sign of life", "process is stopped"]);
}

#[test]
fn a_stopped_worker_is_named_and_its_rank_ends_by_itself() {
    let Trial { coordinator, mut workers, ranks, _folder } = trial();
    workers[1].signal(Signal::STOP);
    let (code, text) = coordinator.ends();
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("error: worker w1 during "), "{text}");
    assert!(text.contains("no sign of life"), "{text}");
    // while its worker is still stopped
    ranks.into_iter().for_each(gone);
    let second = workers.remove(1);
    second.signal(Signal::CONT);
    assert_eq!(second.ends().0, Some(4));
}

#[test]
fn an_interrupted_coordinator_ends_everybody_cleanly() {
    let trial = trial();
    trial.coordinator.signal(Signal::INT);
    trial.ends(&["error: ended by SIGINT"]);
}

#[test]
fn a_terminated_worker_says_so() {
    let trial = trial();
    trial.workers[0].signal(Signal::TERM);
    trial.ends(&["error: worker w0 during ", "told to end by SIGTERM"]);
}

/// Processes as a launcher would start them.
fn launched(runtime: &Path, iterations: &str) -> Vec<Part> {
    let runtime = runtime.to_str().expect("UTF-8 path");
    ["0", "1", "2"]
        .map(|rank| {
            let environment = [
                ("OMPI_COMM_WORLD_RANK", rank),
                ("OMPI_COMM_WORLD_SIZE", "3"),
                ("OMPI_COMM_WORLD_LOCAL_SIZE", "3"),
                ("PMIX_NAMESPACE", "deaths"),
                ("XDG_RUNTIME_DIR", runtime),
                ("ITERATIONS", iterations),
            ];
            start(&["launched"], &environment)
        })
        .into()
}

/// A runtime folder as a login session has it.
fn runtime() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("temporary folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700))
        .expect("own folder");
    folder
}

fn files(runtime: &Path) -> usize {
    std::fs::read_dir(runtime.join("ncclctl")).map_or(0, Iterator::count)
}

#[test]
fn launched_processes_are_one_job_and_leave_no_file() {
    let runtime = runtime();
    let mut codes = Vec::new();
    for part in launched(runtime.path(), "5") {
        let (code, text) = part.ends();
        codes.push(code);
        assert_eq!(code, Some(0), "{text}");
    }
    assert_eq!(codes.len(), 3);
    assert_eq!(files(runtime.path()), 0);
}

#[test]
fn a_killed_launched_coordinator_leaves_no_file_either() {
    let runtime = runtime();
    let mut parts = launched(runtime.path(), "100000000");
    parts[0].says("PathsMeasured");
    assert_eq!(files(runtime.path()), 1);
    let ranks = children(parts[0].child.id());
    parts[0].signal(Signal::KILL);
    for part in parts.drain(1..) {
        assert_eq!(part.ends().0, Some(4));
    }
    ranks.into_iter().for_each(gone);
    assert_eq!(files(runtime.path()), 0);
}
