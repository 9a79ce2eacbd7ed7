//! `env`, `ulimit`, `df`, `systemd-detect-virt`, `lsmod`, `ls`, Python's word for the NCCL version.

use super::Node;
use crate::software::{Library, Plugin};

/// `NAME=VALUE`, as `env` and `export` lines write it.
pub(super) fn variable(node: &mut Node, line: &str) -> bool {
    let text = line.trim().trim_start_matches("export ").trim_start_matches("- ");
    let Some((name, value)) = text.split_once('=') else { return false };
    let is_name = !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if !is_name {
        return false;
    }
    let value = value.trim_matches('"');
    let shown = crate::environment::shown(name, value);
    node.facts.environment.insert(name.to_owned(), shown);
    true
}

/// `ulimit -l`, `df -h /dev/shm`, the table of /proc/self/limits.
pub(super) fn limits(node: &mut Node, line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    if node.command.contains("ulimit") && node.command.contains("-l") && words.len() == 1 {
        let memlock = match words[0] {
            "unlimited" => Some(u64::MAX),
            // the shell counts in KiB
            number => number.parse::<u64>().ok().map(|k| k.saturating_mul(1024)),
        };
        node.facts.container.memlock = memlock;
        return memlock.is_some();
    }
    if let Some(rest) = line.strip_prefix("Max locked memory") {
        let soft = rest.split_whitespace().next().unwrap_or_default();
        node.facts.container.memlock =
            if soft == "unlimited" { Some(u64::MAX) } else { soft.parse().ok() };
        return true;
    }
    if words.last() == Some(&"/dev/shm") && words.len() >= 5 {
        node.facts.container.shm = size(words[1]);
        return node.facts.container.shm.is_some();
    }
    false
}

/// `64M`, `8.0G`, or 1 KiB blocks.
fn size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: f64 = digits.parse().ok()?;
    let unit = match text[digits.len()..].chars().next().map(|c| c.to_ascii_uppercase()) {
        None | Some('K') => 1024.0,
        Some('M') => 1024.0 * 1024.0,
        Some('G') => 1024.0 * 1024.0 * 1024.0,
        Some('T') => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some((number * unit) as u64)
}

/// The one word of `systemd-detect-virt`.
pub(super) fn virtual_machine(node: &mut Node, line: &str) -> bool {
    if !node.command.contains("detect-virt") || line.trim().is_empty() {
        return false;
    }
    let word = line.trim();
    if word != "none" {
        node.facts.platform.hypervisor = Some(word.to_owned());
    }
    true
}

/// `lsmod`, and Linux's command line.
pub(super) fn modules(node: &mut Node, line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    if matches!(first, "nvidia_peermem" | "nv_peer_mem") && node.command.contains("lsmod") {
        node.facts.gpudirect.peermem = true;
        return true;
    }
    if line.contains("BOOT_IMAGE=") {
        let on = ["intel_iommu=on", "amd_iommu=on"].iter().any(|w| line.contains(w));
        let through = line.contains("iommu=pt");
        if on || through {
            node.facts.gpudirect.iommu = Some(!through);
        }
        return true;
    }
    false
}

/// `(2, 13, 4)` of torch, `libnccl.so.2.21.5`.
pub(super) fn nccl_version(node: &mut Node, line: &str) -> bool {
    let text = line.trim();
    let version = if node.command.contains("nccl.version") {
        Some(text.trim_matches(['(', ')']).replace(", ", "."))
    } else {
        let name = text.split_whitespace().last().unwrap_or_default();
        name.rsplit('/').next().and_then(|n| n.strip_prefix("libnccl.so.")).map(str::to_owned)
    };
    let Some(version) = version.filter(|v| v.contains('.')) else { return false };
    let known = version.chars().all(|c| c.is_ascii_digit() || c == '.');
    if known {
        node.facts.software.nccl.push(Library {
            path: "libnccl.so.2".to_owned(),
            version: Some(version),
            loaded_by: "as pasted".to_owned(),
            ..Library::default()
        });
    }
    known
}

/// `ls` of a folder of devices or of plug-ins.
pub(super) fn listing(node: &mut Node, line: &str) -> bool {
    let command = node.command.clone();
    let mut words = command.split_whitespace();
    if words.next() != Some("ls") {
        return false;
    }
    let folder = words.find(|w| w.starts_with('/')).unwrap_or_default().trim_end_matches('/');
    let absent = line.contains("No such file") || line.contains("cannot access");
    match folder {
        "/sys/class/infiniband" if !absent => {
            for name in line.split_whitespace() {
                node.device(name);
            }
            true
        }
        "/dev/infiniband" => {
            let state = if absent { "not there in this container" } else { "ok" };
            for device in &mut node.facts.rdma {
                device.opened = Some(state.to_owned());
            }
            let nodes = if absent { "" } else { line };
            for name in nodes.split_whitespace() {
                node.facts.container.devices.insert(format!("{folder}/{name}"), "ok".to_owned());
            }
            true
        }
        _ if line.contains("libnccl-") => {
            let path = node.facts.environment.get("LD_LIBRARY_PATH").cloned();
            for name in line.split_whitespace().filter(|n| n.starts_with("libnccl-")) {
                let kind = ["net", "tuner", "profiler", "env"]
                    .into_iter()
                    .find(|k| name.contains(k))
                    .unwrap_or("net");
                node.facts.software.plugins.push(Plugin {
                    kind: kind.to_owned(),
                    path: format!("{folder}/{name}"),
                    found_by_loader: path
                        .as_ref()
                        .is_none_or(|p| p.split(':').any(|f| f.trim_end_matches('/') == folder)),
                });
            }
            true
        }
        _ => false,
    }
}
