//! The verdict over trials of GPUs, with counters of RDMA devices.

use insta::assert_snapshot;
use ncclctl_nccl::bandwidth::{Algorithm, Layout, node_bytes};
use ncclctl_nccl::{Collective, DataType, RedOp};

use super::{Basis, Outcome, Terms, judge};
use crate::evidence::{Edge, Evidence, Host, Point, Rank, Timing, Transport, WireWindow};

/// Nodes of 8 H100 and 8 InfiniBand NICs of 400 Gbit/s, one all-reduce of 8 GiB.
fn infiniband(nodes: usize, algorithm: &str, busbw: f64) -> Evidence {
    let mut e = Evidence { engine: "nccl".to_owned(), ..Evidence::default() };
    let ranks = nodes * 8;
    for h in 0..nodes {
        let (name, boot_id) = (format!("gpu{h}"), format!("boot-{h}"));
        e.hosts.push(Host { name, boot_id, netns: 1, cpus: 96.0, ..Host::default() });
        for g in 0..8 {
            let gpu = Some(format!("{g} [0000:{g:02}:00] NVIDIA H100 80GB HBM3"));
            e.ranks.push(Rank { host: h, gpu, ..Rank::default() });
        }
    }
    for from in 0..ranks {
        let to = (from + 1) % ranks;
        let apart = from / 8 != to / 8;
        e.edges.push(Edge {
            from,
            to,
            transport: if apart { Transport::Ib } else { Transport::Nvlink },
            gdr: apart.then_some(true),
            nic: apart.then(|| format!("mlx5_{}", from % 8)),
            connections: 1,
        });
    }
    let size = 8_u64 << 30;
    let algbw = busbw / Collective::AllReduce.busbw_factor(ranks);
    let mean_us = size as f64 / algbw / 1e3;
    e.series.push(Point {
        collective: Collective::AllReduce,
        dtype: DataType::Float32,
        op: Some(RedOp::Sum),
        root: None,
        in_place: false,
        size,
        count: size / 4,
        ranks,
        algorithm: algorithm.to_owned(),
        protocol: Some("SIMPLE".to_owned()),
        time: Timing { mean_us, operations: 20, converged: true, ..Timing::default() },
        algbw,
        busbw,
        earlier_busbw: Vec::new(),
        wrong: Some(0),
        wrong_ranks: Vec::new(),
    });
    let a = Algorithm::from_name(algorithm).unwrap();
    let bytes = node_bytes(Collective::AllReduce, a, Layout { ranks, nodes });
    for host in 0..nodes {
        for nic in 0..8 {
            let moved = (bytes.out * size as f64 * 20.0 / 8.0 * 1.01) as u64;
            e.wire.push(WireWindow {
                host,
                nic: format!("mlx5_{nic}"),
                point: 0,
                seconds: 20.0 * mean_us / 1e6,
                rx_bytes: moved,
                tx_bytes: moved,
                errors: 0,
                drops: 0,
                retransmits: None,
                segments: None,
                line_rate_bits: Some(400_000_000_000),
            });
        }
    }
    e
}

#[test]
fn four_healthy_nodes_by_ring() {
    let v = judge(&infiniband(4, "RING", 372.0), &Terms::default()).verdict;
    assert_eq!(v.outcome, Outcome::Pass, "{v:#?}");
    assert_snapshot!(v.summary, @"all_reduce 8G reached 372 GB/s, 97% of the 384 GB/s expected");
    assert_snapshot!(v.proofs.wire.says, @"376 GB/s at gpu0, 94% of line rate, as the algorithm must move");
    assert_snapshot!(v.proofs.transport.says, @"4 edges InfiniBand, 28 edges NVLink, 4 with GPUDirect RDMA");
    assert_eq!(v.expected.unwrap().basis, Basis::Model);
}

#[test]
fn two_nodes_by_tree_pass_over_the_line_rate_only_where_the_model_says_so() {
    let outcome = |algorithm, busbw| {
        judge(&infiniband(2, algorithm, busbw), &Terms::default()).verdict.outcome
    };
    // over two nodes a tree moves half of the bytes: 390 GB/s of 400 is broken, though it is 97%
    // of the NICs
    assert_eq!(outcome("NVLS_TREE", 450.0), Outcome::Pass);
    assert_eq!(outcome("NVLS_TREE", 390.0), Outcome::Inconclusive);
    assert_eq!(outcome("NVLS_TREE", 250.0), Outcome::Fail);
    assert_eq!(outcome("RING", 375.0), Outcome::Pass);
}

#[test]
fn one_nic_of_eight() {
    let mut e = infiniband(4, "RING", 48.0);
    for w in &mut e.wire {
        if w.nic == "mlx5_0" {
            w.tx_bytes *= 8;
            w.rx_bytes *= 8;
        } else {
            w.tx_bytes = 0;
            w.rx_bytes = 0;
        }
    }
    e.settings.insert("NCCL_IB_HCA".to_owned(), "mlx5_0".to_owned());
    let j = judge(&e, &Terms::default());
    assert_eq!(j.verdict.outcome, Outcome::Fail);
    assert_snapshot!(j.verdict.summary, @"all_reduce 8G reached 48 GB/s, 12% of the 384 GB/s expected: only mlx5_0 of 8 NICs of gpu0 carries traffic");
    assert_eq!(j.findings.len(), 4, "one a host: {:?}", j.findings);
    assert_snapshot!(format!("{}; {}", j.findings[0].message, j.findings[0].cause), @"only mlx5_0 of 8 NICs of gpu0 carries traffic; NCCL_IB_HCA=mlx5_0 is set");
}

#[test]
fn an_uneven_rail() {
    let mut e = infiniband(4, "RING", 300.0);
    for w in e.wire.iter_mut().filter(|w| w.host == 2 && w.nic == "mlx5_3") {
        w.tx_bytes /= 2;
        w.rx_bytes /= 2;
    }
    let j = judge(&e, &Terms::default());
    assert_eq!(j.verdict.outcome, Outcome::Fail);
    assert_snapshot!(j.findings[0].message, @"NICs of gpu2 are loaded unevenly: mlx5_0 37.9 GB/s, mlx5_3 18.9 GB/s");
}

#[test]
fn silent_tcp_is_far_under_what_the_nics_allow() {
    let mut e = infiniband(4, "RING", 3.2);
    for edge in e.edges.iter_mut().filter(|x| x.transport == Transport::Ib) {
        edge.transport = Transport::Socket;
        edge.gdr = None;
    }
    for w in &mut e.wire {
        w.tx_bytes = 0;
        w.rx_bytes = 0;
    }
    e.stated_line_rate_bits = None;
    assert_ne!(judge(&e, &Terms::default()).verdict.outcome, Outcome::Pass);
}

#[test]
fn one_node_by_nvlink_needs_no_nic() {
    let mut e = infiniband(1, "NVLS", 470.0);
    e.wire.clear();
    let v = judge(&e, &Terms::default()).verdict;
    assert_eq!(v.outcome, Outcome::Pass, "{v:#?}");
    assert_snapshot!(v.summary, @"all_reduce 8G reached 470 GB/s, 99% of the 476 GB/s expected");
}

#[test]
fn several_ranks_on_one_gpu_are_not_held_against_nvlink() {
    let mut e = infiniband(1, "RING", 30.0);
    for r in &mut e.ranks {
        r.gpu = Some("0 [0000:01:00] NVIDIA H200".to_owned());
    }
    e.wire.clear();
    let v = judge(&e, &Terms::default()).verdict;
    assert_eq!(v.outcome, Outcome::Inconclusive, "{v:#?}");
}
