//! What no file tells: answers of system calls and libraries. A capture keeps them in one file, so
//! that everything else is a function of files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::Missing;
use crate::gpu::Driver;
use crate::net::{self, Interface};
use crate::root::Root;

/// Where a capture keeps the answers.
pub const FILE: &str = "/.ncclctl/live.json";

/// The answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Live {
    /// Host name.
    pub hostname: String,
    /// Kernel release.
    pub kernel: String,
    /// Machine, like `x86_64`.
    pub machine: String,
    /// Effective user id.
    pub user: u32,
    /// Interfaces by netlink.
    pub interfaces: Vec<Interface>,
    /// Size of /dev/shm, bytes, and whether it is a file system of its own.
    pub shm: Option<(u64, bool)>,
    /// Device files: what opening them for reading and writing said (`ok`, or the error).
    pub opened: BTreeMap<String, String>,
    /// What asking for the memory policy said (`ok`, or the error).
    pub mempolicy: Option<String>,
    /// Processors in the affinity mask.
    pub cpus: u32,
    /// GPUs and driver by NVML.
    pub nvml: Option<Driver>,
    /// Variables that decide what NCCL and its loader do, secrets replaced.
    pub environment: BTreeMap<String, String>,
    /// What could not be had, and why.
    pub missing: Vec<Missing>,
}

impl Live {
    /// Asks the running machine, or reads what a capture kept.
    pub fn of(root: &Root) -> Self {
        if root.is_live() {
            return ask(root);
        }
        match root.read(FILE) {
            Ok(text) => serde_json::from_str(&text).unwrap_or_else(|error| Self {
                missing: vec![Missing::new(FILE, format!("not readable: {error}"))],
                ..Self::default()
            }),
            Err(_) => Self {
                missing: vec![Missing::new(FILE, "not in this capture: no addresses, no NVML")],
                ..Self::default()
            },
        }
    }
}

fn ask(root: &Root) -> Live {
    let mut live = Live::default();
    let uname = rustix::system::uname();
    live.hostname = uname.nodename().to_string_lossy().into_owned();
    live.kernel = uname.release().to_string_lossy().into_owned();
    live.machine = uname.machine().to_string_lossy().into_owned();
    live.user = rustix::process::geteuid().as_raw();
    match net::interfaces(root) {
        Ok(interfaces) => live.interfaces = interfaces,
        Err(error) => live.missing.push(Missing::new("netlink", error.to_string())),
    }
    live.shm = shm(root);
    live.mempolicy = Some(crate::mempolicy::ask());
    live.cpus = rustix::thread::sched_getaffinity(None).map_or(0, |set| set.count());
    for folder in ["/dev/infiniband", "/dev/nvidia-caps-imex-channels"] {
        for name in root.list(folder) {
            let path = format!("{folder}/{name}");
            let said = open(&path);
            live.opened.insert(path, said);
        }
    }
    for name in root.list("/dev").into_iter().filter(|n| n.starts_with("nvidia")) {
        let path = format!("/dev/{name}");
        if !matches!(name.as_str(), "nvidia-caps" | "nvidia-caps-imex-channels") {
            let said = open(&path);
            live.opened.insert(path, said);
        }
    }
    match crate::gpu::nvml() {
        Ok(driver) => live.nvml = Some(driver),
        Err(why) => live.missing.push(Missing::new("NVML", why)),
    }
    live.environment = crate::environment::relevant(root.environment());
    live
}

/// Whether this user may use a device: decided by opening it, since a device cgroup, a mode or a
/// security module may each refuse.
fn open(path: &str) -> String {
    use rustix::fs::{Mode, OFlags};
    match rustix::fs::open(path, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
        Ok(_) => "ok".to_owned(),
        Err(error) => std::io::Error::from(error).to_string(),
    }
}

fn shm(root: &Root) -> Option<(u64, bool)> {
    let stat = rustix::fs::statvfs("/dev/shm").ok()?;
    let mounts = root.read("/proc/self/mountinfo").unwrap_or_default();
    let own = mounts.lines().any(|line| line.split(' ').nth(4) == Some("/dev/shm"));
    Some((stat.f_blocks.saturating_mul(stat.f_frsize), own))
}
