//! What the firmware calls this machine: where a cloud's own profile decides settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::{Facts, Missing};
use crate::live::Live;
use crate::root::Root;

/// Chassis tag of every Azure machine (Azure's documentation of instance metadata).
const AZURE: &str = "7783-7084-3265-9085-8269-3286-77";

/// The platform.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Platform {
    /// `aws`, `gcp`, `azure`, `oci`; `None` elsewhere or where it can not be told.
    pub cloud: Option<String>,
    /// Instance type where the firmware tells it, like `p5.48xlarge`.
    pub instance: Option<String>,
    /// Maker of the machine.
    pub vendor: Option<String>,
    /// Product.
    pub product: Option<String>,
    /// Hypervisor, where it runs in one.
    pub hypervisor: Option<String>,
    /// Topology files of the provider that are on this machine.
    pub topology_files: Vec<String>,
}

/// Folders in which providers put topology files.
const TOPOLOGY_FOLDERS: [&str; 4] =
    ["/opt/microsoft", "/opt/microsoft/ncv4", "/usr/local/gib/configs", "/etc/nccl"];

/// The file that NCCL reads by itself.
const VIRTUAL_TOPOLOGY: &str = "/var/run/nvidia-topologyd/virtualTopology.xml";

/// Fills the platform part.
pub(crate) fn collect(root: &Root, _: &Live, facts: &mut Facts) {
    let dmi = |name: &str| root.line(&format!("/sys/class/dmi/id/{name}"));
    let mut p =
        Platform { vendor: dmi("sys_vendor"), product: dmi("product_name"), ..Platform::default() };
    let vendor = p.vendor.as_deref().unwrap_or_default();
    let product = p.product.as_deref().unwrap_or_default();
    let chassis = dmi("chassis_asset_tag").unwrap_or_default();
    p.cloud = if vendor.contains("Amazon") {
        p.instance = Some(product.to_owned()).filter(|t| t.contains('.'));
        Some("aws")
    } else if product.contains("Google Compute Engine") || vendor == "Google" {
        Some("gcp")
    } else if chassis == AZURE {
        Some("azure")
    } else if chassis == "OracleCloud.com" {
        Some("oci")
    } else {
        None
    }
    .map(str::to_owned);
    let flags = root.read("/proc/cpuinfo").unwrap_or_default();
    let guest =
        flags.lines().any(|l| l.starts_with("flags") && l.split(' ').any(|f| f == "hypervisor"));
    // Arm processors have no such flag; bare-metal instances of clouds keep the cloud's names
    let named = ["QEMU", "Amazon EC2", "Google", "VMware"].iter().any(|v| vendor.contains(v))
        && !product.contains(".metal");
    if guest || (flags.contains("CPU implementer") && named) {
        p.hypervisor = Some(
            match (vendor, product) {
                (v, _) if v.contains("QEMU") => "kvm",
                (v, _) if v.contains("VMware") => "vmware",
                (v, _) if v.contains("Microsoft") => "hyper-v",
                (v, _) if v.contains("Amazon") => "nitro",
                (_, p) if p.contains("Google") => "kvm",
                (_, p) if p.contains("KVM") => "kvm",
                _ => "unknown",
            }
            .to_owned(),
        );
    }
    for folder in TOPOLOGY_FOLDERS {
        for name in root.list(folder).into_iter().filter(|n| n.ends_with(".xml")) {
            p.topology_files.push(format!("{folder}/{name}"));
        }
    }
    if root.exists(VIRTUAL_TOPOLOGY) {
        p.topology_files.push(VIRTUAL_TOPOLOGY.to_owned());
    }
    if p.vendor.is_none() && p.product.is_none() {
        facts.missing.push(Missing::new(
            "/sys/class/dmi/id",
            "not shown here: cloud and instance type are unknown",
        ));
    }
    facts.platform = p;
}
