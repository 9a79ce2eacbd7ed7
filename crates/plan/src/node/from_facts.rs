//! From everything that is known of a node to what decides its settings.

use std::net::IpAddr;

use ncclctl_facts::Facts;
use ncclctl_facts::rdma::{Port, RdmaDevice};

use super::{Container, Fabric, Gid, Gpu, Hca, Link, Node, Provider};

impl From<&Facts> for Node {
    fn from(facts: &Facts) -> Self {
        Self {
            name: facts.name.clone(),
            nccl: facts.software.nccl_version(),
            gpus: gpus(facts),
            fabric: Fabric {
                nvswitch: facts.gpus().iter().any(ncclctl_facts::gpu::Gpu::behind_switch),
                clique: facts
                    .gpus()
                    .iter()
                    .filter_map(|gpu| gpu.fabric.as_ref())
                    .filter(|fabric| fabric.reaches_nodes())
                    .find_map(|fabric| {
                        Some(format!("{}.{}", fabric.cluster.as_ref()?, fabric.clique))
                    }),
                imex: (!facts.gpus().is_empty()).then(|| {
                    let mut devices = facts.container.devices.iter();
                    devices.any(|(path, said)| path.contains("imex-channels/") && said == "ok")
                }),
            },
            interfaces: facts.interfaces.clone(),
            default_route: facts.default_route.clone(),
            hcas: facts
                .rdma
                .iter()
                .flat_map(|device| device.ports.iter().map(|port| hca(facts, device, port)))
                .collect(),
            verbs: Some(facts.software.verbs.is_some() && !facts.software.providers.is_empty()),
            gdr_ready: facts.gpudirect.ready,
            net_plugins: facts
                .software
                .plugins
                .iter()
                .filter(|p| p.kind == "net" && p.found_by_loader)
                .map(|p| p.path.clone())
                .collect(),
            container: container(facts),
            hypervisor: facts.platform.hypervisor.clone(),
            flat_pci: (!facts.topology.names.is_empty()).then_some(facts.topology.flat),
            acs: acs(facts),
            topology_files: facts.platform.topology_files.clone(),
            provider: provider(facts),
            ports: facts.port_range,
            settings: facts
                .environment
                .iter()
                .filter(|(name, _)| ncclctl_nccl::layers::is_nccls(name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        }
    }
}

fn gpus(facts: &Facts) -> Vec<Gpu> {
    let peers = facts.gpu.as_ref().map_or(&[][..], |driver| &driver.peers);
    let linked =
        |index: u32| facts.gpus().iter().any(|gpu| gpu.index == index && gpu.nvlink_count() > 0);
    facts
        .gpus()
        .iter()
        .map(|gpu| Gpu {
            model: gpu.model.clone(),
            pci: gpu.pci.clone(),
            numa: gpu.numa,
            nvlinks: gpu.nvlink_count(),
            mig: gpu.mig.is_some(),
            // between PCIe neighbours a refusal is normal, and NCCL reads it too
            peer_broken: peers.iter().any(|pair| {
                (pair.a == gpu.index || pair.b == gpu.index)
                    && linked(pair.a)
                    && linked(pair.b)
                    && (pair.read != "ok" || pair.write != "ok")
            }),
        })
        .collect()
}

fn hca(facts: &Facts, device: &RdmaDevice, port: &Port) -> Hca {
    let slot = facts
        .pci
        .iter()
        .find(|d| device.pci.as_ref() == Some(&d.address))
        .and_then(|d| d.link_most)
        .map(ncclctl_facts::pci::Lane::mbits);
    Hca {
        name: device.name.clone(),
        port: port.number,
        link: match (device.is_efa(), port.is_roce()) {
            (true, _) => Link::Efa,
            (false, true) => Link::Ethernet,
            (false, false) => Link::Infiniband,
        },
        active: port.active(),
        // a NIC is worth the lower of its port and its slot
        mbits: match (port.mbits, slot) {
            (Some(port), Some(slot)) => Some(port.min(slot)),
            (port, _) => port,
        },
        netdev: port.netdev.clone(),
        openable: device.opened.as_ref().map(|said| said == "ok"),
        gids: Some(
            port.gids
                .iter()
                .map(|gid| Gid {
                    index: gid.index,
                    ip: gid.gid.to_ipv4_mapped().map_or(IpAddr::V6(gid.gid), IpAddr::V4),
                    v2: gid.is_v2(),
                })
                .collect(),
        ),
        pci: device.pci.clone(),
        numa: device.numa,
        path: facts.topology.to_gpu(&device.name).map(|path| path.to_string()),
    }
}

fn container(facts: &Facts) -> Container {
    let c = &facts.container;
    Container {
        runtime: c.runtime.clone(),
        kubernetes: c.kubernetes,
        memlock: c.memlock,
        shm: c.shm,
        host_network: if c.runtime.is_none() { Some(true) } else { c.host.net },
        root: Some(c.user == 0),
        // where nobody asked: the default profiles of Docker and containerd allow it only with SYS_NICE
        mempolicy_refused: c.memory_policy.map(|allowed| !allowed).or(match c.seccomp.as_deref() {
            Some("filter") if c.runtime.is_some() => {
                Some(!c.capabilities.iter().any(|name| name == "SYS_NICE"))
            }
            Some("off") => Some(false),
            _ => None,
        }),
    }
}

/// Whether a bridge above a GPU or NIC redirects peer traffic; unknown where one could not be read.
fn acs(facts: &Facts) -> Option<bool> {
    let lists = facts.pci.iter().map(|device| &device.acs);
    if lists.clone().flatten().any(|bridges| !bridges.is_empty()) {
        return Some(true);
    }
    (!facts.pci.is_empty() && lists.clone().all(Option::is_some)).then_some(false)
}

fn provider(facts: &Facts) -> Provider {
    let platform = &facts.platform;
    let kind = platform.instance.clone().or_else(|| platform.product.clone()).unwrap_or_default();
    let plugin = |word: &str| facts.software.plugins.iter().any(|p| p.path.contains(word));
    let set = |prefix: &str| facts.environment.keys().any(|name| name.starts_with(prefix));
    if facts.rdma.iter().any(RdmaDevice::is_efa) {
        Provider::Efa(kind)
    } else if set("NCCL_FASTRAK_") || plugin("tcpxo") {
        Provider::Tcpxo(kind)
    } else if set("NCCL_GPUDIRECTTCPX_") || plugin("tcpx") {
        Provider::Tcpx(kind)
    } else if platform.cloud.as_deref() == Some("azure") {
        Provider::Azure(kind)
    } else {
        Provider::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_is_taken_over() {
        let facts: Facts = serde_json::from_value(serde_json::json!({
            "name": "n1",
            "gpu": {
                "gpus": [
                    {"index": 0, "pci": "0000:1b:00.0", "nvlinks": [{"kind": "switch", "count": 18}]},
                    {"index": 1, "pci": "0000:1c:00.0", "nvlinks": [{"kind": "switch", "count": 18}], "mig": 2}
                ],
                "peers": [{"a": 0, "b": 1, "read": "GPU not supported", "write": "ok"}]
            },
            "rdma": [{
                "name": "mlx5_0", "pci": "0000:19:00.0", "driver": "mlx5_core", "opened": "permission denied",
                "ports": [{
                    "number": 1, "state": "ACTIVE", "link_layer": "Ethernet", "mbits": 400_000,
                    "gids": [{"index": 3, "gid": "::ffff:10.0.0.1", "kind": "RoCE v2"}]
                }]
            }],
            "pci": [{"address": "0000:19:00.0", "role": "hca", "link_most": {"gts": 16.0, "width": 16}, "acs": ["0000:18:00.0"]}],
            "software": {
                "nccl": [{"path": "/usr/lib/libnccl.so.2", "version": "2.27.5"}],
                "plugins": [
                    {"kind": "net", "path": "/a/libnccl-net.so", "found_by_loader": true},
                    {"kind": "net", "path": "/b/libnccl-net.so", "found_by_loader": false}
                ],
                "verbs": "/usr/lib/libibverbs.so.1", "providers": []
            },
            "container": {"runtime": "docker", "user": 1000, "memory_policy": false, "host": {"net": false}},
            "platform": {"cloud": "azure", "product": "Virtual Machine", "hypervisor": "hyper-v"},
            "environment": {"NCCL_DEBUG": "INFO", "LD_LIBRARY_PATH": "/a"}
        }))
        .unwrap();
        let node = Node::from(&facts);
        assert_eq!(node.nccl, Some("2.27.5".parse().unwrap()));
        assert!(node.fabric.nvswitch && node.gpus[1].mig && !node.gpus[0].mig);
        assert!(node.gpus.iter().all(|gpu| gpu.peer_broken), "both ends of an NVLink pair");
        let hca = &node.hcas[0];
        assert_eq!((hca.link, hca.active, hca.openable), (Link::Ethernet, true, Some(false)));
        assert!(hca.mbits.is_some_and(|m| m < 260_000), "the slot is narrower than the port");
        assert!(hca.gids.as_ref().unwrap()[0].v2 && hca.gids.as_ref().unwrap()[0].ip.is_ipv4());
        assert_eq!(node.net_plugins, ["/a/libnccl-net.so"]);
        assert_eq!(node.verbs, Some(false), "no provider, no device");
        assert_eq!(node.acs, Some(true));
        assert_eq!(node.container.mempolicy_refused, Some(true));
        assert_eq!(node.container.host_network, Some(false));
        assert!(matches!(node.provider, Provider::Azure(_)));
        assert_eq!(node.settings.keys().collect::<Vec<_>>(), ["NCCL_DEBUG"]);
    }
}
