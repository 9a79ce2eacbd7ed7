//! Who this host is to NCCL and to others.

use std::collections::BTreeMap;

use crate::root::Root;

/// Host name.
pub fn hostname(root: &Root) -> String {
    if root.is_live() {
        return rustix::system::uname().nodename().to_string_lossy().into_owned();
    }
    root.line("/proc/sys/kernel/hostname").unwrap_or_else(|| "unknown".to_owned())
}

/// Kernel's boot id; empty where it can not be read.
pub fn boot_id(root: &Root) -> String {
    root.line("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Inode of the network namespace; 0 where it can not be read.
pub fn network_namespace(root: &Root) -> u64 {
    let link = root.link("/proc/self/ns/net");
    link.as_ref()
        .and_then(|target| target.to_str())
        .and_then(|text| text.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok())
        .unwrap_or(0)
}

/// NCCL settings in the environment, secrets replaced.
pub fn nccl_environment(root: &Root) -> BTreeMap<String, String> {
    root.environment()
        .iter()
        .filter(|(name, _)| name.starts_with("NCCL_"))
        .map(|(name, value)| (name.clone(), crate::environment::shown(name, value)))
        .collect()
}
