//! The container: what made it, what it may do, and what limits it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::{Facts, Missing};
use crate::live::Live;
use crate::root::Root;

/// Value of a limit that is none.
pub const UNLIMITED: u64 = u64::MAX;

/// The container, or the bare host, that this process is in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Container {
    /// `docker`, `containerd`, `cri-o`, `podman`, `singularity`, `lxc`, or `unknown` for one that
    /// leaves no mark; `None` on a bare host.
    pub runtime: Option<String>,
    /// What told it.
    pub runtime_source: String,
    /// In a Kubernetes pod.
    pub kubernetes: bool,
    /// Effective user id.
    pub user: u32,
    /// Capabilities in force that decide something here, without `CAP_`.
    pub capabilities: Vec<String>,
    /// Privileges can not grow.
    pub no_new_privileges: Option<bool>,
    /// `off`, `strict`, `filter`.
    pub seccomp: Option<String>,
    /// Memory that may be locked, bytes; the largest number is unlimited.
    pub memlock: Option<u64>,
    /// Open files.
    pub open_files: Option<u64>,
    /// Stack, bytes.
    pub stack: Option<u64>,
    /// Size of /dev/shm, bytes.
    pub shm: Option<u64>,
    /// /dev/shm is a file system of its own.
    pub shm_mounted: Option<bool>,
    /// 1, 2, or 0 where there is no control group.
    pub cgroup: u32,
    /// Processors allowed by quota.
    pub cpu_quota: Option<f64>,
    /// Processors of the cpuset, as a list.
    pub cpuset: Option<String>,
    /// Memory limit, bytes.
    pub memory_limit: Option<u64>,
    /// Namespaces shared with the host, where that can be told.
    pub host: HostNamespaces,
    /// /sys can not be written.
    pub sys_read_only: Option<bool>,
    /// Free 2 MiB pages.
    pub huge_pages: Option<u64>,
    /// Memory may be asked of a chosen NUMA node; refused, NCCL's host buffers may be far from the GPU.
    pub memory_policy: Option<bool>,
    /// Device files and what opening them said.
    pub devices: std::collections::BTreeMap<String, String>,
}

/// Which namespaces are the host's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostNamespaces {
    /// Network.
    pub net: Option<bool>,
    /// System V and POSIX message queues.
    pub ipc: Option<bool>,
    /// Process ids.
    pub pid: Option<bool>,
    /// Host name.
    pub uts: Option<bool>,
}

/// Capabilities that decide something for NCCL: name and bit (`linux/capability.h`).
const CAPABILITIES: [(&str, u32); 6] = [
    ("NET_ADMIN", 12),
    ("NET_RAW", 13),
    ("IPC_LOCK", 14),
    ("SYS_ADMIN", 21),
    ("SYS_NICE", 23),
    ("SYS_RESOURCE", 24),
];

/// Inodes of the first namespaces, fixed in the kernel (`include/linux/proc_ns.h`).
const FIRST: [(&str, u64); 3] = [("ipc", 0xEFFF_FFFF), ("uts", 0xEFFF_FFFE), ("pid", 0xEFFF_FFFC)];

/// Inodes that the first network namespace has: fixed since 6.18, before it the first that was given
/// out at boot, which these kernels' boots give to it.
const FIRST_NET: [u64; 5] =
    [0xEFFF_FFF9, 4_026_531_840, 4_026_531_956, 4_026_531_992, 4_026_531_969];

