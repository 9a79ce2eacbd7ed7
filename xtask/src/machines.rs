//! Machines that collectors and planner are tested on, as captures: composed from what such machines
//! are known to show (vendors' documentation, public `nvidia-smi topo -m` and `ibstat` output), or
//! captured from real ones. `fixtures/machines/README.md` says which is which.

mod build;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, bail};
use ncclctl_facts::gpu::{Fabric, Peers};
use ncclctl_facts::net::Kind;

use self::build::{Entry, Machine, Place, Rdma, Slot, links};

const FOLDER: &str = "fixtures/machines";

/// Every composed machine by its folder.
fn all() -> Vec<(&'static str, Machine)> {
    vec![
        ("laptop", laptop()),
        ("debian-vm", debian_vm()),
        ("dgx-h100", dgx()),
        ("pcie-acs", pcie_acs()),
        ("roce-bond", roce_bond()),
        ("azure-ndv5", azure()),
        ("efa-p4d", efa()),
        ("pod-cni", pod(false)),
        ("pod-rdma-no-gid", pod(true)),
        ("mig-pod", mig()),
        ("gb200-no-imex", gb200()),
        ("mixed-fleet/rdma-1", fleet(1, true)),
        ("mixed-fleet/rdma-2", fleet(2, true)),
        ("mixed-fleet/ethernet-3", fleet(3, false)),
    ]
}

/// A developer's machine: one GPU for the screen, driver without NVML in this container-less shell.
fn laptop() -> Machine {
    let mut m = Machine::new("laptop", "6.8.0-48-generic", Place::Host, 8);
    m.firmware("LENOVO", "21HMCTO1WW", "No Asset Information", false);
    m.memlock(Some(8 << 20));
    m.nic(
        "wlp0s20f3",
        "iwlwifi",
        0,
        &Slot { path: &["pci0000:00", "0000:00:14.3"], numa: -1, lane: ("2.5", 1) },
        &["192.168.178.34/24"],
    );
    m.interface("docker0", Kind::Bridge, &["172.17.0.1/16"]).running = false;
    m.interface("tailscale0", Kind::Tunnel, &["100.101.102.103/32"]).mtu = 1280;
    m.default_route("wlp0s20f3", [192, 168, 178, 1]);
    m.pci(&Slot {
        path: &["pci0000:00", "0000:00:01.0", "0000:01:00.0"],
        numa: -1,
        lane: ("16.0", 8),
    });
    m.file(
        "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Release Build\n",
    );
    m.file("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA GeForce RTX 4060 Laptop GPU\nGPU UUID: \t GPU-????????-????-????-????-????????????\nBus Location: \t 0000:01:00.0\n");
    m.live.user = 1000;
    m.live.missing.push(ncclctl_facts::Missing::new(
        "NVML",
        "libnvidia-ml.so.1 is not here or can not be loaded",
    ));
    m
}

/// A virtual machine without a GPU, where control groups are still of version 1.
fn debian_vm() -> Machine {
    let mut m = Machine::new("build-3", "6.1.0-28-amd64", Place::Host, 4);
    m.firmware("QEMU", "Standard PC (Q35 + ICH9, 2009)", "", true);
    m.memlock(Some(1 << 20));
    m.live.user = 1000;
    m.live.shm = Some((4 << 30, true));
    m.tree.remove("sys/fs/cgroup/cgroup.controllers");
    m.file("proc/self/cgroup", "4:memory:/user.slice\n3:cpuset:/\n2:cpu,cpuacct:/user.slice\n");
    m.file("sys/fs/cgroup/memory/user.slice/memory.limit_in_bytes", "9223372036854771712\n");
    m.file("sys/fs/cgroup/cpu/user.slice/cpu.cfs_quota_us", "200000\n");
    m.file("sys/fs/cgroup/cpu/user.slice/cpu.cfs_period_us", "100000\n");
    m.file("sys/fs/cgroup/cpuset/cpuset.cpus", "0-3\n");
    let eth = m.interface("ens3", Kind::Virtual, &["192.0.2.14/24", "fe80::5054:ff:fe12:3456/64"]);
    eth.driver = Some("virtio_net".to_owned());
    m.interface("br-7c1d3c1f0a2b", Kind::Bridge, &["172.18.0.1/16"]);
    let veth = m.interface("veth1a2b3c4", Kind::Veth, &[]);
    veth.master = Some("br-7c1d3c1f0a2b".to_owned());
    m.default_route("ens3", [192, 0, 2, 1]);
    m
}

