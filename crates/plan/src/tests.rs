use std::collections::BTreeMap;
use std::fmt::Write as _;

use ncclctl_nccl::params;
use ncclctl_nccl::version::Version;
use proptest::prelude::*;

use crate::node::Node;
use crate::result::{Goal, Plan, Transport};
use crate::{Request, plan, samples};

fn brief(plan: &Plan) -> String {
    let mut out = String::new();
    let _ =
        writeln!(out, "{} for NCCL {}: {}", plan.transport.name(), plan.nccl, plan.transport_why);
    for s in &plan.settings {
        let _ = writeln!(
            out,
            "set {}={} [{}] {} | without: {}",
            s.name, s.value, s.rule, s.reason, s.without
        );
    }
    for node in &plan.nodes {
        for s in &node.settings {
            let _ = writeln!(out, "on {} {}={} [{}]", node.name, s.name, s.value, s.rule);
        }
    }
    for n in &plan.needs {
        let _ = writeln!(out, "need {} ({:?}): {}", n.what, n.met, n.why);
    }
    for q in &plan.questions {
        let _ = writeln!(out, "ask {} {:?}: {}", q.rule, q.nodes, q.what);
    }
    for n in &plan.not_set {
        let _ = writeln!(out, "not {}: {}", n.name, n.why);
    }
    out
}

fn of(nodes: &[Node]) -> String {
    brief(&plan(nodes, Request::default()))
}