/// Fills the container part.
pub(crate) fn collect(root: &Root, live: &Live, facts: &mut Facts) {
    let environment = &live.environment;
    let cgroup = root.read("/proc/self/cgroup").unwrap_or_default();
    let mounts = root.read("/proc/self/mountinfo").unwrap_or_default();
    let status = root.read("/proc/self/status").unwrap_or_default();
    let limits = root.read("/proc/self/limits").unwrap_or_default();
    let mut c = Container { user: live.user, devices: live.opened.clone(), ..Container::default() };
    c.kubernetes = environment.contains_key("KUBERNETES_SERVICE_HOST")
        || root.exists("/var/run/secrets/kubernetes.io")
        || cgroup.contains("kubepods")
        || mounts.contains("/kubelet/pods/");
    (c.runtime, c.runtime_source) = runtime(root, &cgroup, &mounts, c.kubernetes);
    if let Some(mask) = field(&status, "CapEff:").and_then(|m| u64::from_str_radix(m, 16).ok()) {
        c.capabilities = CAPABILITIES
            .iter()
            .filter(|(_, bit)| mask >> bit & 1 == 1)
            .map(|(name, _)| (*name).to_owned())
            .collect();
    }
    c.no_new_privileges = field(&status, "NoNewPrivs:").map(|v| v == "1");
    c.seccomp = field(&status, "Seccomp:").map(|v| {
        match v {
            "0" => "off",
            "1" => "strict",
            _ => "filter",
        }
        .to_owned()
    });
    c.memlock = limit(&limits, "Max locked memory");
    c.open_files = limit(&limits, "Max open files");
    c.stack = limit(&limits, "Max stack size");
    if let Some((bytes, mounted)) = live.shm {
        c.shm = Some(bytes);
        c.shm_mounted = Some(mounted);
    }
    c.memory_policy = live.mempolicy.as_ref().map(|said| said == "ok");
    groups(root, &cgroup, &mut c, &mut facts.missing);
    for (name, first) in FIRST {
        let shared = namespace(root, name).map(|inode| inode == first);
        match name {
            "ipc" => c.host.ipc = shared,
            "uts" => c.host.uts = shared,
            _ => c.host.pid = shared,
        }
    }
    c.host.net = match namespace(root, "net") {
        Some(inode) if FIRST_NET.contains(&inode) => Some(true),
        Some(_) if c.runtime.is_some() => Some(false),
        _ => None,
    };
    c.sys_read_only = mounts
        .lines()
        .filter_map(|l| {
            let f: Vec<&str> = l.split(' ').collect();
            (*f.get(4)? == "/sys").then(|| f.get(5).map(|o| o.split(',').any(|o| o == "ro")))?
        })
        .next_back();
    c.huge_pages = root.number("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    facts.container = c;
}

fn runtime(root: &Root, cgroup: &str, mounts: &str, pod: bool) -> (Option<String>, String) {
    let found = |name: &str, source: &str| (Some(name.to_owned()), source.to_owned());
    let first = mounts.lines().find(|l| l.split(' ').nth(4) == Some("/")).unwrap_or_default();
    // the upper folder of the root mount names the engine's own store
    for (mark, name) in [
        ("/var/lib/docker/", "docker"),
        ("containerd/", "containerd"),
        ("/var/lib/containers/", "podman"),
        ("/containers/storage/", "podman"),
    ] {
        if first.contains(mark) {
            let name = if name == "podman" && pod { "cri-o" } else { name };
            return found(name, "/proc/self/mountinfo");
        }
    }
    for (mark, name) in [
        ("crio-", "cri-o"),
        ("cri-containerd", "containerd"),
        ("libpod", "podman"),
        ("docker", "docker"),
        ("lxc", "lxc"),
    ] {
        if cgroup.contains(mark) {
            return found(name, "/proc/self/cgroup");
        }
    }
    // a machine that was made from an image has the file too: its root is a disk, and its processes
    // are the first ones
    let disk =
        first.contains(" - ext4 ") || first.contains(" - xfs ") || first.contains(" - btrfs ");
    let first_processes = namespace(root, "pid") == Some(FIRST[2].1);
    if root.exists("/.dockerenv") && !(disk && first_processes) {
        return found("docker", "/.dockerenv");
    }
    if root.exists("/run/.containerenv") {
        return found("podman", "/run/.containerenv");
    }
    if root.exists("/.singularity.d") {
        return found("singularity", "/.singularity.d");
    }
    if pod {
        return found("unknown", "Kubernetes, no mark of the runtime");
    }
    let overlay = first.contains(" - overlay ");
    if overlay { found("unknown", "an overlay as root") } else { (None, String::new()) }
}

fn field<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    status.lines().find_map(|l| l.strip_prefix(key)).map(str::trim)
}