/// Two switches a processor, each with two GPUs and two HCAs below it: a DGX H100 on the host.
fn dgx() -> Machine {
    let mut m = Machine::new("dgx01", "5.15.0-1053-nvidia", Place::Host, 224);
    m.firmware("NVIDIA", "DGXH100", "Chassis 01", false);
    m.driver("550.90.07", "12.4", true);
    m.file("sys/module/nvidia_peermem/refcnt", "0\n");
    let place = |node: usize, port: usize| -> (Vec<String>, Vec<String>) {
        let top = [["15", "37"], ["97", "b7"]][node][port / 2];
        let bus = u32::from_str_radix(top, 16).unwrap_or(0);
        let host = format!("pci0000:{top}");
        let root = format!("0000:{top}:01.0");
        let upper = format!("0000:{:02x}:00.0", bus + 1);
        let side = u32::try_from(port % 2).unwrap_or(0);
        let below = |slot: u32, bus: u32| {
            vec![
                host.clone(),
                root.clone(),
                upper.clone(),
                format!(
                    "0000:{:02x}:{slot:02x}.0",
                    u32::from_str_radix(&upper[5..7], 16).unwrap_or(0) + 1
                ),
                format!("0000:{bus:02x}:00.0"),
            ]
        };
        (below(side * 2, bus + 3 + side * 2), below(side * 2 + 1, bus + 4 + side * 2))
    };
    for n in 0..8 {
        let node = n / 4;
        let (gpu, hca) = place(node, n % 4);
        let numa = i32::try_from(node).unwrap_or(0);
        let gpu: Vec<&str> = gpu.iter().map(String::as_str).collect();
        let hca: Vec<&str> = hca.iter().map(String::as_str).collect();
        let lane = ("32.0", 16);
        if let Some(g) = m.gpu("NVIDIA H100 80GB HBM3", 90, 80, &Slot { path: &gpu, numa, lane }) {
            g.nvlinks = vec![links(None, "switch", 18, 4, 26_562)];
            g.fabric = Some(Fabric { state: "completed".to_owned(), ..Fabric::default() });
        }
        let name = format!("mlx5_{}", [0, 3, 4, 5, 6, 9, 10, 11][n]);
        m.rdma(&Rdma { name: &name, ..Rdma::INFINIBAND }, &Slot { path: &hca, numa, lane });
        m.interface(
            &format!("ibp{}s0", [24, 64, 79, 94, 154, 192, 206, 220][n]),
            Kind::Ipoib,
            &[],
        )
        .mtu = 2044;
    }
    for (n, name) in ["mlx5_1", "mlx5_7"].iter().enumerate() {
        let numa = i32::try_from(n).unwrap_or(0);
        let path: &[&str] = [
            &["pci0000:27", "0000:27:01.0", "0000:29:00.0"][..],
            &["pci0000:a7", "0000:a7:01.0", "0000:aa:00.0"][..],
        ][n];
        let netdev = ["storage0", "storage1"][n];
        let four = [0x0a14, 0x0a15][n];
        let gid = format!("0000:0000:0000:0000:0000:ffff:{four:04x}:0001");
        let gids = [
            (0, "fe80:0000:0000:0000:a288:c2ff:fe00:0001", "IB/RoCE v1", netdev),
            (3, gid.as_str(), "RoCE v2", netdev),
        ];
        let storage = Rdma {
            name,
            link: "Ethernet",
            rate: "200 Gb/sec (4X HDR)",
            lid: "0x0",
            gids: &gids,
            ..Rdma::INFINIBAND
        };
        let slot = Slot { path, numa, lane: ("32.0", 16) };
        m.rdma(&storage, &slot);
        m.nic(netdev, "mlx5_core", 200, &slot, &[["10.20.0.1/24"], ["10.21.0.1/24"]][n]);
    }
    m.nic(
        "eno3",
        "ixgbe",
        10,
        &Slot { path: &["pci0000:00", "0000:00:1c.0", "0000:05:00.0"], numa: 0, lane: ("8.0", 4) },
        &["10.0.0.11/24"],
    );
    let bmc = m.interface("bmc_redfish0", Kind::Other, &["169.254.3.1/24"]);
    bmc.driver = Some("cdc_ether".to_owned());
    m.interface("docker0", Kind::Bridge, &["172.17.0.1/16"]);
    m.default_route("eno3", [10, 0, 0, 1]);
    m.access_control(false);
    m.nccl("2.21.5");
    m.verbs("mlx5");
    m
}

