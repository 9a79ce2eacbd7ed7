//! Processors that this container may use, and how busy they are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::container::up;
use crate::root::Root;

/// Clock ticks a second in /proc; 100 on every Linux that NCCL runs on (USER_HZ).
const TICKS: f64 = 100.0;

/// Processor time used so far, seconds, and what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// Busy time of all processors of the machine.
    pub busy: f64,
    /// Part of it in which the hypervisor ran something else; 0 on bare metal.
    #[serde(default)]
    pub stolen: f64,
    /// Processors of the machine.
    pub machine: f64,
    /// Time used by the processes asked for.
    pub own: f64,
    /// Time that the cgroup's quota held this container back.
    pub throttled: f64,
}

/// Processors that this process may use: the affinity mask or the cgroup's quota, whichever is less.
pub fn available(root: &Root) -> f64 {
    let affinity = if root.is_live() {
        rustix::thread::sched_getaffinity(None).map_or(0.0, |set| f64::from(set.count()))
    } else {
        root.line("/sys/devices/system/cpu/online").map_or(0.0, |list| count(&list))
    };
    match quota(root) {
        Some(quota) if affinity <= 0.0 || quota < affinity => quota,
        _ => affinity,
    }
}

/// Processors in a list such as `0-3,8`.
fn count(list: &str) -> f64 {
    list.split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(last.trim().parse::<f64>().ok()? - first.trim().parse::<f64>().ok()? + 1.0)
        })
        .sum()
}

/// Processors that the cgroup's quota allows, version 2 or 1; `None` without a quota.
fn quota(root: &Root) -> Option<f64> {
    let groups = root.read("/proc/self/cgroup").unwrap_or_default();
    let own = |controller: &str| {
        let line = groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let controllers = fields.next()?;
            controllers.split(',').any(|c| c == controller).then(|| fields.next())?
        });
        line.unwrap_or_default().to_owned()
    };
    let v2 = up(root, "/sys/fs/cgroup", &own(""), "cpu.max").and_then(|text| {
        let (quota, period) = text.split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.trim().parse::<f64>().ok()?)
    });
    v2.or_else(|| {
        let number =
            |name: &str| up(root, "/sys/fs/cgroup/cpu", &own("cpu"), name)?.parse::<f64>().ok();
        let quota = number("cpu.cfs_quota_us")?;
        let period = number("cpu.cfs_period_us")?;
        (quota > 0.0 && period > 0.0).then_some(quota / period)
    })
}

impl Snapshot {
    /// Reads the counters; `pids` are the processes whose own time is wanted.
    pub fn take(root: &Root, pids: &[u32]) -> Self {
        let stat = root.read("/proc/stat").unwrap_or_default();
        let mut snapshot = Self::default();
        for line in stat.lines().filter(|line| line.starts_with("cpu")) {
            let mut fields = line.split_whitespace();
            if fields.next() != Some("cpu") {
                snapshot.machine += 1.0;
                continue;
            }
            // user nice system idle iowait irq softirq steal: all but idle and iowait is busy
            let ticks: Vec<f64> = fields.filter_map(|f| f.parse().ok()).take(8).collect();
            let idle: f64 = ticks.iter().skip(3).take(2).sum();
            snapshot.busy = (ticks.iter().sum::<f64>() - idle) / TICKS;
            snapshot.stolen = ticks.get(7).copied().unwrap_or(0.0) / TICKS;
        }
        snapshot.own = pids.iter().filter_map(|pid| process(root, *pid)).sum();
        snapshot.throttled = throttled(root).unwrap_or(0.0);
        snapshot
    }
}

/// User and system time of a process, seconds.
fn process(root: &Root, pid: u32) -> Option<f64> {
    let stat = root.read(&format!("/proc/{pid}/stat")).ok()?;
    // the name in parentheses may hold anything: fields are counted from the last one
    let rest = &stat[stat.rfind(')')? + 1..];
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let user: f64 = fields.get(11)?.parse().ok()?;
    let system: f64 = fields.get(12)?.parse().ok()?;
    Some((user + system) / TICKS)
}

fn throttled(root: &Root) -> Option<f64> {
    let find = |path: &str, name: &str, unit: f64| {
        root.read(path).ok()?.lines().find_map(|line| {
            let (key, value) = line.split_once(' ')?;
            (key == name).then(|| value.trim().parse::<f64>().ok())?.map(|v| v / unit)
        })
    };
    find("/sys/fs/cgroup/cpu.stat", "throttled_usec", 1e6)
        .or_else(|| find("/sys/fs/cgroup/cpu/cpu.stat", "throttled_time", 1e9))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::captured(folder.path(), BTreeMap::new());
        (folder, root)
    }

    #[test]
    fn the_lesser_of_mask_and_quota() {
        let (_f, root) = tree(&[
            ("sys/devices/system/cpu/online", "0-3,8\n"),
            ("sys/fs/cgroup/cpu.max", "150000 100000\n"),
        ]);
        assert!((available(&root) - 1.5).abs() < 1e-9);
        let (_f, root) = tree(&[
            ("sys/devices/system/cpu/online", "0-3,8\n"),
            ("sys/fs/cgroup/cpu.max", "max 100000\n"),
        ]);
        assert!((available(&root) - 5.0).abs() < 1e-9);
        let (_f, root) = tree(&[
            ("sys/devices/system/cpu/online", "0-63\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        assert!((available(&root) - 64.0).abs() < 1e-9);
    }

    #[test]
    fn busy_time_is_all_but_idle_and_waiting() {
        let (_f, root) = tree(&[
            ("proc/stat", "cpu  100 0 20 1000 500 0 50 30 0 0\ncpu0 1 2\ncpu1 1 2\nintr 1\n"),
            ("proc/7/stat", "7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 250 50 0 0 20 0 1 0 1\n"),
        ]);
        let snapshot = Snapshot::take(&root, &[7, 8]);
        assert!((snapshot.busy - 2.0).abs() < 1e-9);
        assert!((snapshot.stolen - 0.3).abs() < 1e-9);
        assert!((snapshot.machine - 2.0).abs() < 1e-9);
        assert!((snapshot.own - 3.0).abs() < 1e-9);
    }
}
