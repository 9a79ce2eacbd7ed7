//! The PCI tree above GPUs and NICs: which bridges, how wide, who shares them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::{Facts, Missing};
use crate::live::Live;
use crate::root::Root;

/// Extended capability "access control services" (PCIe base specification, 7.7.11).
const ACS: u16 = 0x000d;

/// Bits of the ACS control register that send peer traffic up to the root: request redirect and
/// completion redirect.
const REDIRECT: u16 = 0b1100;

/// What stands at a place in the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A GPU.
    Gpu,
    /// An RDMA device (with its Ethernet function, where it has one).
    Hca,
    /// A NIC without RDMA.
    #[default]
    Nic,
}

/// A GPU or NIC in the tree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PciDevice {
    /// Address.
    pub address: String,
    /// What it is.
    pub role: Role,
    /// Names: `GPU0`, `mlx5_0`, `eth0`.
    pub names: Vec<String>,
    /// Bridges above it, the nearest first, down from the root port; empty in a flat tree.
    pub bridges: Vec<String>,
    /// Host bridge, like `pci0000:00`.
    pub host_bridge: Option<String>,
    /// NUMA node.
    pub numa: Option<u32>,
    /// Link now: gigatransfers per second and lanes.
    pub link: Option<Lane>,
    /// Link at most, the lower of the device's and its slot's.
    pub link_most: Option<Lane>,
    /// Bridges above it whose access control redirects peer traffic; `None` where this could not be
    /// read.
    pub acs: Option<Vec<String>>,
    /// Its IOMMU group, where one is on.
    pub iommu_group: Option<u32>,
}

/// A PCIe link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lane {
    /// Gigatransfers per second of a lane.
    pub gts: f64,
    /// Lanes.
    pub width: u32,
}

impl Lane {
    /// Payload, megabits per second, after line code (8b/10b up to 5 GT/s, 128b/130b from 8 GT/s,
    /// none to speak of from 64 GT/s), before packet headers.
    pub fn mbits(self) -> u64 {
        let code = if self.gts < 8.0 { 0.8 } else { 128.0 / 130.0 };
        (self.gts * 1000.0 * f64::from(self.width) * code) as u64
    }

    fn lower(self, other: Self) -> Self {
        Self { gts: self.gts.min(other.gts), width: self.width.min(other.width) }
    }
}

/// Fills the PCI part from the GPUs, RDMA devices and interfaces found before.
pub(crate) fn collect(root: &Root, live: &Live, facts: &mut Facts) {
    let mut wanted: Vec<(String, Role, String)> = Vec::new();
    for gpu in facts.gpus() {
        if let Some(pci) = &gpu.pci {
            wanted.push((pci.clone(), Role::Gpu, format!("GPU{}", gpu.index)));
        }
    }
    for device in &facts.rdma {
        if let Some(pci) = &device.pci {
            wanted.push((pci.clone(), Role::Hca, device.name.clone()));
        }
    }
    for interface in &facts.interfaces {
        if let Some(pci) = &interface.pci {
            wanted.push((pci.clone(), Role::Nic, interface.name.clone()));
        }
    }
    let mut out: Vec<PciDevice> = Vec::new();
    let mut denied = false;
    for (address, role, name) in wanted {
        if let Some(known) = out.iter_mut().find(|d| d.address == address) {
            known.names.push(name);
            continue;
        }
        let Some(mut device) = device(root, &address) else { continue };
        device.role = role;
        device.names.push(name);
        denied |= device.acs.is_none();
        out.push(device);
    }
    if denied && !out.is_empty() {
        let why = if live.user == 0 {
            "the configuration space beyond 64 bytes can not be read here (CAP_SYS_ADMIN)"
        } else {
            "access control (ACS) is read from configuration space, which needs CAP_SYS_ADMIN"
        };
        facts.missing.push(Missing::new("PCI configuration space", why));
    }
    if out.is_empty() && (!facts.gpus().is_empty() || !facts.rdma.is_empty()) {
        facts.missing.push(Missing::new(
            "/sys/bus/pci/devices",
            "no PCI tree in this container: NCCL puts every device below one processor",
        ));
    }
    facts.pci = out;
}