/// Four GPUs in a PCIe box: two NICs, access control left on in the firmware's settings.
fn pcie_acs() -> Machine {
    let mut m = Machine::new("gpu-box", "5.15.0-122-generic", Place::Docker, 64);
    m.firmware("Supermicro", "SYS-421GE-TNRT", "Default string", false);
    m.driver("535.183.06", "12.2", false);
    m.memlock(None);
    m.live.shm = Some((32 << 30, true));
    let trees = [
        ["pci0000:17", "0000:17:01.0", "0000:18:00.0"],
        ["pci0000:97", "0000:97:01.0", "0000:98:00.0"],
    ];
    for n in 0..4_usize {
        let [host, root, upper] = trees[n / 2];
        let lower = format!(
            "{}0{}.0",
            &upper.replace(":00.0", ":").replace("18", "19").replace("98", "99"),
            n % 2
        );
        let device = format!("0000:{}:00.0", [["1a", "1b"], ["9a", "9b"]][n / 2][n % 2]);
        m.gpu(
            "NVIDIA L40S",
            89,
            48,
            &Slot {
                path: &[host, root, upper, &lower, &device],
                numa: i32::try_from(n / 2).unwrap_or(0),
                lane: ("16.0", 16),
            },
        );
    }
    if let Some(driver) = m.live.nvml.as_mut() {
        for (a, b) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
            let refused = "chipset not supported".to_owned();
            driver.peers.push(Peers { a, b, read: refused.clone(), write: refused });
        }
    }
    for (n, (netdev, address)) in
        [("ens1f0np0", "10.30.0.5/24"), ("ens2f0np0", "10.30.1.5/24")].iter().enumerate()
    {
        let [host, root, upper] = trees[n];
        let lower = ["0000:19:04.0", "0000:99:04.0"][n];
        let device = ["0000:1e:00.0", "0000:9e:00.0"][n];
        let path = [host, root, upper, lower, device];
        // a Gen4 card in an x8 slot: worth half of its port
        let slot = Slot { path: &path, numa: i32::try_from(n).unwrap_or(0), lane: ("16.0", 8) };
        let gid = format!("0000:0000:0000:0000:0000:ffff:0a1e:0{n}05");
        let gids = [
            (0, "fe80:0000:0000:0000:0e42:a1ff:fe00:0001", "IB/RoCE v1", *netdev),
            (1, "fe80:0000:0000:0000:0e42:a1ff:fe00:0001", "RoCE v2", *netdev),
            (2, gid.as_str(), "IB/RoCE v1", *netdev),
            (3, gid.as_str(), "RoCE v2", *netdev),
        ];
        let name = format!("mlx5_{n}");
        m.rdma(
            &Rdma {
                name: &name,
                board: "MT4125",
                firmware: "22.41.1000",
                link: "Ethernet",
                rate: "200 Gb/sec (4X HDR)",
                lid: "0x0",
                gids: &gids,
                ..Rdma::INFINIBAND
            },
            &slot,
        );
        m.nic(netdev, "mlx5_core", 200, &slot, &[address]);
    }
    m.nic(
        "eno1",
        "i40e",
        10,
        &Slot { path: &["pci0000:00", "0000:00:1c.0", "0000:03:00.0"], numa: 0, lane: ("8.0", 8) },
        &["192.168.10.5/24"],
    );
    m.default_route("eno1", [192, 168, 10, 1]);
    // --network host
    m.link("proc/self/ns/net", "net:[4026531840]");
    m.access_control(true);
    m.nccl("2.26.5");
    m.verbs("mlx5");
    m
}

