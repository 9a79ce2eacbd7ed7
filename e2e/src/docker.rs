//! A Docker engine of the test's own, in a network namespace of its own: its bridge and its packet
//! filter rules never meet those of the machine, and a user's containers are never seen.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::binary;
use crate::lab::Lab;

/// A running engine with one image, `ncclctl:test`: the binary under test, the C library it needs, nothing else.
pub struct Engine {
    daemon: Child,
    folder: tempfile::TempDir,
    // dropped last: the namespace that the daemon lives in
    _lab: Lab,
}

/// Image that every engine has.
pub const IMAGE: &str = "ncclctl:test";

impl Engine {
    /// Starts an engine. `Err` says why none can be had here.
    pub fn start() -> Result<Self, String> {
        for program in ["dockerd", "docker"] {
            Command::new(program)
                .arg("--version")
                .output()
                .map_err(|_| format!("{program} is not installed"))?;
        }
        let lab = Lab::new(1, "10gbit")?;
        let folder = tempfile::Builder::new()
            .prefix("ncclctl-e2e-docker")
            .tempdir()
            .map_err(|error| format!("temporary folder: {error}"))?;
        let at = |name: &str| folder.path().join(name);
        let log = std::fs::File::create(at("log")).map_err(|error| format!("log: {error}"))?;
        let daemon = lab
            .program(0, "dockerd")
            .arg("--data-root")
            .arg(at("data"))
            .arg("--exec-root")
            .arg(at("exec"))
            .arg("--pidfile")
            .arg(at("pid"))
            .arg("-H")
            .arg(format!("unix://{}", at("docker.sock").display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("dockerd: {error}"))?;
        let engine = Self { daemon, folder, _lab: lab };
        let started = Instant::now();
        while engine.docker(["version"]).output().is_ok_and(|out| !out.status.success()) {
            if started.elapsed() > Duration::from_secs(30) {
                let log = std::fs::read_to_string(engine.folder.path().join("log"));
                return Err(format!("dockerd did not start: {}", log.unwrap_or_default()));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        engine.build_image()?;
        Ok(engine)
    }

    /// The engine's socket, for `DOCKER_HOST`.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("docker.sock")
    }

    /// The Docker client, speaking to this engine.
    pub fn docker(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new("docker");
        command
            .env("DOCKER_HOST", format!("unix://{}", self.socket().display()))
            .env("DOCKER_BUILDKIT", "0")
            .args(args);
        command
    }

    fn build_image(&self) -> Result<(), String> {
        let root = self.folder.path().join("root");
        let libraries = "lib/x86_64-linux-gnu";
        for dir in ["bin", libraries, "lib64", "tmp", "etc"] {
            std::fs::create_dir_all(root.join(dir)).map_err(|error| format!("{dir}: {error}"))?;
        }
        let copy = |from: &Path, to: &str| {
            std::fs::copy(from, root.join(to))
                .map_err(|error| format!("{}: {error}", from.display()))
        };
        copy(&binary::path(), "bin/ncclctl")?;
        copy(Path::new("/bin/sleep"), "bin/sleep")?;
        copy(Path::new("/lib64/ld-linux-x86-64.so.2"), "lib64/ld-linux-x86-64.so.2")?;
        for library in [
            "libc.so.6",
            "libm.so.6",
            "libdl.so.2",
            "libpthread.so.0",
            "librt.so.1",
            "libgcc_s.so.1",
        ] {
            let from = Path::new("/").join(libraries).join(library);
            if from.exists() {
                copy(&from, &format!("{libraries}/{library}"))?;
            }
        }
        let tar = Command::new("tar")
            .arg("-C")
            .arg(&root)
            .args(["-c", "."])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("tar: {error}"))?;
        let stream = tar.stdout.ok_or("tar has no output")?;
        let import = self
            .docker(["import", "--change", "ENTRYPOINT [\"/bin/ncclctl\"]", "-", IMAGE])
            .stdin(stream)
            .output()
            .map_err(|error| format!("docker import: {error}"))?;
        if import.status.success() {
            Ok(())
        } else {
            Err(format!("docker import: {}", String::from_utf8_lossy(&import.stderr)))
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let ids = self.docker(["ps", "-aq"]).output().map(|out| out.stdout).unwrap_or_default();
        for id in String::from_utf8_lossy(&ids).split_whitespace() {
            let _ = self.docker(["rm", "-f", id]).output();
        }
        // nsenter has become dockerd by exec, so the child is the daemon; asked kindly first, so that it unmounts what it mounted
        binary::signal_process(self.daemon.id(), 15);
        let asked = Instant::now();
        while self.daemon.try_wait().is_ok_and(|status| status.is_none()) {
            if asked.elapsed() > Duration::from_secs(10) {
                let _ = self.daemon.kill();
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
        let ours = self.folder.path().to_string_lossy().into_owned();
        for mount in mounts
            .lines()
            .filter_map(|line| line.split(' ').nth(1))
            .filter(|m| m.starts_with(&ours))
        {
            let _ = Command::new("umount").args(["-l", mount]).output();
        }
    }
}
