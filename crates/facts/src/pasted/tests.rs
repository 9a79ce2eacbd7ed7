use proptest::prelude::*;

use super::*;
use crate::topology::Path;

const PODS: &str = "## pod alg-0
$ ip -br addr
lo               UNKNOWN        127.0.0.1/8
eth0@if411       UP             10.233.71.14/32
net1@if9         UP             172.22.5.1/24
$ show_gids
DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV
---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---
mlx5_4\t1\t4\t0000:0000:0000:0000:0000:ffff:ac16:0501\t172.22.5.1  \tv1\tnet1
mlx5_4\t1\t5\t0000:0000:0000:0000:0000:ffff:ac16:0501\t172.22.5.1  \tv2\tnet1
n_gids_found=2
$ env | grep NCCL
NCCL_IB_GID_INDEX=5
## pod alg-1
$ ip -br addr
eth0@if207       UP             10.233.80.9/32
$ python3 -c \"import torch;print(torch.cuda.nccl.version())\"
(2, 13, 4)
";

#[test]
fn each_node_has_its_own() {
    assert!(recognise(PODS));
    let nodes = read(PODS);
    assert_eq!(nodes.len(), 2);
    let port = &nodes[0].rdma[0].ports[0];
    assert_eq!(port.gids.len(), 2);
    assert!(port.gids[1].is_v2() && !port.gids[0].is_v2());
    assert_eq!(port.netdev.as_deref(), Some("net1"));
    assert_eq!(nodes[0].environment["NCCL_IB_GID_INDEX"], "5");
    assert_eq!(nodes[0].interfaces[2].addresses[0].ip.to_string(), "172.22.5.1");
    assert_eq!(nodes[1].software.nccl_version(), Some(ncclctl_nccl::Version::new(2, 13, 4)));
}

#[test]
fn whole_ip_addr_and_ethtool() {
    let text = "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP group default\n\
                \x20   link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n\
                \x20   inet 10.0.0.5/24 brd 10.0.0.255 scope global eth0\n\
                \x20   inet6 fe80::1/64 scope link\n\
                Settings for eth0:\n\tSpeed: 100000Mb/s\n\tDuplex: Half\n";
    assert!(recognise(text));
    let node = &read(text)[0];
    let eth0 = &node.interfaces[0];
    assert_eq!((eth0.mtu, eth0.running, eth0.addresses.len()), (9000, true, 2));
    assert_eq!((eth0.reported_mbits, eth0.half_duplex), (Some(100_000), true));
}

#[test]
fn devices_of_ibstat_and_ibv_devinfo() {
    let ibstat = "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.36.1010\n\
                  \tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tBase lid: 17\n\
                  \t\tLink layer: InfiniBand\n";
    assert!(recognise(ibstat));
    let node = &read(ibstat)[0];
    let port = &node.rdma[0].ports[0];
    assert!(port.active());
    assert_eq!((port.mbits, port.lid), (Some(400_000), Some(17)));
    let devinfo = "hca_id:\tmlx5_1\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t28.36\n\
                   \t\tport:\t1\n\t\t\tstate:\t\t\tPORT_DOWN (1)\n\t\t\tlink_layer:\t\tEthernet\n";
    let port = &read(devinfo)[0].rdma[0].ports[0];
    assert_eq!(port.state, "DOWN");
    assert!(port.is_roce());
}

#[test]
fn a_topology_table_with_its_legend() {
    let text = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\n\
                GPU0\t X \tNV18\tPIX\t0-47\t0\n\
                GPU1\tNV18\t X \tSYS\t48-95\t1\n\
                NIC0\tPIX\tSYS\t X \n\n\
                NIC Legend:\n\n  NIC0: mlx5_0\n";
    assert!(recognise(text));
    let node = &read(text)[0];
    assert_eq!(node.gpus().len(), 2);
    assert_eq!(node.topology.path("GPU0", "GPU1"), Some(Path::Nvlink(18)));
    assert_eq!(node.topology.to_gpu("mlx5_0"), Some(Path::Pix));
    assert!(!node.topology.flat);
}

#[test]
fn logs_and_prose_are_no_facts() {
    assert!(!recognise("h:1:1 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>\n"));
    assert!(!recognise("# Results\n\nall is well\n"));
    assert!(!recognise(""));
    assert!(read("all is well\n").is_empty());
}

proptest! {
    #[test]
    fn no_text_panics(text in "(?s).{0,400}") {
        let _ = recognise(&text);
        let _ = read(&text);
    }

    #[test]
    fn no_mutilated_paste_panics(cut in 0usize..1200, flip in any::<u8>()) {
        let mut bytes = PODS.as_bytes().to_vec();
        bytes.truncate(cut);
        if let Some(last) = bytes.last_mut() { *last = flip; }
        let _ = read(&String::from_utf8_lossy(&bytes));
    }
}