/// Two GPUs, RoCE over a bond of two ports, VLANs on it, a library that does not search for its GID.
fn roce_bond() -> Machine {
    let mut m = Machine::new("ml-07", "5.14.0-427.el9.x86_64", Place::Host, 96);
    m.firmware("Dell Inc.", "PowerEdge R760xa", "", false);
    m.driver("535.129.03", "12.2", false);
    m.file("sys/module/nvidia_peermem/refcnt", "0\n");
    for n in 0..2_usize {
        let host = ["pci0000:4a", "pci0000:ca"][n];
        let path = [host, ["0000:4a:02.0", "0000:ca:02.0"][n], ["0000:4b:00.0", "0000:cb:00.0"][n]];
        m.gpu(
            "NVIDIA A100-PCIE-40GB",
            80,
            40,
            &Slot { path: &path, numa: i32::try_from(n).unwrap_or(0), lane: ("16.0", 16) },
        );
    }
    let slot =
        Slot { path: &["pci0000:31", "0000:31:02.0", "0000:32:00.0"], numa: 0, lane: ("16.0", 16) };
    let gids = [
        (0, "fe80:0000:0000:0000:e8eb:d3ff:fe5c:0a12", "IB/RoCE v1", "bond0"),
        (1, "fe80:0000:0000:0000:e8eb:d3ff:fe5c:0a12", "RoCE v2", "bond0"),
        (2, "0000:0000:0000:0000:0000:ffff:0a01:0007", "IB/RoCE v1", "bond0"),
        (3, "0000:0000:0000:0000:0000:ffff:0a01:0007", "RoCE v2", "bond0"),
        (4, "0000:0000:0000:0000:0000:ffff:c000:0207", "RoCE v2", "bond0.2093"),
    ];
    m.rdma(
        &Rdma {
            name: "mlx5_bond_0",
            board: "MT4125",
            firmware: "22.38.1002",
            link: "Ethernet",
            rate: "100 Gb/sec (4X EDR)",
            lid: "0x0",
            gids: &gids,
            ..Rdma::INFINIBAND
        },
        &slot,
    );
    m.nic("ens3f0np0", "mlx5_core", 100, &slot, &[]);
    m.nic(
        "ens3f1np1",
        "mlx5_core",
        100,
        &Slot {
            path: &["pci0000:31", "0000:31:02.0", "0000:32:00.1"],
            numa: 0,
            lane: ("16.0", 16),
        },
        &[],
    );
    for name in ["ens3f0np0", "ens3f1np1"] {
        if let Some(i) = m.live.interfaces.iter_mut().find(|i| i.name == name) {
            i.master = Some("bond0".to_owned());
            i.mtu = 9000;
        }
    }
    let bond = m.interface("bond0", Kind::Bond, &["10.1.0.7/24"]);
    bond.mtu = 9000;
    bond.bond_mode = Some("802.3ad".to_owned());
    bond.reported_mbits = Some(200_000);
    m.interface("bond0.2093", Kind::Vlan, &["192.0.2.7/29"]).mtu = 9000;
    m.interface("cni0", Kind::Bridge, &["10.244.3.1/24"]).mtu = 1450;
    m.default_route("bond0", [10, 1, 0, 1]);
    m.access_control(false);
    m.nccl("2.18.5");
    m.verbs("mlx5");
    m
}