#[test]
fn a_laptop_needs_nothing() {
    insta::assert_snapshot!(of(&[samples::laptop()]), @r"
    TCP sockets for NCCL 2.32.6: no RDMA device on any node
    need a network in which ranks reach each other (None): ranks of different nodes meet on ephemeral ports, which no port mapping covers
    not NCCL_NET: no node has anything but sockets: NCCL takes them by itself
    not NCCL_SOCKET_IFNAME: NCCL takes wlp2s0 by itself on every node
    ");
}

#[test]
fn two_dgx() {
    insta::assert_snapshot!(of(&[samples::dgx(1), samples::dgx(2)]), @r"
    InfiniBand for NCCL 2.27.5: every node has InfiniBand
    set NCCL_SOCKET_IFNAME=eno1 [interface] 10.0.0.0/24 is the network that all nodes share; it carries the bootstrap only, the data goes over RDMA | without: NCCL takes ibp12s0 on dgx1
    set NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7 [hca] left out: mlx5_11:1 has another link layer; mlx5_10 is beside no GPU (nearest path SYS) | without: NCCL takes every active port: gradients go through storage or management ports too, and rails do not match
    need 8 GPUs with compute and utility (None): NCCL asks the driver and NVML for links and peers
    need /dev/shm of 8 GiB or more (Some(false)): it has 64 MiB; NCCL fails with `unhandled system error` when it is full
    need the RDMA device nodes (Some(true)): without them NCCL falls back to sockets without a message
    need unlimited locked memory (Some(true)): RDMA registers buffers in locked memory
    need a network in which ranks reach each other (Some(true)): ranks of different nodes meet on ephemeral ports, and the GIDs of RoCE belong to the network namespace of the interface
    not NCCL_NET: every node takes RDMA by itself
    not NCCL_IB_GID_INDEX: it is for RoCE; InfiniBand does not need it
    not NCCL_IB_SL: the subnet manager's mapping is not to be seen from a node; 0 is right unless the fabric says otherwise
    not NCCL_NET_GDR_LEVEL: ports sit beside GPUs under one switch: the default (PXB) reaches them
    not NCCL_TOPO_FILE: the PCI tree is to be seen: NCCL reads the real one
    not NCCL_P2P_DISABLE: nothing shows that peer access is broken
    not NCCL_SHM_DISABLE: a small /dev/shm is made larger, not avoided
    not NCCL_NVLS_ENABLE: NVSwitch is there: automatic uses it where it helps
    ");
}

#[test]
fn roce_with_an_old_nccl() {
    let mut second = samples::roce(2);
    second.interfaces[1].name = "bond1".into();
    second.interfaces[2].name = "bond1.2093".into();
    insta::assert_snapshot!(of(&[samples::roce(1), second]), @r#"
    RoCE for NCCL 2.18.5: every node has RoCE
    set NCCL_IB_GID_INDEX=3 [gid-index] NCCL 2.18.5 takes entry 0 by default, RoCE v1 or link-local; this is the RoCE v2 entry with an IPv4 address | without: ibv_modify_qp fails, or peers behind a router are not reached
    need 2 GPUs with compute and utility (None): NCCL asks the driver and NVML for links and peers
    need /dev/shm of 2 GiB or more (None): GPUs of one node without peer access speak through it; Docker gives 64 MiB
    need the RDMA device nodes (Some(true)): without them NCCL falls back to sockets without a message
    need unlimited locked memory (None): RDMA registers buffers in locked memory
    need a network in which ranks reach each other (None): ranks of different nodes meet on ephemeral ports, and the GIDs of RoCE belong to the network namespace of the interface
    ask acs-enabled ["roce1", "roce2"]: PCIe access control (ACS) redirects traffic between devices
    not NCCL_NET: every node takes RDMA by itself
    not NCCL_SOCKET_IFNAME: NCCL takes the right interface by itself on every node
    not NCCL_IB_HCA: every active RDMA port is fit for the job, and NCCL takes them all
    not NCCL_IB_TC: the class that the switches protect is not to be seen from a node: ask the network team for the DSCP, and write DSCP x 4
    not NCCL_NET_GDR_LEVEL: every path goes through the CPU (PHB), where GPUDirect RDMA is off by default; --goal throughput sets PHB, and `ncclctl bench` says whether that is faster
    not NCCL_TOPO_FILE: the PCI tree is to be seen: NCCL reads the real one
    not NCCL_P2P_DISABLE: nothing shows that peer access is broken
    not NCCL_SHM_DISABLE: a small /dev/shm is made larger, not avoided
    "#);
}

#[test]
fn a_pod_with_a_device_and_no_gid() {
    insta::assert_snapshot!(of(&[samples::pod(1, true)]), @r#"
    TCP sockets for NCCL 2.26.2: no GID with an address that peers can reach: the interface of the RDMA port is in another network namespace
    set NCCL_NET=Socket [common-transport] no GID with an address that peers can reach: the interface of the RDMA port is in another network namespace | without: NCCL tries RDMA all the same, and fails when it connects
    set NCCL_CUMEM_HOST_ENABLE=0 [cumem-host] seccomp refuses get_mempolicy without SYS_NICE | without: this release does not notice: init fails in the set-up of shared memory
    need 4 GPUs with compute and utility (None): NCCL asks the driver and NVML for links and peers
    need /dev/shm of 4 GiB or more (Some(false)): it has 64 MiB; NCCL fails with `unhandled system error` when it is full
    need the RDMA device nodes (Some(true)): without them NCCL falls back to sockets without a message
    need unlimited locked memory (Some(false)): the limit is 64 KiB: registration of buffers fails
    need a network in which ranks reach each other (None): ranks of different nodes meet on ephemeral ports, and the GIDs of RoCE belong to the network namespace of the interface
    ask silent-tcp-fallback ["worker-1"]: there are active RDMA ports that the job does not use
    not NCCL_SOCKET_IFNAME: NCCL takes eth0 by itself on every node
    not NCCL_P2P_DISABLE: nothing shows that peer access is broken
    not NCCL_SHM_DISABLE: a small /dev/shm is made larger, not avoided
    "#);
}

#[test]
fn a_mixed_fleet_takes_sockets() {
    let mut plain = samples::dgx(3);
    plain.name = "plain".into();
    plain.hcas.clear();
    insta::assert_snapshot!(of(&[samples::dgx(1), plain]), @r#"
    TCP sockets for NCCL 2.27.5: the nodes have not one RDMA network in common (dgx1 has InfiniBand; plain has TCP sockets): a job over both hangs in init unless all use sockets; this costs the RDMA rate on every node
    set NCCL_NET=Socket [common-transport] the nodes have not one RDMA network in common (dgx1 has InfiniBand; plain has TCP sockets): a job over both hangs in init unless all use sockets; this costs the RDMA rate on every node | without: dgx1 would try RDMA or a plug-in, the others sockets
    set NCCL_SOCKET_IFNAME=eno1 [interface] 10.0.0.0/24 is the network that all nodes share; it carries bootstrap and data | without: NCCL takes ibp12s0 on dgx1
    need 8 GPUs with compute and utility (None): NCCL asks the driver and NVML for links and peers
    need /dev/shm of 8 GiB or more (Some(false)): it has 64 MiB; NCCL fails with `unhandled system error` when it is full
    need a network in which ranks reach each other (Some(true)): ranks of different nodes meet on ephemeral ports, and the GIDs of RoCE belong to the network namespace of the interface
    ask silent-tcp-fallback ["dgx1"]: there are active RDMA ports that the job does not use
    not NCCL_TOPO_FILE: the PCI tree is to be seen: NCCL reads the real one
    not NCCL_P2P_DISABLE: nothing shows that peer access is broken
    not NCCL_SHM_DISABLE: a small /dev/shm is made larger, not avoided
    not NCCL_NVLS_ENABLE: NVSwitch is there: automatic uses it where it helps
    "#);
}

#[test]
fn azure_gets_its_file_and_efa_is_left_alone() {
    insta::assert_snapshot!(of(&[samples::azure(1), samples::azure(2)]), @r"
    InfiniBand for NCCL 2.27.5: every node has InfiniBand
    set NCCL_TOPO_FILE=/opt/microsoft/ndv4-topo.xml [topology-file] the provider's own file for this size | without: every GPU looks equally far from every NIC: rails are mixed up and GPUDirect RDMA stays off
    need 8 GPUs with compute and utility (None): NCCL asks the driver and NVML for links and peers
    need /dev/shm of 8 GiB or more (Some(false)): it has 64 MiB; NCCL fails with `unhandled system error` when it is full
    need the RDMA device nodes (Some(true)): without them NCCL falls back to sockets without a message
    need unlimited locked memory (Some(true)): RDMA registers buffers in locked memory
    need a network in which ranks reach each other (Some(true)): ranks of different nodes meet on ephemeral ports, which no port mapping covers
    not NCCL_NET: every node takes RDMA by itself
    not NCCL_SOCKET_IFNAME: NCCL takes eth0 by itself on every node
    not NCCL_IB_HCA: every active RDMA port is fit for the job, and NCCL takes them all
    not NCCL_IB_GID_INDEX: it is for RoCE; InfiniBand does not need it
    not NCCL_IB_SL: the subnet manager's mapping is not to be seen from a node; 0 is right unless the fabric says otherwise
    not NCCL_NET_GDR_LEVEL: the PCI tree is hidden: give NCCL a topology file first
    not NCCL_P2P_DISABLE: nothing shows that peer access is broken
    not NCCL_SHM_DISABLE: a small /dev/shm is made larger, not avoided
    not NCCL_NVLS_ENABLE: NVSwitch is there: automatic uses it where it helps
    ");
    insta::assert_snapshot!(of(&[samples::efa(1), samples::efa(2)]), @r"
    EFA for NCCL 2.27.5: every node has EFA
    need the OFI plug-in of AWS on the loader path (p5.48xlarge) (Some(true)): NCCL's own verbs transport can not use EFA: without it, TCP
    need 8 GPUs with compute and utility (None): NCCL asks the driver and NVML for links and peers
    need /dev/shm of 8 GiB or more (Some(false)): it has 64 MiB; NCCL fails with `unhandled system error` when it is full
    need the RDMA device nodes (Some(true)): without them NCCL falls back to sockets without a message
    need unlimited locked memory (Some(true)): RDMA registers buffers in locked memory
    need a network in which ranks reach each other (Some(true)): ranks of different nodes meet on ephemeral ports, which no port mapping covers
    not NCCL_NET: the provider's plug-in is taken first by itself
    not NCCL_NET_PLUGIN: libnccl-net.so of aws-ofi-nccl is found by its name once it is on the loader path
    not NCCL_PROTO: the OFI plug-in chooses for this instance type
    not NCCL_TOPO_FILE: the OFI plug-in brings the file of this instance type
    not NCCL_SOCKET_IFNAME: NCCL takes ens32 by itself on every node
    not NCCL_P2P_DISABLE: nothing shows that peer access is broken
    not NCCL_SHM_DISABLE: a small /dev/shm is made larger, not avoided
    not NCCL_NVLS_ENABLE: NVSwitch is there: automatic uses it where it helps
    ");
}

#[test]
fn mig_slices() {
    insta::assert_snapshot!(of(&[samples::mig()]), @r"
    TCP sockets for NCCL 2.31.2: no RDMA device on any node
    set NCCL_MNNVL_ENABLE=0 [multi-node-nvlink] ranks run on MIG slices | without: init looks for a fabric that a slice does not have
    need 4 GPUs with compute and utility (None): NCCL asks the driver and NVML for links and peers
    need /dev/shm of 4 GiB or more (Some(false)): it has 64 MiB; NCCL fails with `unhandled system error` when it is full
    need a network in which ranks reach each other (None): ranks of different nodes meet on ephemeral ports, which no port mapping covers
    not NCCL_NET: no node has anything but sockets: NCCL takes them by itself
    not NCCL_SOCKET_IFNAME: NCCL takes eth0 by itself on every node
    not NCCL_P2P_DISABLE: nothing shows that peer access is broken
    not NCCL_SHM_DISABLE: a small /dev/shm is made larger, not avoided
    not NCCL_CUMEM_HOST_ENABLE: get_mempolicy is refused here; this release notices and uses /dev/shm
    not NCCL_NVLS_ENABLE: MIG slices have no NVLink SHARP: automatic leaves it off
    ");
}

#[test]
fn what_is_there_is_questioned() {
    let mut node = samples::roce(1);
    for (name, value) in [
        ("NCCL_P2P_DISABLE", "1"),
        ("NCCL_IB_DISABLE", "true"),
        ("NCCL_TREE_THRESHOLD", "0"),
        ("NCCL_SOCKET_IFNAME", "bond0"),
        ("NCCL_IB_GID_INDEX", "0"),
        ("NCCL_PROTO", "LL128"),
        ("NCCL_DEBUG", "TRACE"),
    ] {
        node.settings.insert(name.to_owned(), value.to_owned());
    }
    let questions: Vec<String> = plan(&[node], Request::default())
        .questions
        .iter()
        .map(|q| format!("{:?} {}: {}", q.weight, q.rule, q.what))
        .collect();
    insta::assert_snapshot!(questions.join("\n"), @r"
    Error env-value-misread: NCCL_IB_DISABLE=true is read as 0
    Warning debug-output-left: NCCL_DEBUG=TRACE
    Warning gid-index-wrong: NCCL_IB_GID_INDEX=0 takes the first GID
    Warning env-workaround-left: NCCL_P2P_DISABLE=1 turns peer access off
    Warning ll128-forced: NCCL_PROTO=LL128 switches LL128 on
    Warning env-removed-name: NCCL_TREE_THRESHOLD is not read by NCCL 2.18.5
    Warning ifname-prefix-too-wide: NCCL_SOCKET_IFNAME=bond0 also takes bond0.2093
    Warning acs-enabled: PCIe access control (ACS) redirects traffic between devices
    Info env-differs-from-plan: NCCL_IB_GID_INDEX=0 is set; the plan has 3
    ");
}

#[test]
fn every_rule_has_an_id_of_its_own() {
    let mut ids: Vec<&str> = crate::rules::RULES.iter().map(|r| r.id).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

prop_compose! {
    fn any_node()(
        kind in 0_usize..9,
        n in 1_u8..9,
        name in "[a-z]{1,4}[0-9]",
        rename in proptest::option::of("(eno|enp|eth|bond|ib)[0-9]{1,2}"),
        drop_hca in 0_usize..12,
        openable in proptest::option::of(any::<bool>()),
        verbs in proptest::option::of(any::<bool>()),
        plugin in any::<bool>(),
        imex in proptest::option::of(any::<bool>()),
        clique in any::<bool>(),
        gdr in proptest::option::of(any::<bool>()),
        broken in any::<bool>(),
        nccl in proptest::option::of(4_u32..33),
    ) -> Node {
        let mut node = match kind {
            0 => samples::laptop(),
            1 => samples::dgx(n),
            2 => samples::roce(n),
            3 => samples::pod(n, true),
            4 => samples::pod(n, false),
            5 => samples::azure(n),
            6 => samples::efa(n),
            7 => samples::mig(),
            _ => Node { name: "bare".into(), ..Node::default() },
        };
        node.name = name;
        if let (Some(new), Some(last)) = (rename, node.interfaces.last_mut()) {
            if node.default_route.as_deref() == Some(last.name.as_str()) {
                node.default_route = Some(new.clone());
            }
            last.name = new;
        }
        if drop_hca < node.hcas.len() {
            node.hcas.remove(drop_hca);
        }
        for hca in &mut node.hcas {
            hca.openable = openable;
        }
        node.verbs = verbs;
        if plugin {
            node.net_plugins.push("libnccl-net.so".into());
        }
        node.fabric.imex = imex;
        node.fabric.clique = clique.then(|| "c.1".to_owned());
        node.gdr_ready = gdr;
        for gpu in &mut node.gpus {
            gpu.peer_broken = broken;
        }
        node.nccl = nccl.map(|minor| Version::new(2, minor, 5));
        node
    }
}

fn any_request() -> impl Strategy<Value = Request> {
    let goal = proptest::option::of(prop_oneof![
        Just(Goal::Throughput),
        Just(Goal::Latency),
        Just(Goal::Stability)
    ]);
    (proptest::option::of((4_u32..33, 2_u32..8)), goal).prop_map(|(version, goal)| Request {
        nccl: version.map(|(minor, patch)| Version::new(2, minor, patch)),
        goal,
    })
}

/// Names must differ, as host names do.
fn distinct(mut nodes: Vec<Node>) -> Vec<Node> {
    for (at, node) in nodes.iter_mut().enumerate() {
        node.name = format!("{}-{at}", node.name);
    }
    nodes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn never_a_name_that_the_version_does_not_read(
        nodes in prop::collection::vec(any_node(), 1..5), request in any_request()
    ) {
        let made = plan(&distinct(nodes), request);
        for s in made.all() {
            let known = params::get(&s.name);
            prop_assert!(known.is_some_and(|p| p.read_in(made.nccl)), "{} in {}", s.name, made.nccl);
            let taken = known.unwrap().taken(&s.value, made.nccl);
            prop_assert!(taken.trap.is_none(), "{}={}: {:?}", s.name, s.value, taken.trap);
        }
    }

    #[test]
    fn the_same_plan_for_the_same_nodes(
        nodes in prop::collection::vec(any_node(), 1..5), request in any_request()
    ) {
        let nodes = distinct(nodes);
        prop_assert_eq!(plan(&nodes, request), plan(&nodes, request));
    }

    #[test]
    fn planning_inside_its_own_result_changes_nothing(
        nodes in prop::collection::vec(any_node(), 1..5), request in any_request()
    ) {
        let mut nodes = distinct(nodes);
        let first = plan(&nodes, request);
        for node in &mut nodes {
            node.settings = first
                .of_node(&node.name)
                .into_iter()
                .map(|(name, s)| (name.to_owned(), s.value.clone()))
                .collect::<BTreeMap<_, _>>();
        }
        let second = plan(&nodes, request);
        prop_assert_eq!(&first, &second);
    }

    #[test]
    fn a_job_never_mixes_transports(
        nodes in prop::collection::vec(any_node(), 1..5), request in any_request()
    ) {
        let nodes = distinct(nodes);
        let made = plan(&nodes, request);
        let alone: Vec<Plan> = nodes
            .iter()
            .map(|n| plan(std::slice::from_ref(n), Request { nccl: Some(made.nccl), ..request }))
            .collect();
        let same = alone.iter().all(|p| p.transport == alone[0].transport);
        if !same {
            prop_assert_eq!(made.transport, Transport::Socket);
            let forced = made.settings.iter().any(|s| {
                (s.name == "NCCL_NET" && s.value == "Socket")
                    || (s.name == "NCCL_IB_DISABLE" && s.value == "1")
            });
            prop_assert!(forced, "{}", brief(&made));
        }
        // what ranks must share is never of one node alone
        for node in &made.nodes {
            for s in &node.settings {
                prop_assert!(!s.shared, "{} on {}", s.name, node.name);
            }
        }
    }
}
