//! Small hand-made nodes for tests.

use ncclctl_facts::net::{Address, Interface, Kind};
use ncclctl_nccl::version::Version;

use crate::node::{Container, Gid, Gpu, Hca, Link, Node, Provider};

pub(crate) fn interface(name: &str, kind: Kind, address: &str, gbits: u64) -> Interface {
    let (ip, prefix) = address.split_once('/').unwrap();
    Interface {
        name: name.to_owned(),
        kind,
        running: true,
        mtu: 1500,
        addresses: vec![Address { ip: ip.parse().unwrap(), prefix: prefix.parse().unwrap() }],
        pci: (kind == Kind::Physical).then(|| "0000:3b:00.0".to_owned()),
        reported_mbits: (gbits > 0).then_some(gbits * 1000),
        ..Interface::default()
    }
}

pub(crate) fn hca(name: &str, link: Link, gbits: u64, path: &str) -> Hca {
    let gid = |index, ip: &str, v2| Gid { index, ip: ip.parse().unwrap(), v2 };
    Hca {
        name: name.to_owned(),
        port: 1,
        link,
        active: true,
        mbits: Some(gbits * 1000),
        netdev: None,
        openable: Some(true),
        gids: Some(match link {
            Link::Ethernet => vec![
                gid(0, "fe80::1", false),
                gid(1, "fe80::1", true),
                gid(2, "::ffff:10.1.0.1", false),
                gid(3, "::ffff:10.1.0.1", true),
            ],
            _ => vec![gid(0, "fe80::1", false)],
        }),
        path: Some(path.to_owned()),
        ..Hca::default()
    }
}

fn gpus(n: usize, model: &str, nvlinks: u32) -> Vec<Gpu> {
    vec![Gpu { model: model.to_owned(), nvlinks, ..Gpu::default() }; n]
}

/// A host without a GPU or RDMA.
pub(crate) fn laptop() -> Node {
    Node {
        name: "laptop".into(),
        interfaces: vec![
            interface("lo", Kind::Loopback, "127.0.0.1/8", 0),
            interface("docker0", Kind::Bridge, "172.17.0.1/16", 0),
            interface("wlp2s0", Kind::Physical, "192.168.1.20/24", 0),
        ],
        default_route: Some("wlp2s0".into()),
        ..Node::default()
    }
}

/// A node like a DGX: NVSwitch, eight HCAs beside GPUs, two for storage.
pub(crate) fn dgx(n: u8) -> Node {
    let mut hcas: Vec<Hca> =
        (0..8).map(|i| hca(&format!("mlx5_{i}"), Link::Infiniband, 400, "PXB")).collect();
    hcas.push(hca("mlx5_10", Link::Infiniband, 200, "SYS"));
    hcas.push(hca("mlx5_11", Link::Ethernet, 100, "SYS"));
    Node {
        name: format!("dgx{n}"),
        nccl: Some(Version::new(2, 27, 5)),
        gpus: gpus(8, "NVIDIA H100 80GB HBM3", 18),
        fabric: crate::node::Fabric { nvswitch: true, ..crate::node::Fabric::default() },
        interfaces: vec![
            interface("lo", Kind::Loopback, "127.0.0.1/8", 0),
            interface("bmc0", Kind::Physical, "169.254.3.1/24", 0),
            interface("eno1", Kind::Physical, &format!("10.0.0.{n}/24"), 100),
            interface("ibp12s0", Kind::Ipoib, &format!("192.168.14.{n}/24"), 0),
        ],
        default_route: Some("eno1".into()),
        hcas,
        verbs: Some(true),
        gdr_ready: Some(true),
        container: Container {
            runtime: Some("docker".into()),
            memlock: Some(u64::MAX),
            shm: Some(64 << 20),
            host_network: Some(true),
            ..Container::default()
        },
        flat_pci: Some(false),
        ..Node::default()
    }
}