fn device(root: &Root, address: &str) -> Option<PciDevice> {
    let base = format!("/sys/bus/pci/devices/{address}");
    let real = root.real(&base)?;
    let mut parts: Vec<&str> = real.split('/').filter(|p| !p.is_empty()).collect();
    parts.pop();
    let host_bridge = parts
        .iter()
        .rev()
        .find(|p| p.starts_with("pci") && p.contains(':'))
        .map(|p| (*p).to_owned());
    let bridges: Vec<String> = parts
        .iter()
        .rev()
        .take_while(|p| !p.starts_with("pci"))
        .filter(|p| p.contains(':'))
        .map(|p| (*p).to_owned())
        .collect();
    let lane = |speed: &str, width: &str, at: &str| {
        let gts = root.line(&format!("{at}/{speed}"))?;
        let gts: f64 = gts.split_whitespace().next()?.parse().ok()?;
        let width: u32 = root.number(&format!("{at}/{width}"))?;
        (width > 0 && gts > 0.0).then_some(Lane { gts, width })
    };
    let most = |at: &str| lane("max_link_speed", "max_link_width", at);
    let slot = bridges.first().and_then(|b| most(&format!("/sys/bus/pci/devices/{b}")));
    let own = most(&base);
    let acs: Option<Vec<String>> = bridges
        .iter()
        .map(|bridge| Some((bridge, redirects(root, bridge)?)))
        .collect::<Option<Vec<_>>>()
        .map(|all| all.into_iter().filter(|(_, on)| *on).map(|(b, _)| b.clone()).collect());
    Some(PciDevice {
        address: address.to_owned(),
        bridges,
        host_bridge,
        numa: root.number(&format!("{base}/numa_node")),
        link: lane("current_link_speed", "current_link_width", &base),
        link_most: match (own, slot) {
            (Some(a), Some(b)) => Some(a.lower(b)),
            (a, b) => a.or(b),
        },
        acs,
        iommu_group: root.link_name(&format!("{base}/iommu_group")).and_then(|n| n.parse().ok()),
        ..PciDevice::default()
    })
}

/// Whether a bridge redirects peer traffic; `None` where its extended space can not be read.
fn redirects(root: &Root, bridge: &str) -> Option<bool> {
    let space = root.bytes(&format!("/sys/bus/pci/devices/{bridge}/config")).ok()?;
    acs_redirects(&space)
}

/// The ACS control bits of a configuration space; `None` where it ends before the extended part.
fn acs_redirects(space: &[u8]) -> Option<bool> {
    if space.len() <= 256 {
        return None;
    }
    let word = |at: usize| Some(u16::from_le_bytes([*space.get(at)?, *space.get(at + 1)?]));
    let mut at = 0x100;
    // each capability is at least 4 bytes long: more steps than that is a loop
    for _ in 0..(4096 - 256) / 4 {
        let id = word(at)?;
        if id == ACS {
            return Some(word(at + 6)? & REDIRECT != 0);
        }
        let next = usize::from(word(at + 2)? >> 4) & !3;
        if next < 0x100 {
            break;
        }
        at = next;
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn space(control: u16) -> Vec<u8> {
        let mut space = vec![0; 4096];
        // advanced error reporting first, ACS behind it at 0x140
        space[0x100..0x104].copy_from_slice(&[0x01, 0x00, 0x01, 0x14]);
        space[0x140..0x144].copy_from_slice(&[0x0d, 0x00, 0x01, 0x00]);
        space[0x146..0x148].copy_from_slice(&control.to_le_bytes());
        space
    }

    #[test]
    fn access_control_is_found_behind_other_capabilities() {
        assert_eq!(acs_redirects(&space(0b0001_1101)), Some(true));
        assert_eq!(acs_redirects(&space(0b0000_0001)), Some(false));
        assert_eq!(acs_redirects(&[0; 64]), None, "an unprivileged user sees 64 bytes");
        assert_eq!(acs_redirects(&[0; 4096]), Some(false));
    }

    #[test]
    fn a_slot_is_worth_its_payload() {
        assert_eq!(Lane { gts: 16.0, width: 16 }.mbits(), 252_061);
        assert_eq!(Lane { gts: 5.0, width: 8 }.mbits(), 32_000);
    }

    proptest! {
        #[test]
        fn no_configuration_space_loops_or_panics(space in prop::collection::vec(any::<u8>(), 0..4200)) {
            let _ = acs_redirects(&space);
        }
    }
}
