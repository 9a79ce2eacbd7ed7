//! GPUs and their driver: by NVML where it can be loaded, else by what the driver and the PCI tree
//! show in files.

mod fabric;
mod nvml;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::{Facts, Missing};
use crate::live::Live;
use crate::root::Root;

pub(crate) use nvml::driver as nvml;

/// The driver and what it shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Driver {
    /// Version, like `580.95.05`.
    pub version: Option<String>,
    /// Highest CUDA version that it supports, like `13.0`.
    pub cuda: Option<String>,
    /// Whether the open kernel modules are loaded.
    pub open_modules: Option<bool>,
    /// GPUs that this process may see.
    pub gpus: Vec<Gpu>,
    /// Pairs of GPUs whose peer access over NVLink or PCIe the driver reports as not possible.
    pub peers: Vec<Peers>,
    /// Confidential computing is on; NCCL then can not use peer access without encryption.
    pub confidential: Option<bool>,
    /// Where it comes from: `NVML`, `/proc/driver/nvidia`.
    pub source: String,
}

/// One GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Gpu {
    /// Index as NVML counts.
    pub index: u32,
    /// Model, like `NVIDIA H100 80GB HBM3`.
    pub model: String,
    /// UUID.
    pub uuid: Option<String>,
    /// PCI address, lower case, four digits of domain.
    pub pci: Option<String>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Compute capability, major times ten plus minor.
    pub compute: Option<u32>,
    /// NUMA node.
    pub numa: Option<u32>,
    /// Active NVLinks by peer.
    pub nvlinks: Vec<NvLinks>,
    /// The NVLink fabric that it belongs to, where there is one.
    pub fabric: Option<Fabric>,
    /// MIG mode is on; how many slices are visible.
    pub mig: Option<u32>,
    /// PCIe link now: generation and lanes.
    pub link: Option<(u32, u32)>,
    /// PCIe link at most: generation and lanes.
    pub link_most: Option<(u32, u32)>,
}

/// Active NVLinks from one GPU to one other end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NvLinks {
    /// PCI address of the other end; `None` where it is not told (a switch behind a hypervisor).
    pub to: Option<String>,
    /// What is there: `gpu`, `switch`, `cpu`, `unknown`.
    pub kind: String,
    /// How many links.
    pub count: u32,
    /// NVLink generation.
    pub version: Option<u32>,
    /// Speed of one link in each direction, megabytes per second.
    pub speed: Option<u64>,
}

/// The NVLink fabric of a GPU, as fabric manager or IMEX registered it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Fabric {
    /// `not started`, `in progress`, `completed`.
    pub state: String,
    /// NVML's return value of the registration; 0 is success.
    pub status: u32,
    /// Cluster's UUID; `None` where the fabric ends at this node.
    pub cluster: Option<String>,
    /// Clique: GPUs of one cluster and clique reach each other by NVLink.
    pub clique: u32,
    /// The fabric reports less bandwidth than it should have.
    pub degraded: bool,
}

impl Fabric {
    /// Whether NVLink reaches other nodes: NCCL asks the same (`src/mnnvl.cc`).
    pub fn reaches_nodes(&self) -> bool {
        self.state == "completed" && self.cluster.is_some()
    }
}

/// A pair of GPUs and what the driver says of their peer access.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Peers {
    /// Index of the first.
    pub a: u32,
    /// Index of the second.
    pub b: u32,
    /// Status of reads, like `ok`, `chipset not supported`, `disabled by registry key`.
    pub read: String,
    /// Status of writes.
    pub write: String,
}

impl Gpu {
    /// Active NVLinks in all.
    pub fn nvlink_count(&self) -> u32 {
        self.nvlinks.iter().map(|l| l.count).sum()
    }

    /// Whether its links end in a switch.
    pub fn behind_switch(&self) -> bool {
        self.nvlinks.iter().any(|l| l.kind == "switch")
    }
}

/// A PCI address as sysfs writes it: NVML and /proc use eight digits of domain or upper case.
pub fn pci_address(text: &str) -> String {
    let lower = text.trim().to_ascii_lowercase();
    match lower.split_once(':') {
        Some((domain, rest)) if rest.contains(':') && domain.len() > 4 => {
            format!("{}:{rest}", &domain[domain.len() - 4..])
        }
        Some((_, rest)) if rest.contains(':') => lower,
        Some(_) => format!("0000:{lower}"),
        None => lower,
    }
}

