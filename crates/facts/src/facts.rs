//! Facts: everything that is known of one node or container, each part with its source.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cloud::Platform;
use crate::container::Container;
use crate::gpu::Driver;
use crate::gpudirect::GpuDirect;
use crate::live::Live;
use crate::net::Interface;
use crate::pci::PciDevice;
use crate::rdma::RdmaDevice;
use crate::root::Root;
use crate::software::Software;
use crate::topology::Topology;

/// Everything that is known of one node or container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Facts {
    /// Host name.
    pub name: String,
    /// Kernel release.
    pub kernel: String,
    /// Kernel's boot id, empty where it can not be read.
    pub boot_id: String,
    /// GPU driver and GPUs; `None` where there is neither driver nor device.
    pub gpu: Option<Driver>,
    /// Interfaces of this network namespace.
    pub interfaces: Vec<Interface>,
    /// Interface that the default route leaves by.
    pub default_route: Option<String>,
    /// IPv4 routes, default first.
    pub routes: Vec<crate::net::route::Line>,
    /// RDMA devices.
    pub rdma: Vec<RdmaDevice>,
    /// GPUs, NICs and RDMA devices in the PCI tree.
    pub pci: Vec<PciDevice>,
    /// Who is near whom.
    pub topology: Topology,
    /// Whether the NICs can reach GPU memory.
    pub gpudirect: GpuDirect,
    /// What the container is and what limits it.
    pub container: Container,
    /// Libraries that decide.
    pub software: Software,
    /// Firmware's name for this machine.
    pub platform: Platform,
    /// Processors in the affinity mask.
    pub cpus: u32,
    /// First and last port that sockets are given.
    pub port_range: Option<(u16, u16)>,
    /// Variables that decide what NCCL and its loader do, secrets replaced.
    pub environment: BTreeMap<String, String>,
    /// Sources that could not be read, and what that leaves unknown.
    pub missing: Vec<Missing>,
}

/// A source that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    /// The source: a path, `NVML`, `netlink`.
    pub source: String,
    /// Why.
    pub why: String,
}

impl Missing {
    /// A source that could not be read.
    pub fn new(source: impl Into<String>, why: impl Into<String>) -> Self {
        Self { source: source.into(), why: why.into() }
    }
}

/// A collector: fills its part and tells what it could not read.
pub struct Collector {
    /// Name of the part.
    pub name: &'static str,
    collect: fn(&Root, &Live, &mut Facts),
}

/// The collectors, in an order in which later ones use what earlier ones found.
pub const COLLECTORS: &[Collector] = &[
    Collector { name: "container", collect: crate::container::collect },
    Collector { name: "gpu", collect: crate::gpu::collect },
    Collector { name: "rdma", collect: crate::rdma::collect },
    Collector { name: "pci", collect: crate::pci::collect },
    Collector { name: "platform", collect: crate::cloud::collect },
    Collector { name: "topology", collect: crate::topology::collect },
    Collector { name: "software", collect: crate::software::collect },
    Collector { name: "gpudirect", collect: crate::gpudirect::collect },
];

impl Facts {
    /// Collects everything from a root. Never fails as a whole.
    pub fn collect(root: &Root) -> Self {
        Self::from_live(root, Live::of(root))
    }

    /// Collects from files and answers that are there already.
    pub fn from_live(root: &Root, live: Live) -> Self {
        let mut facts = Self {
            name: live.hostname.clone(),
            kernel: live.kernel.clone(),
            boot_id: crate::identity::boot_id(root),
            interfaces: live.interfaces.clone(),
            default_route: crate::net::route::default_interface(root),
            routes: crate::net::route::table(root),
            cpus: live.cpus,
            port_range: port_range(root),
            environment: live.environment.clone(),
            missing: live.missing.clone(),
            ..Self::default()
        };
        if facts.name.is_empty() {
            facts.name = crate::identity::hostname(root);
        }
        for collector in COLLECTORS {
            (collector.collect)(root, &live, &mut facts);
        }
        facts
    }

    /// GPUs, none where there is no driver.
    pub fn gpus(&self) -> &[crate::gpu::Gpu] {
        self.gpu.as_ref().map_or(&[], |driver| &driver.gpus)
    }
}

fn port_range(root: &Root) -> Option<(u16, u16)> {
    let text = root.line("/proc/sys/net/ipv4/ip_local_port_range")?;
    let (first, last) = text.split_once(char::is_whitespace)?;
    Some((first.parse().ok()?, last.trim().parse().ok()?))
}
