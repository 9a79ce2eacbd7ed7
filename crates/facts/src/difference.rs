//! Inside against outside: what a container can not see of its host, and what that costs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::Facts;

/// Something that the host has and the container lacks, or has otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// What it is about: `GPU`, `RDMA`, `network`, `PCI`, `limits`, `software`.
    pub part: String,
    /// What the host has.
    pub host: String,
    /// What is seen here.
    pub here: String,
    /// Which feature of NCCL that costs.
    pub costs: String,
    /// What gives it to the container.
    pub remedy: String,
}

/// What `here` lacks of `host`.
pub fn difference(here: &Facts, host: &Facts) -> Vec<Difference> {
    let mut out = Vec::new();
    let mut add = |part: &str, host: String, here: String, costs: &str, remedy: &str| {
        out.push(Difference {
            part: part.to_owned(),
            host,
            here,
            costs: costs.to_owned(),
            remedy: remedy.to_owned(),
        });
    };
    let (few, all) = (here.gpus().len(), host.gpus().len());
    if few < all {
        add(
            "GPU",
            format!("{all} GPUs"),
            format!("{few}"),
            "ranks find only these; peers in other containers are other hosts to NCCL",
            "docker --gpus all, or ask for nvidia.com/gpu as many as the job has ranks here",
        );
    }
    let nvml = |f: &Facts| f.gpu.as_ref().is_some_and(|g| g.source == "NVML");
    if all > 0 && few > 0 && nvml(host) && !nvml(here) {
        add(
            "GPU",
            "NVML".to_owned(),
            "no libnvidia-ml.so.1".to_owned(),
            "NCCL can not see NVLink: it uses PCIe or shared memory",
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        );
    }
    for device in &host.rdma {
        match here.rdma.iter().find(|d| d.name == device.name) {
            None => add(
                "RDMA",
                device.name.clone(),
                "not in /sys/class/infiniband".to_owned(),
                "no RDMA: NCCL falls back to sockets",
                "a resource of the RDMA device plugin, or docker --device /dev/infiniband with the host's network",
            ),
            Some(seen) => {
                if device.opened.as_deref() == Some("ok") && seen.opened.as_deref() != Some("ok") {
                    add(
                        "RDMA",
                        format!("{} can be opened", device.name),
                        seen.opened.clone().unwrap_or_else(|| "no device node".to_owned()),
                        "no RDMA through this device: NCCL falls back to sockets",
                        "docker --device /dev/infiniband, or the RDMA device plugin's resource",
                    );
                }
                let gids = |d: &crate::rdma::RdmaDevice| -> usize {
                    d.ports.iter().map(|p| p.gids.len()).sum()
                };
                if gids(device) > 0 && gids(seen) == 0 {
                    add(
                        "RDMA",
                        format!("{} has {} GIDs", device.name, gids(device)),
                        "none".to_owned(),
                        "RoCE has no address to use: connecting fails or falls back to sockets",
                        "an interface of this port in the pod (Multus, SR-IOV), or the host's network",
                    );
                }
            }
        }
    }
    for interface in host.interfaces.iter().filter(|i| i.running && i.line_rate_bits().is_some()) {
        if !here.interfaces.iter().any(|i| i.name == interface.name) {
            let rate = interface.line_rate_bits().unwrap_or_default() / 1_000_000_000;
            add(
                "network",
                format!("{} at {rate} Gbit/s", interface.name),
                "not in this network namespace".to_owned(),
                "bootstrap and sockets go over the container's own interface instead",
                "the host's network, or a secondary network (Multus macvlan, SR-IOV)",
            );
        }
    }
    if !host.pci.is_empty() && here.pci.is_empty() && few > 0 {
        add(
            "PCI",
            "the tree of bridges".to_owned(),
            "nothing in /sys/bus/pci".to_owned(),
            "NCCL takes every path for one through the processor: no GPUDirect RDMA, no PCIe peer access",
            "mount /sys, or give NCCL_TOPO_FILE",
        );
    }
    let memlock = |f: &Facts| f.container.memlock.unwrap_or(u64::MAX);
    if memlock(here) < memlock(host) && !host.rdma.is_empty() {
        add(
            "limits",
            format!("memlock {}", size(memlock(host))),
            size(memlock(here)),
            "registering memory for RDMA fails",
            "docker --ulimit memlock=-1, or the runtime's own default limit on this node",
        );
    }
    if let (Some(inside), Some(outside)) = (here.container.shm, host.container.shm)
        && inside < outside
        && inside < 1 << 30
    {
        add(
            "limits",
            format!("/dev/shm of {}", size(outside)),
            size(inside),
            "ranks of one host share buffers there: with several GPUs init fails when it is full",
            "docker --shm-size=8g, or an emptyDir of medium Memory on /dev/shm",
        );
    }
    if host.software.verbs.is_some() && here.software.verbs.is_none() && !host.rdma.is_empty() {
        add(
            "software",
            "libibverbs".to_owned(),
            "not in this image".to_owned(),
            "no RDMA even where the device is given: NCCL falls back to sockets",
            "apt-get install libibverbs1 ibverbs-providers in the image",
        );
    }
    out
}

/// Bytes for people.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    if bytes == u64::MAX {
        return "unlimited".to_owned();
    }
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let shown = if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") };
    format!("{shown} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdma::RdmaDevice;

    #[test]
    fn what_a_container_lacks_is_named_with_its_price() {
        let device = |opened: Option<&str>| RdmaDevice {
            name: "mlx5_0".to_owned(),
            opened: opened.map(str::to_owned),
            ..RdmaDevice::default()
        };
        let host = Facts { rdma: vec![device(Some("ok"))], ..Facts::default() };
        let mut here = Facts::default();
        let found = difference(&here, &host);
        assert_eq!(found.len(), 1);
        assert!(found[0].costs.contains("sockets"));
        here.rdma = vec![device(Some("Operation not permitted"))];
        assert_eq!(difference(&here, &host)[0].here, "Operation not permitted");
        assert!(difference(&host, &host).is_empty());
    }

    #[test]
    fn sizes_are_read_at_a_glance() {
        assert_eq!(size(64 << 20), "64 MiB");
        assert_eq!(size(3 << 29), "1.5 GiB");
        assert_eq!(size(u64::MAX), "unlimited");
    }
}