/// ND H100 v5: eight virtual functions of InfiniBand beside GPUs, and a hypervisor that hides the tree.
fn azure() -> Machine {
    let mut m = Machine::new("nd96-4", "5.15.0-1073-azure", Place::Docker, 96);
    m.firmware(
        "Microsoft Corporation",
        "Virtual Machine",
        "7783-7084-3265-9085-8269-3286-77",
        true,
    );
    m.driver("550.54.15", "12.4", false);
    m.file("sys/module/nvidia_peermem/refcnt", "0\n");
    m.memlock(None);
    m.live.shm = Some((64 << 30, true));
    for n in 0..8_usize {
        let numa = i32::try_from(n / 4).unwrap_or(0);
        let domain = format!("{:04x}", n + 1);
        let gpu = [format!("pci{domain}:00"), format!("{domain}:00:00.0")];
        let gpu: Vec<&str> = gpu.iter().map(String::as_str).collect();
        if let Some(g) =
            m.gpu("NVIDIA H100 80GB HBM3", 90, 80, &Slot { path: &gpu, numa, lane: ("32.0", 16) })
        {
            g.nvlinks = vec![links(None, "unknown", 18, 4, 26_562)];
        }
        let domain = format!("{:04x}", n + 0x101);
        let hca = [format!("pci{domain}:00"), format!("{domain}:00:00.0")];
        let hca: Vec<&str> = hca.iter().map(String::as_str).collect();
        let name = format!("mlx5_ib{n}");
        m.rdma(
            &Rdma { name: &name, board: "MT4128", ..Rdma::INFINIBAND },
            &Slot { path: &hca, numa, lane: ("32.0", 16) },
        );
        m.interface(&format!("ib{n}"), Kind::Ipoib, &[&format!("172.16.1.{}/16", 10 + n)]).mtu =
            2044;
    }
    let eth = m.interface("eth0", Kind::Virtual, &["10.0.0.9/24"]);
    eth.driver = Some("hv_netvsc".to_owned());
    eth.reported_mbits = Some(100_000);
    m.default_route("eth0", [10, 0, 0, 1]);
    m.link("proc/self/ns/net", "net:[4026531840]");
    m.libraries(&["/opt/microsoft/ndv5-topo.xml"]);
    m.nccl("2.25.1");
    m.verbs("mlx5");
    m
}

/// p4d.24xlarge in a pod: four adapters by device plug-in, the provider's plug-in in the image.
fn efa() -> Machine {
    let mut m = Machine::new("train-worker-0", "5.10.226-214.880.amzn2.x86_64", Place::Pod, 96);
    m.firmware("Amazon EC2", "p4d.24xlarge", "Amazon EC2", true);
    m.driver("550.127.05", "12.4", true);
    m.memlock(None);
    m.live.shm = Some((512 << 30, true));
    for n in 0..8_usize {
        let numa = i32::try_from(n / 4).unwrap_or(0);
        let bus = ["10", "20", "90", "a0"][n / 2];
        let path = [
            format!("pci0000:{bus}"),
            format!("0000:{bus}:01.{n}"),
            format!("0000:{bus}:1{}.0", ["c", "d"][n % 2]),
        ];
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        if let Some(g) =
            m.gpu("NVIDIA A100-SXM4-40GB", 80, 40, &Slot { path: &path, numa, lane: ("16.0", 16) })
        {
            g.nvlinks = vec![links(None, "switch", 12, 3, 25_000)];
            g.fabric = Some(Fabric { state: "completed".to_owned(), ..Fabric::default() });
        }
    }
    for n in 0..4_usize {
        let bus = ["10", "20", "90", "a0"][n];
        let path = [format!("pci0000:{bus}"), format!("0000:{bus}:1b.0")];
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let name = format!("rdmap{}s27", [16, 32, 144, 160][n]);
        m.rdma(
            &Rdma {
                name: &name,
                driver: "efa",
                board: "0xefa1",
                firmware: "0.0.0.0",
                link: "Unspecified",
                rate: "100 Gb/sec (4X EDR)",
                lid: "0x0",
                gids: &[(0, "fe80:0000:0000:0000:0412:34ff:fe56:789a", "", "")],
                ..Rdma::INFINIBAND
            },
            &Slot { path: &path, numa: i32::try_from(n / 2).unwrap_or(0), lane: ("8.0", 16) },
        );
    }
    m.interface("eth0", Kind::Veth, &["10.0.84.17/32"]).mtu = 9001;
    m.default_route("eth0", [169, 254, 1, 1]);
    m.libraries(&[
        "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu/libnccl-net.so",
        "/opt/amazon/efa/lib/libfabric.so.1",
    ]);
    m.file(
        "etc/ld.so.conf.d/aws-ofi-nccl.conf",
        "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu\n/opt/amazon/efa/lib\n",
    );
    m.nccl("2.23.4");
    m.verbs("efa");
    m
}