/// A node with RoCE over a bond, an old NCCL and VLANs on the bond.
pub(crate) fn roce(n: u8) -> Node {
    let mut port = hca("mlx5_bond_0", Link::Ethernet, 200, "PHB");
    port.netdev = Some("bond0".into());
    Node {
        name: format!("roce{n}"),
        nccl: Some(Version::new(2, 18, 5)),
        gpus: gpus(2, "NVIDIA A100-PCIE-40GB", 0),
        interfaces: vec![
            interface("lo", Kind::Loopback, "127.0.0.1/8", 0),
            interface("bond0", Kind::Bond, &format!("10.1.0.{n}/24"), 0),
            interface("bond0.2093", Kind::Vlan, &format!("192.0.2.{n}/29"), 0),
        ],
        default_route: Some("bond0".into()),
        hcas: vec![port],
        verbs: Some(true),
        gdr_ready: Some(true),
        acs: Some(true),
        flat_pci: Some(false),
        ..Node::default()
    }
}

/// A pod on a CNI network; with or without an RDMA device that has no GID.
pub(crate) fn pod(n: u8, rdma: bool) -> Node {
    let mut port = hca("mlx5_2", Link::Ethernet, 200, "PHB");
    port.gids = Some(Vec::new());
    Node {
        name: format!("worker-{n}"),
        nccl: Some(Version::new(2, 26, 2)),
        gpus: gpus(4, "NVIDIA L40S", 0),
        interfaces: vec![
            interface("lo", Kind::Loopback, "127.0.0.1/8", 0),
            interface("eth0", Kind::Veth, &format!("10.233.71.{n}/32"), 0),
        ],
        default_route: Some("eth0".into()),
        hcas: if rdma { vec![port] } else { Vec::new() },
        verbs: Some(true),
        container: Container {
            runtime: Some("containerd".into()),
            kubernetes: true,
            memlock: Some(64 << 10),
            shm: Some(64 << 20),
            mempolicy_refused: Some(true),
            ..Container::default()
        },
        ..Node::default()
    }
}

/// A VM of Azure with a flat PCI tree and the provider's topology file.
pub(crate) fn azure(n: u8) -> Node {
    Node {
        name: format!("nd{n}"),
        hypervisor: Some("hyperv".into()),
        flat_pci: Some(true),
        topology_files: vec!["/opt/microsoft/ndv4-topo.xml".into()],
        provider: Provider::Azure("Standard_ND96asr_v4".into()),
        hcas: (0..8).map(|i| hca(&format!("mlx5_ib{i}"), Link::Infiniband, 200, "PHB")).collect(),
        interfaces: vec![
            interface("lo", Kind::Loopback, "127.0.0.1/8", 0),
            interface("eth0", Kind::Virtual, &format!("10.2.0.{n}/24"), 0),
        ],
        default_route: Some("eth0".into()),
        ..dgx(n)
    }
}

/// An EFA instance.
pub(crate) fn efa(n: u8) -> Node {
    let mut port = hca("rdmap110s0", Link::Efa, 200, "PXB");
    port.gids = None;
    Node {
        name: format!("p5-{n}"),
        provider: Provider::Efa("p5.48xlarge".into()),
        net_plugins: vec!["/opt/amazon/ofi-nccl/lib/libnccl-net.so".into()],
        hcas: vec![port],
        interfaces: vec![
            interface("lo", Kind::Loopback, "127.0.0.1/8", 0),
            interface("ens32", Kind::Virtual, &format!("10.3.0.{n}/24"), 0),
        ],
        default_route: Some("ens32".into()),
        hypervisor: Some("nitro".into()),
        ..dgx(n)
    }
}

/// A node with MIG slices.
pub(crate) fn mig() -> Node {
    let mut node = pod(9, false);
    node.name = "mig-0".into();
    node.nccl = Some(Version::new(2, 31, 2));
    for gpu in &mut node.gpus {
        gpu.mig = true;
    }
    node
}