/// Fills the GPU part.
pub(crate) fn collect(root: &Root, live: &Live, facts: &mut Facts) {
    let mut driver = match &live.nvml {
        Some(driver) => driver.clone(),
        None => match by_files(root) {
            Some(driver) => driver,
            None => return,
        },
    };
    let version = root.read("/proc/driver/nvidia/version").unwrap_or_default();
    if !version.is_empty() {
        driver.open_modules = Some(version.contains("Open Kernel Module"));
        if driver.version.is_none() {
            driver.version = version_in(&version);
        }
    }
    for gpu in &mut driver.gpus {
        let Some(pci) = gpu.pci.as_deref() else { continue };
        if gpu.numa.is_none() {
            gpu.numa = root.number(&format!("/sys/bus/pci/devices/{pci}/numa_node"));
        }
    }
    if live.nvml.is_none() && !driver.gpus.is_empty() {
        let costs = "NVLink, MIG and peer access are unknown";
        match facts.missing.iter_mut().find(|m| m.source == "NVML") {
            Some(known) => known.why = format!("{}: {costs}", known.why),
            None => facts.missing.push(Missing::new("NVML", costs)),
        }
    }
    facts.gpu = Some(driver);
}

/// What the driver's own files and the PCI tree show.
fn by_files(root: &Root) -> Option<Driver> {
    let mut gpus: Vec<Gpu> = Vec::new();
    for (index, name) in root.list("/proc/driver/nvidia/gpus").into_iter().enumerate() {
        let text =
            root.read(&format!("/proc/driver/nvidia/gpus/{name}/information")).unwrap_or_default();
        let field = |key: &str| {
            text.lines()
                .find_map(|l| l.strip_prefix(key))
                .map(|v| v.trim_start_matches(':').trim().to_owned())
        };
        gpus.push(Gpu {
            index: u32::try_from(index).unwrap_or(u32::MAX),
            model: field("Model").unwrap_or_else(|| "NVIDIA GPU".to_owned()),
            uuid: field("GPU UUID"),
            pci: Some(pci_address(&field("Bus Location").unwrap_or(name))),
            ..Gpu::default()
        });
    }
    let source = if gpus.is_empty() { "/sys/bus/pci/devices" } else { "/proc/driver/nvidia/gpus" };
    if gpus.is_empty() {
        for name in root.list("/sys/bus/pci/devices") {
            let base = format!("/sys/bus/pci/devices/{name}");
            let nvidia = root.line(&format!("{base}/vendor")).as_deref() == Some("0x10de");
            let class = root.line(&format!("{base}/class")).unwrap_or_default();
            if nvidia && class.starts_with("0x03") {
                let device = root.line(&format!("{base}/device")).unwrap_or_default();
                gpus.push(Gpu {
                    index: u32::try_from(gpus.len()).unwrap_or(u32::MAX),
                    model: format!("NVIDIA device {device}"),
                    pci: Some(name),
                    ..Gpu::default()
                });
            }
        }
    }
    let version = root.read("/proc/driver/nvidia/version").ok();
    if gpus.is_empty() && version.is_none() {
        return None;
    }
    Some(Driver {
        version: version.as_deref().and_then(version_in),
        gpus,
        source: source.to_owned(),
        ..Driver::default()
    })
}

/// The driver's version in its version file.
fn version_in(text: &str) -> Option<String> {
    let first = text.lines().next()?;
    first
        .split_whitespace()
        .find(|word| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.'))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_sysfs_does() {
        assert_eq!(pci_address("00000000:3B:00.0"), "0000:3b:00.0");
        assert_eq!(pci_address("0000:3B:00.0"), "0000:3b:00.0");
        assert_eq!(pci_address("3B:00.0"), "0000:3b:00.0");
        assert_eq!(pci_address("00010000:01:00.0"), "0000:01:00.0");
    }

    #[test]
    fn both_kinds_of_driver_tell_their_version() {
        let old = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19\nGCC";
        assert_eq!(version_in(old).as_deref(), Some("535.129.03"));
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release";
        assert_eq!(version_in(open).as_deref(), Some("580.95.05"));
    }
}
