//! GPUDirect RDMA: can a NIC read and write GPU memory, and if not, which link of the chain is missing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::live::Live;
use crate::root::Root;

/// Readiness, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GpuDirect {
    /// `true` where a way is there; `None` where there is no GPU or no RDMA device.
    pub ready: Option<bool>,
    /// The way: `nvidia_peermem`, `DMA-BUF`.
    pub way: Option<String>,
    /// `nvidia_peermem` (or the older `nv_peer_mem`) is loaded.
    pub peermem: bool,
    /// Kernel and driver can export GPU memory as DMA-BUF.
    pub dmabuf: bool,
    /// An IOMMU translates device addresses.
    pub iommu: Option<bool>,
    /// What is missing or in the way, one sentence each.
    pub reasons: Vec<String>,
}

/// Kernel that can hand DMA-BUF memory to RDMA devices (Linux 5.12).
const DMABUF_KERNEL: (u32, u32) = (5, 12);

/// Driver from which the open modules export GPU memory as DMA-BUF (release notes of 515).
const DMABUF_DRIVER: u32 = 515;

/// Fills the GPUDirect part.
pub(crate) fn collect(root: &Root, live: &Live, facts: &mut Facts) {
    let mut g = GpuDirect {
        peermem: ["nvidia_peermem", "nv_peer_mem"]
            .iter()
            .any(|m| root.exists(&format!("/sys/module/{m}"))),
        iommu: iommu(root),
        ..GpuDirect::default()
    };
    let kernel = kernel(&live.kernel);
    let driver = facts.gpu.as_ref();
    let major: Option<u32> =
        driver.and_then(|d| d.version.as_ref()).and_then(|v| v.split('.').next()?.parse().ok());
    let open = driver.and_then(|d| d.open_modules);
    g.dmabuf = kernel.is_some_and(|k| k >= DMABUF_KERNEL)
        && open == Some(true)
        && major.is_some_and(|m| m >= DMABUF_DRIVER);
    let gpus = !facts.gpus().is_empty();
    let devices: Vec<_> =
        facts.rdma.iter().filter(|d| d.ports.iter().any(|p| p.active())).collect();
    if gpus && !facts.rdma.is_empty() {
        let mut reasons = Vec::new();
        if devices.is_empty() {
            reasons.push("no RDMA port is ACTIVE".to_owned());
        } else if devices.iter().all(|d| d.opened.as_deref().is_some_and(|o| o != "ok")) {
            reasons.push("no RDMA device can be opened in this container".to_owned());
        }
        if facts.software.verbs.is_none() {
            reasons.push("libibverbs.so.1 is not installed here".to_owned());
        }
        let efa = facts.rdma.iter().all(crate::rdma::RdmaDevice::is_efa);
        let own = efa && root.exists("/sys/module/efa_nv_peermem");
        if efa && !own && !g.peermem && !g.dmabuf {
            // older EFA drivers link to NVIDIA's at build time, which leaves no mark
            g.reasons =
                vec!["EFA's driver may have a way of its own, which leaves no mark".to_owned()];
            facts.gpudirect = g;
            return;
        }
        if !g.peermem && !g.dmabuf && !own {
            reasons.push(format!(
                "neither nvidia_peermem is loaded nor DMA-BUF possible (kernel {}, {}, driver {})",
                if live.kernel.is_empty() { "unknown" } else { &live.kernel },
                match open {
                    Some(true) => "open modules",
                    Some(false) => "closed modules",
                    None => "modules unknown",
                },
                driver.and_then(|d| d.version.as_deref()).unwrap_or("unknown")
            ));
        }
        g.way = if own {
            Some("efa_nv_peermem".to_owned())
        } else if g.dmabuf {
            Some("DMA-BUF".to_owned())
        } else {
            g.peermem.then(|| "nvidia_peermem".to_owned())
        };
        g.ready = Some(reasons.is_empty());
        g.reasons = reasons;
    }
    facts.gpudirect = g;
}

/// Whether an IOMMU is at work: groups exist as soon as one is, and identity mode translates nothing.
fn iommu(root: &Root) -> Option<bool> {
    let groups = root.list("/sys/kernel/iommu_groups");
    if groups.is_empty() {
        return root.exists("/sys/class").then_some(false);
    }
    let identity = groups.iter().all(|g| {
        root.line(&format!("/sys/kernel/iommu_groups/{g}/type")).as_deref() == Some("identity")
    });
    Some(!identity)
}

fn kernel(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