/// A pod with nothing but the cluster's network; with an RDMA device that has no address here.
fn pod(rdma: bool) -> Machine {
    let mut m = Machine::new(
        if rdma { "trainer-1" } else { "trainer-0" },
        "5.15.0-119-generic",
        Place::Pod,
        32,
    );
    m.driver("570.86.15", "12.8", true);
    m.live.user = 1000;
    m.live.shm = Some((16 << 30, true));
    for n in 0..4_usize {
        let numa = i32::try_from(n / 2).unwrap_or(0);
        let bus = ["17", "31", "98", "b1"][n];
        let path = [
            format!("pci0000:{bus}"),
            format!("0000:{bus}:01.0"),
            format!("0000:{:02x}:00.0", u32::from_str_radix(bus, 16).unwrap_or(0) + 1),
        ];
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        m.gpu("NVIDIA L40S", 89, 48, &Slot { path: &path, numa, lane: ("16.0", 16) });
    }
    if rdma {
        // the table is that of the host's namespace: its entries can not be read from here
        m.rdma(
            &Rdma {
                name: "mlx5_2",
                link: "Ethernet",
                rate: "200 Gb/sec (4X HDR)",
                lid: "0x0",
                gids: &[
                    (0, "0000:0000:0000:0000:0000:0000:0000:0000", "", ""),
                    (1, "0000:0000:0000:0000:0000:0000:0000:0000", "", ""),
                ],
                ..Rdma::INFINIBAND
            },
            &Slot {
                path: &["pci0000:31", "0000:31:03.0", "0000:35:00.2"],
                numa: 0,
                lane: ("16.0", 16),
            },
        );
        m.verbs("mlx5");
    }
    m.interface("eth0", Kind::Veth, &["10.233.71.14/32"]).mtu = 1450;
    m.default_route("eth0", [169, 254, 1, 1]);
    m.nccl("2.26.2");
    m
}

/// A pod that was given two slices of one GPU.
fn mig() -> Machine {
    let mut m = Machine::new("notebook-0", "5.15.0-119-generic", Place::Pod, 16);
    m.driver("550.90.07", "12.4", true);
    m.live.user = 1000;
    if let Some(g) = m.gpu(
        "NVIDIA A100-SXM4-80GB",
        80,
        80,
        &Slot {
            path: &["pci0000:c0", "0000:c0:01.0", "0000:c1:00.0"],
            numa: 3,
            lane: ("16.0", 16),
        },
    ) {
        g.mig = Some(2);
    }
    m.interface("eth0", Kind::Veth, &["10.244.5.23/24"]).mtu = 1450;
    m.default_route("eth0", [10, 244, 5, 1]);
    m.env(
        "NVIDIA_VISIBLE_DEVICES",
        "MIG-00000000-0000-4000-8000-000000000001,MIG-00000000-0000-4000-8000-000000000002",
    );
    m.nccl("2.21.5");
    m
}

/// A compute tray of an NVL72 rack, in a pod that no channel of the fabric was given to.
fn gb200() -> Machine {
    let mut m = Machine::new("nvl72-tray07", "6.8.0-1021-nvidia-64k", Place::Pod, 144);
    m.live.machine = "aarch64".to_owned();
    m.driver("570.124.06", "12.8", true);
    m.memlock(None);
    m.live.shm = Some((256 << 30, true));
    for n in 0..4_usize {
        let domain = ["0008", "0009", "0018", "0019"][n];
        let path =
            [format!("pci{domain}:00"), format!("{domain}:00:00.0"), format!("{domain}:01:00.0")];
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        if let Some(g) = m.gpu(
            "NVIDIA GB200",
            100,
            186,
            &Slot { path: &path, numa: i32::try_from(n / 2).unwrap_or(0), lane: ("32.0", 16) },
        ) {
            g.nvlinks = vec![links(None, "switch", 18, 5, 53_125)];
            g.fabric = Some(Fabric {
                state: "completed".to_owned(),
                cluster: Some("9c6e1f4a-2b6d-4b60-9d53-0f8b4f6c2d10".to_owned()),
                clique: 32766,
                ..Fabric::default()
            });
        }
        let domain = ["0000", "0002", "0010", "0012"][n];
        let path =
            [format!("pci{domain}:00"), format!("{domain}:00:00.0"), format!("{domain}:03:00.0")];
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let name = format!("mlx5_{n}");
        m.rdma(
            &Rdma { name: &name, ..Rdma::INFINIBAND },
            &Slot { path: &path, numa: i32::try_from(n / 2).unwrap_or(0), lane: ("32.0", 16) },
        );
    }
    m.interface("eth0", Kind::Veth, &["10.42.7.3/24"]).mtu = 1450;
    m.default_route("eth0", [10, 42, 7, 1]);
    m.nccl("2.26.5");
    m.verbs("mlx5");
    m
}

