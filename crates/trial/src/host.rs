//! What a worker tells of the host that it is on.

use std::sync::OnceLock;
use std::time::Instant;

use ncclctl_facts::{Root, counters, cpu, identity, net};
use ncclctl_findings::evidence::Host;

use crate::counters::HostCounters;

fn root() -> &'static Root {
    static ROOT: OnceLock<Root> = OnceLock::new();
    ROOT.get_or_init(Root::live)
}

/// Describes this host.
pub(crate) fn describe() -> Host {
    let root = root();
    Host {
        name: identity::hostname(root),
        boot_id: identity::boot_id(root),
        netns: identity::network_namespace(root),
        interfaces: net::interfaces(root).unwrap_or_default(),
        cpus: cpu::available(root),
        environment: identity::nccl_environment(root),
    }
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

/// Whether the kernel says that this container's memory limit took processes.
pub(crate) fn oom_kill() -> Option<String> {
    let root = root();
    let text = root
        .read("/sys/fs/cgroup/memory.events")
        .or_else(|_| root.read("/sys/fs/cgroup/memory/memory.oom_control"))
        .ok()?;
    let kills: u64 =
        text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()?;
    (kills > 0).then(|| format!("; the container's memory limit has taken {kills} so far"))
}
