//! Network interfaces of the namespace that this process is in.

mod collect;
mod purpose;
pub mod route;

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::collect::interfaces;
pub use self::purpose::Purpose;

/// What kind of link an interface is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum Kind {
    Loopback,
    /// A device with a PCI (or other bus) parent.
    Physical,
    Bond,
    Bridge,
    Veth,
    Macvlan,
    Ipvlan,
    Vlan,
    Tunnel,
    Ipoib,
    /// A virtual function or paravirtual NIC (virtio, ena, gve): physical to us, shared to others.
    Virtual,
    #[default]
    Other,
}

/// One interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    /// Kernel's index.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Kind of link.
    pub kind: Kind,
    /// Administratively up and with carrier.
    pub running: bool,
    /// Maximum transmission unit, bytes.
    pub mtu: u32,
    /// Addresses in the kernel's order.
    pub addresses: Vec<Address>,
    /// Driver name, where there is a device behind it.
    pub driver: Option<String>,
    /// PCI address like `0000:3b:00.0`, where there is one.
    pub pci: Option<String>,
    /// NUMA node, where known.
    pub numa: Option<u32>,
    /// Speed as the driver reports it, megabits per second; `None` where it reports none.
    pub reported_mbits: Option<u64>,
    /// Half duplex reported.
    pub half_duplex: bool,
    /// Mode of a bond, as the kernel names it: `802.3ad`, `active-backup`.
    #[serde(default)]
    pub bond_mode: Option<String>,
    /// PCI address of the physical function, where it is a virtual one.
    #[serde(default)]
    pub function_of: Option<String>,
    /// Virtual functions that are switched on, where it is a physical one that can have some.
    #[serde(default)]
    pub functions: Option<u32>,
    /// Name of the bond or bridge that it belongs to.
    pub master: Option<String>,
}

/// One address of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// Length of the network prefix in bits.
    pub prefix: u8,
}

impl Interface {
    /// Line rate that can be believed, bits per second: only a physical PCI NIC's own report
    /// counts. veth, bridge and macvlan report 10000 whatever their limit; VMs report -1.
    pub fn line_rate_bits(&self) -> Option<u64> {
        match (self.kind, &self.pci, self.reported_mbits) {
            (Kind::Physical, Some(_), Some(mbits)) if mbits > 0 => Some(mbits * 1_000_000),
            _ => None,
        }
    }
}