/// Three nodes of one job: two with InfiniBand, one that has only Ethernet, under other names.
fn fleet(n: u8, rdma: bool) -> Machine {
    let mut m = Machine::new(&format!("node-{n}"), "5.15.0-122-generic", Place::Host, 64);
    m.firmware("Supermicro", "AS-4125GS-TNRT", "", false);
    m.driver("550.90.07", "12.4", true);
    for g in 0..2_usize {
        let path: &[&str] = [
            &["pci0000:00", "0000:00:01.1", "0000:01:00.0"][..],
            &["pci0000:40", "0000:40:01.1", "0000:41:00.0"][..],
        ][g];
        m.gpu(
            "NVIDIA A100 80GB PCIe",
            80,
            80,
            &Slot { path, numa: i32::try_from(g).unwrap_or(0), lane: ("16.0", 16) },
        );
    }
    if rdma {
        m.rdma(
            &Rdma {
                name: "mlx5_0",
                board: "MT4123",
                rate: "200 Gb/sec (4X HDR)",
                ..Rdma::INFINIBAND
            },
            &Slot {
                path: &["pci0000:20", "0000:20:01.1", "0000:21:00.0"],
                numa: 0,
                lane: ("16.0", 16),
            },
        );
        m.interface("ib0", Kind::Ipoib, &[&format!("192.168.100.{n}/24")]).mtu = 2044;
        m.verbs("mlx5");
    }
    let netdev = if rdma { "enp66s0f0" } else { "eno1np0" };
    m.nic(
        netdev,
        "bnxt_en",
        25,
        &Slot { path: &["pci0000:40", "0000:40:03.1", "0000:42:00.0"], numa: 1, lane: ("8.0", 8) },
        &[&format!("10.10.0.{n}/16")],
    );
    m.interface("docker0", Kind::Bridge, &["172.17.0.1/16"]);
    m.default_route(netdev, [10, 10, 0, 254]);
    m.access_control(false);
    m.nccl("2.22.3");
    m
}

/// Writes every composed machine.
pub(crate) fn write(repository: &Path) -> anyhow::Result<()> {
    for (name, machine) in all() {
        let base = repository.join(FOLDER).join(name);
        if base.exists() {
            std::fs::remove_dir_all(&base)?;
        }
        for (path, entry) in machine.finish()? {
            let at = base.join(path);
            let folder = at.parent().context("a path in a folder")?;
            std::fs::create_dir_all(folder)?;
            match entry {
                Entry::File(bytes) => std::fs::write(at, bytes)?,
                Entry::Link(target) => std::os::unix::fs::symlink(target, at)?,
            }
        }
    }
    Ok(())
}

/// Fails where a tree is not what the code here says.
pub(crate) fn check(repository: &Path) -> anyhow::Result<()> {
    for (name, machine) in all() {
        let base = repository.join(FOLDER).join(name);
        let wanted = machine.finish()?;
        let mut there = BTreeMap::new();
        read(&base, &base, &mut there)?;
        let wrong = wanted
            .iter()
            .find(|(path, entry)| there.get(*path) != Some(*entry))
            .map(|(path, _)| path)
            .or_else(|| there.keys().find(|path| !wanted.contains_key(*path)));
        if let Some(path) = wrong {
            bail!("{FOLDER}/{name}/{path} is not what the code says: `cargo xtask generate`");
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "files of the repository, not of a machine")]
fn read(folder: &Path, base: &Path, found: &mut BTreeMap<String, Entry>) -> anyhow::Result<()> {
    let Ok(entries) = folder.read_dir() else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        let name = path.strip_prefix(base)?.to_string_lossy().into_owned();
        if path.is_symlink() {
            found.insert(
                name,
                Entry::Link(std::fs::read_link(&path)?.to_string_lossy().into_owned()),
            );
        } else if path.is_dir() {
            read(&path, base, found)?;
        } else {
            found.insert(name, Entry::File(std::fs::read(&path)?));
        }
    }
    Ok(())
}
