//! Who is near whom, in NCCL's own path types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::live::Live;
use crate::pci::{PciDevice, Role};
use crate::root::Root;

/// How far apart two devices are, nearest first (NCCL `src/graph/topo.h`, `PATH_*`).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Path {
    /// The device itself.
    #[serde(rename = "X")]
    Same,
    /// NVLink, with the number of links.
    #[serde(rename = "NV")]
    Nvlink(u32),
    /// Through one PCIe switch.
    #[serde(rename = "PIX")]
    Pix,
    /// Through several PCIe switches, without the processor.
    #[serde(rename = "PXB")]
    Pxb,
    /// Through the processor's own bridge.
    #[serde(rename = "PHB")]
    Phb,
    /// Through the link between NUMA nodes.
    #[serde(rename = "SYS")]
    Sys,
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Same => f.pad("X"),
            Self::Nvlink(count) => f.pad(&format!("NV{count}")),
            Self::Pix => f.pad("PIX"),
            Self::Pxb => f.pad("PXB"),
            Self::Phb => f.pad("PHB"),
            Self::Sys => f.pad("SYS"),
        }
    }
}

/// Paths between GPUs and NICs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Topology {
    /// Names of rows and columns: `GPU0`, `mlx5_0`, `eth0`.
    pub names: Vec<String>,
    /// Path from row to column.
    pub paths: Vec<Vec<Path>>,
    /// In a virtual machine, and all devices hang below a processor without a switch, as hypervisors
    /// show them: nothing tells near from far.
    pub flat: bool,
}

impl Topology {
    /// The path between two devices.
    pub fn path(&self, a: &str, b: &str) -> Option<Path> {
        let at = |name: &str| self.names.iter().position(|n| n == name);
        self.paths.get(at(a)?)?.get(at(b)?).copied()
    }

    /// The shortest path from a NIC to any GPU.
    pub fn to_gpu(&self, nic: &str) -> Option<Path> {
        let row = self.paths.get(self.names.iter().position(|n| n == nic)?)?;
        let gpus = self.names.iter().zip(row).filter(|(n, _)| n.starts_with("GPU"));
        gpus.map(|(_, p)| *p).min()
    }
}

/// Fills the topology part from the PCI tree.
pub(crate) fn collect(_: &Root, _: &Live, facts: &mut Facts) {
    let rank = |d: &PciDevice| match d.role {
        Role::Gpu => 0,
        Role::Hca => 1,
        Role::Nic => 2,
    };
    let mut devices: Vec<&PciDevice> = facts.pci.iter().collect();
    devices.sort_by_key(|d| rank(d));
    let paths =
        devices.iter().map(|a| devices.iter().map(|b| path(facts, a, b)).collect()).collect();
    let topology = Topology {
        names: devices.iter().filter_map(|d| d.names.first().cloned()).collect(),
        paths,
        // on bare metal a device straight below its root port is just that
        flat: facts.platform.hypervisor.is_some()
            && devices.len() > 1
            && devices.iter().any(|d| d.role == Role::Gpu)
            && devices.iter().any(|d| d.role != Role::Gpu)
            && devices.iter().all(|d| d.bridges.len() < 2 && !shares_switch(d, &devices)),
    };
    facts.topology = topology;
}

/// Whether another device hangs below the same bridge.
fn shares_switch(device: &PciDevice, all: &[&PciDevice]) -> bool {
    let Some(bridge) = device.bridges.first() else { return false };
    all.iter().any(|o| o.address != device.address && o.bridges.first() == Some(bridge))
}

/// Switches above a device as NCCL counts them: of a switch's two bridges only the upper one, and
/// the root port belongs to the processor (NCCL `src/graph/xml.cc`, two components a step).
fn switches(device: &PciDevice) -> impl Iterator<Item = &String> {
    device.bridges.iter().skip(1).step_by(2)
}

fn path(facts: &Facts, a: &PciDevice, b: &PciDevice) -> Path {
    if a.address == b.address {
        return Path::Same;
    }
    if a.role == Role::Gpu
        && b.role == Role::Gpu
        && let Some(links) = nvlinks(facts, a, b)
    {
        return Path::Nvlink(links);
    }
    let (of_a, of_b): (Vec<&String>, Vec<&String>) = (switches(a).collect(), switches(b).collect());
    let common =
        of_a.iter().enumerate().find_map(|(i, s)| Some((i, of_b.iter().position(|t| t == s)?)));
    // two functions of one card, or two ports below the same bridge
    let same_slot = !a.bridges.is_empty() && a.bridges.first() == b.bridges.first();
    match common {
        Some((0, 0)) => Path::Pix,
        Some(_) => Path::Pxb,
        None if same_slot => Path::Pix,
        None if a.numa == b.numa => Path::Phb,
        None => Path::Sys,
    }
}

/// NVLinks between two GPUs: direct ones, or the lesser of both sides through switches.
fn nvlinks(facts: &Facts, a: &PciDevice, b: &PciDevice) -> Option<u32> {
    let gpu = |d: &PciDevice| facts.gpus().iter().find(|g| g.pci.as_deref() == Some(&d.address));
    let (first, second) = (gpu(a)?, gpu(b)?);
    let direct = first
        .nvlinks
        .iter()
        .find(|l| l.kind != "switch" && l.to.as_deref() == Some(b.address.as_str()))
        .map(|l| l.count);
    let switch = |g: &crate::gpu::Gpu| {
        let count: u32 = g.nvlinks.iter().filter(|l| l.kind == "switch").map(|l| l.count).sum();
        (count > 0).then_some(count)
    };
    direct.or_else(|| Some(switch(first)?.min(switch(second)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(address: &str, role: Role, bridges: &[&str], numa: u32) -> PciDevice {
        PciDevice {
            address: address.to_owned(),
            role,
            names: vec![address.to_owned()],
            bridges: bridges.iter().map(|b| (*b).to_owned()).collect(),
            numa: Some(numa),
            ..PciDevice::default()
        }
    }

    #[test]
    fn path_types_as_nccl_counts() {
        let facts = Facts::default();
        // device, the switch's lower bridge, its upper bridge, root port
        let gpu = device("g", Role::Gpu, &["10:1", "0f:0", "00:1"], 0);
        let near = device("n", Role::Hca, &["10:2", "0f:0", "00:1"], 0);
        let cascaded = device("c", Role::Hca, &["20:1", "1f:0", "10:3", "0f:0", "00:1"], 0);
        let other_port = device("p", Role::Hca, &["00:2"], 0);
        let other_node = device("s", Role::Hca, &["80:1"], 1);
        assert_eq!(path(&facts, &gpu, &near), Path::Pix);
        assert_eq!(path(&facts, &gpu, &cascaded), Path::Pxb);
        assert_eq!(path(&facts, &gpu, &other_port), Path::Phb);
        assert_eq!(path(&facts, &gpu, &other_node), Path::Sys);
        assert_eq!(path(&facts, &gpu, &gpu), Path::Same);
    }
}