/// The soft limit of a line of /proc/self/limits.
pub(crate) fn limit(limits: &str, key: &str) -> Option<u64> {
    let rest = limits.lines().find_map(|l| l.strip_prefix(key))?;
    match rest.split_whitespace().next()? {
        "unlimited" => Some(UNLIMITED),
        number => number.parse().ok(),
    }
}

fn namespace(root: &Root, name: &str) -> Option<u64> {
    let link = root.link(&format!("/proc/self/ns/{name}"))?;
    link.to_str()?.strip_prefix(name)?.strip_prefix(":[")?.strip_suffix(']')?.parse().ok()
}

/// Control groups: version 2's one path, or version 1's path of each controller. In a container the
/// path may be the host's, of which only the end is mounted: then the mount's own root is it.
fn groups(root: &Root, text: &str, c: &mut Container, missing: &mut Vec<Missing>) {
    let path_of = |controller: &str| {
        text.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            controllers.split(',').any(|c| c == controller).then(|| path.to_owned())
        })
    };
    if root.exists("/sys/fs/cgroup/cgroup.controllers")
        || path_of("").is_some() && path_of("cpu").is_none()
    {
        c.cgroup = 2;
        let own = path_of("").unwrap_or_default();
        let file = |name: &str| up(root, "/sys/fs/cgroup", &own, name);
        c.cpu_quota = file("cpu.max").and_then(|t| {
            let (quota, period) = t.split_once(' ')?;
            Some(quota.parse::<f64>().ok()? / period.trim().parse::<f64>().ok()?)
        });
        c.memory_limit = file("memory.max").and_then(|t| t.parse().ok());
        c.cpuset = file("cpuset.cpus.effective");
        missing.push(Missing::new(
            "device rules",
            "cgroup v2 keeps them in a program that can not be read: devices are tried by opening",
        ));
        return;
    }
    if let Some(own) = path_of("memory") {
        c.cgroup = 1;
        let limit: Option<u64> = up(root, "/sys/fs/cgroup/memory", &own, "memory.limit_in_bytes")
            .and_then(|t| t.parse().ok());
        // no limit is the largest number of pages
        c.memory_limit = limit.filter(|l| *l < 1 << 60);
    }
    if let Some(own) = path_of("cpu") {
        c.cgroup = 1;
        let number = |name: &str| {
            up(root, "/sys/fs/cgroup/cpu", &own, name).and_then(|t| t.parse::<f64>().ok())
        };
        c.cpu_quota = match (number("cpu.cfs_quota_us"), number("cpu.cfs_period_us")) {
            (Some(quota), Some(period)) if quota > 0.0 && period > 0.0 => Some(quota / period),
            _ => None,
        };
    }
    if let Some(own) = path_of("cpuset") {
        c.cpuset = up(root, "/sys/fs/cgroup/cpuset", &own, "cpuset.cpus");
    }
}

/// A control file of a group: at its own path, or at the mount where only that is shown.
pub(crate) fn up(root: &Root, mount: &str, own: &str, name: &str) -> Option<String> {
    let own = own.trim_end_matches('/');
    root.line(&format!("{mount}{own}/{name}")).or_else(|| root.line(&format!("{mount}/{name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_from_the_kernels_table() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max locked memory         8388608              8388608              bytes     \n\
                    Max open files            1024                 1048576              files     \n\
                    Max stack size            unlimited            unlimited            bytes     \n";
        assert_eq!(limit(text, "Max locked memory"), Some(8_388_608));
        assert_eq!(limit(text, "Max stack size"), Some(UNLIMITED));
        assert_eq!(limit(text, "Max realtime priority"), None);
    }
}
