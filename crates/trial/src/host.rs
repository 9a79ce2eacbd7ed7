//! What a worker tells of the host that it is on.

use std::sync::OnceLock;
use std::time::Instant;

use ncclctl_facts::{Root, counters, cpu, identity, memory, net};
use ncclctl_findings::evidence::Host;

use crate::counters::HostCounters;

fn root() -> &'static Root {
    static ROOT: OnceLock<Root> = OnceLock::new();
    ROOT.get_or_init(Root::live)
}

/// Describes this host, once in a process: local ranks have a worker each.
pub(crate) fn describe() -> Host {
    static HOST: OnceLock<Host> = OnceLock::new();
    HOST.get_or_init(|| read(root())).clone()
}

fn read(root: &Root) -> Host {
    Host {
        name: identity::hostname(root),
        boot_id: identity::boot_id(root),
        netns: identity::network_namespace(root),
        interfaces: net::interfaces(root).unwrap_or_default(),
        cpus: cpu::available(root),
        memory: memory::available(root),
        port_range: port_range(root),
        environment: identity::nccl_environment(root),
    }
}

/// Ports that the kernel gives to sockets that ask for none.
fn port_range(root: &Root) -> Option<(u16, u16)> {
    let text = root.line("/proc/sys/net/ipv4/ip_local_port_range")?;
    let (low, high) = text.split_once(char::is_whitespace)?;
    Some((low.parse().ok()?, high.trim().parse().ok()?))
}

/// This process's own environment, UTF-8 values only.
pub(crate) fn environment() -> &'static std::collections::BTreeMap<String, String> {
    root().environment()
}

/// Reads the counters now; `ranks` are the processes whose processor time is wanted.
pub(crate) fn count(ranks: &[u32]) -> HostCounters {
    static STARTED: OnceLock<Instant> = OnceLock::new();
    let started = STARTED.get_or_init(Instant::now);
    HostCounters {
        at: started.elapsed().as_secs_f64(),
        network: counters::Snapshot::take(root()),
        processors: cpu::Snapshot::take(root(), ranks),
    }
}

/// State of a process in words, where it explains silence.
pub(crate) fn process_state(pid: u32) -> Option<&'static str> {
    let stat = root().read(&format!("/proc/{pid}/stat")).ok()?;
    match stat[stat.rfind(')')? + 1..].trim_start().chars().next()? {
        'T' | 't' => Some("stopped"),
        'D' => Some("in uninterruptible sleep (a device or file system does not answer)"),
        'Z' => Some("dead"),
        'R' => Some("running (starved of processor time, or a busy loop)"),
        _ => None,
    }
}

/// How many processes the kernel has killed for want of memory: in this container, on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OomKills {
    container: Option<u64>,
    machine: Option<u64>,
}

impl OomKills {
    /// Counts as of now.
    pub(crate) fn now() -> Self {
        Self::read(root())
    }

    fn read(root: &Root) -> Self {
        let count = |path: &str| {
            let text = root.read(path).ok()?;
            text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
        };
        let membership = root.read("/proc/self/cgroup").unwrap_or_default();
        let container = membership.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let path = path.trim_end_matches('/');
            match controllers {
                "" => count(&format!("/sys/fs/cgroup{path}/memory.events")),
                _ if controllers.split(',').any(|c| c == "memory") => {
                    count(&format!("/sys/fs/cgroup/memory{path}/memory.oom_control"))
                }
                _ => None,
            }
        });
        // in a container whose cgroup namespace is not its own the path above is the host's
        let container = container
            .or_else(|| count("/sys/fs/cgroup/memory.events"))
            .or_else(|| count("/sys/fs/cgroup/memory/memory.oom_control"));
        Self { container, machine: count("/proc/vmstat") }
    }

    /// What a death by signal 9 since then means.
    pub(crate) fn explain_since(self, before: Self) -> &'static str {
        let more = |now: Option<u64>, then: Option<u64>| now > then && then.is_some();
        if more(self.container, before.container) {
            "out of memory: the container's memory limit was reached"
        } else if more(self.machine, before.machine) {
            "out of memory: the machine had none left"
        } else if self == Self::default() {
            "killed"
        } else {
            "killed by somebody, not for want of memory"
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> OomKills {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        OomKills::read(&Root::captured(folder.path(), BTreeMap::new()))
    }

    #[test]
    fn who_took_the_memory() {
        let v2 = |kills: u32, machine: u32| {
            tree(&[
                ("proc/self/cgroup", "0::/kube/pod1\n"),
                (
                    "sys/fs/cgroup/kube/pod1/memory.events",
                    &format!("low 0\noom 1\noom_kill {kills}\n"),
                ),
                ("proc/vmstat", &format!("nr_free_pages 1\noom_kill {machine}\n")),
            ])
        };
        insta::assert_snapshot!(v2(1, 4).explain_since(v2(0, 3)), @"out of memory: the container's memory limit was reached");
        insta::assert_snapshot!(v2(0, 4).explain_since(v2(0, 3)), @"out of memory: the machine had none left");
        insta::assert_snapshot!(v2(2, 3).explain_since(v2(2, 3)), @"killed by somebody, not for want of memory");
        let v1 = |kills: u32| {
            tree(&[
                ("proc/self/cgroup", "5:memory,x:/docker/a\n0::/\n"),
                (
                    "sys/fs/cgroup/memory/memory.oom_control",
                    &format!("under_oom 0\noom_kill {kills}\n"),
                ),
            ])
        };
        assert!(v1(1).explain_since(v1(0)).contains("container"));
    }
}
