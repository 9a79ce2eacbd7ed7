//! What the planner looks at: the part of a node's facts that decides settings.

mod from_facts;

use std::collections::BTreeMap;
use std::net::IpAddr;

use ncclctl_facts::net::Interface;
use ncclctl_nccl::version::Version;
use serde::{Deserialize, Serialize};

/// One node, or one container of it. Absent means unknown, and nothing is planned on a guess.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Node {
    /// Host name.
    pub name: String,
    /// Oldest libnccl that a process would load.
    pub nccl: Option<Version>,
    /// GPUs that are visible.
    pub gpus: Vec<Gpu>,
    /// NVLink fabric.
    pub fabric: Fabric,
    /// Interfaces of the network namespace.
    pub interfaces: Vec<Interface>,
    /// Interface of the default route.
    pub default_route: Option<String>,
    /// RDMA ports.
    pub hcas: Vec<Hca>,
    /// Whether libibverbs and a provider can be loaded.
    pub verbs: Option<bool>,
    /// Whether GPUDirect RDMA could work: driver, kernel and NIC allow it.
    pub gdr_ready: Option<bool>,
    /// Network plug-ins that NCCL would load, by library name.
    pub net_plugins: Vec<String>,
    /// Limits of the container.
    pub container: Container,
    /// Hypervisor, where it runs in a virtual machine.
    pub hypervisor: Option<String>,
    /// The PCI tree has no levels: every device hangs off the root.
    pub flat_pci: Option<bool>,
    /// PCIe access control redirects peer traffic.
    pub acs: Option<bool>,
    /// Topology files of the provider that are on this node.
    pub topology_files: Vec<String>,
    /// Cloud, where that decides settings.
    pub provider: Provider,
    /// Range of ephemeral ports.
    pub ports: Option<(u16, u16)>,
    /// NCCL settings that are in force already, secrets replaced.
    pub settings: BTreeMap<String, String>,
}

/// One GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gpu {
    /// Model.
    pub model: String,
    /// PCI address.
    pub pci: Option<String>,
    /// NUMA node.
    pub numa: Option<u32>,
    /// Active NVLinks.
    pub nvlinks: u32,
    /// A MIG slice.
    pub mig: bool,
    /// Peer access that the driver reports as broken between GPUs that have NVLink.
    pub peer_broken: bool,
}

/// NVLink fabric of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fabric {
    /// NVSwitch is there.
    pub nvswitch: bool,
    /// Cluster UUID and clique, where the node is part of a multi-node NVLink domain.
    pub clique: Option<String>,
    /// An IMEX channel device can be opened.
    pub imex: Option<bool>,
}

/// One port of an RDMA device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hca {
    /// Device.
    pub name: String,
    /// Port, from 1.
    pub port: u32,
    /// Link layer.
    pub link: Link,
    /// The port is ACTIVE.
    pub active: bool,
    /// Rate of the port, megabits per second.
    pub mbits: Option<u64>,
    /// Interface that belongs to it, where it is in this namespace.
    pub netdev: Option<String>,
    /// The device node can be opened.
    pub openable: Option<bool>,
    /// GID table; `None` where it could not be read.
    pub gids: Option<Vec<Gid>>,
    /// PCI address.
    pub pci: Option<String>,
    /// NUMA node.
    pub numa: Option<u32>,
    /// Shortest path to a GPU, in NCCL's names.
    pub path: Option<String>,
}

/// Link layer of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// InfiniBand.
    #[default]
    Infiniband,
    /// RoCE.
    Ethernet,
    /// EFA: needs a plug-in, NCCL's own verbs transport can not use it.
    Efa,
}

/// One entry of a GID table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gid {
    /// Index.
    pub index: u32,
    /// The address.
    pub ip: IpAddr,
    /// RoCE v2 (else v1, or InfiniBand).
    pub v2: bool,
}

impl Gid {
    /// Whether peers of other networks can be reached through it.
    pub fn routable(&self) -> bool {
        let ip = match self.ip {
            IpAddr::V6(six) => six.to_ipv4_mapped().map_or(self.ip, IpAddr::V4),
            four => four,
        };
        match ip {
            IpAddr::V4(v4) => !v4.is_unspecified() && !v4.is_link_local(),
            IpAddr::V6(v6) => !v6.is_unspecified() && (v6.segments()[0] & 0xffc0) != 0xfe80,
        }
    }

    /// Whether it stands for an IPv4 address.
    pub fn v4(&self) -> bool {
        match self.ip {
            IpAddr::V4(_) => true,
            IpAddr::V6(six) => six.to_ipv4_mapped().is_some(),
        }
    }
}

/// Limits of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Container {
    /// Runtime; `None` on a bare host.
    pub runtime: Option<String>,
    /// In a pod.
    pub kubernetes: bool,
    /// Memory that may be locked, bytes; [`u64::MAX`] is unlimited.
    pub memlock: Option<u64>,
    /// Size of /dev/shm, bytes.
    pub shm: Option<u64>,
    /// The host's network namespace is shared.
    pub host_network: Option<bool>,
    /// User id 0.
    pub root: Option<bool>,
    /// `get_mempolicy` is refused by seccomp.
    pub mempolicy_refused: Option<bool>,
}

/// Clouds whose own profile decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// None that matters.
    #[default]
    None,
    /// AWS with EFA; the instance type.
    Efa(String),
    /// Google with GPUDirect-TCPX; the machine type.
    Tcpx(String),
    /// Google with GPUDirect-TCPXO; the machine type.
    Tcpxo(String),
    /// Azure; the size.
    Azure(String),
}

impl Node {
    /// The interface of that name.
    pub fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|i| i.name == name)
    }
}
