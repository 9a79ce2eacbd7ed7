//! Memory that this container may still take.

use crate::root::Root;

/// Bytes: what the kernel calls available, or what is left of the cgroup's limit, whichever is less.
pub fn available(root: &Root) -> Option<u64> {
    let machine = root.read("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kibibytes.checked_mul(1024)
    });
    let left = |limit: &str, used: &str| {
        let limit: u64 = root.number(limit)?;
        Some(limit.saturating_sub(root.number(used)?))
    };
    // version 2 writes `max` where there is no limit, version 1 a number of exabytes
    let cgroup = left("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current").or_else(|| {
        left(
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        )
    });
    match (machine, cgroup) {
        (Some(machine), Some(cgroup)) => Some(machine.min(cgroup)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_lesser_of_machine_and_limit() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let root = Root::captured(folder.path(), BTreeMap::new());
        assert_eq!(available(&root), None);
        write("proc/meminfo", "MemTotal: 100 kB\nMemAvailable:   2048 kB\n");
        assert_eq!(available(&root), Some(2 << 20));
        write("sys/fs/cgroup/memory.max", "1048576\n");
        write("sys/fs/cgroup/memory.current", "4096\n");
        assert_eq!(available(&root), Some(1_044_480));
        write("sys/fs/cgroup/memory.max", "max\n");
        assert_eq!(available(&root), Some(2 << 20));
    }
}
