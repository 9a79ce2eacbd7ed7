//! Made-up trials for tests: hosts on veth links of a known rate, or ranks on one host.

use ncclctl_facts::net::{Address, Interface, Kind};
use ncclctl_nccl::bandwidth::{Algorithm, Layout, node_bytes, rank_bytes};
use ncclctl_nccl::{Collective, DataType, RedOp};

use crate::evidence::{
    ChosenInterface, CpuWindow, Edge, Evidence, Host, PathRate, Phase, Point, Rank, Timing,
    Transport, WireWindow,
};

/// Payload of a gigabit link, bytes per second.
pub(crate) const GIGABIT: f64 = 117.7e6;

/// Operations behind each point.
const OPERATIONS: u64 = 40;

/// A healthy trial of that many hosts with one rank each, every link at `rate` bytes per second;
/// with one host, `ranks` ranks on it over loopback.
pub(crate) fn hosts(count: usize, rate: f64) -> Evidence {
    let mut e = Evidence { engine: "tcp".to_owned(), ..Evidence::default() };
    for h in 0..count {
        e.hosts.push(Host {
            name: format!("h{}", h + 1),
            boot_id: format!("boot-{h}"),
            netns: 1000 + h as u64,
            interfaces: vec![
                loopback(),
                interface("eth0", Kind::Veth, &format!("10.0.0.{}", h + 1)),
            ],
            cpus: 8.0,
            ..Host::default()
        });
        e.ranks.push(rank(h, "eth0", &format!("10.0.0.{}", h + 1)));
    }
    ring(&mut e, rate, "eth0");
    e.reduce_bps = vec![4e9; count];
    run(&mut e, 0.97);
    e
}

/// A healthy trial of ranks on one host of two processors.
pub(crate) fn local(ranks: usize, rate: f64) -> Evidence {
    let mut e = Evidence { engine: "tcp".to_owned(), ..Evidence::default() };
    e.hosts.push(Host {
        name: "laptop".to_owned(),
        boot_id: "boot".to_owned(),
        netns: 1,
        interfaces: vec![loopback(), interface("wlan0", Kind::Physical, "192.168.1.20")],
        cpus: 2.0,
        ..Host::default()
    });
    for _ in 0..ranks {
        e.ranks.push(rank(0, "wlan0", "192.168.1.20"));
    }
    ring(&mut e, rate, "lo");
    e.reduce_bps = vec![3e9; ranks];
    run(&mut e, 0.96);
    e
}

fn loopback() -> Interface {
    Interface {
        index: 1,
        name: "lo".to_owned(),
        kind: Kind::Loopback,
        running: true,
        mtu: 65536,
        addresses: vec![address("127.0.0.1", 8)],
        ..Interface::default()
    }
}

fn address(ip: &str, prefix: u8) -> Address {
    Address { ip: ip.parse().unwrap(), prefix }
}

/// An interface that runs, with one address of a /24.
pub(crate) fn interface(name: &str, kind: Kind, ip: &str) -> Interface {
    let physical = kind == Kind::Physical;
    Interface {
        index: 2,
        name: name.to_owned(),
        kind,
        running: true,
        mtu: 1500,
        addresses: vec![address(ip, 24)],
        driver: physical.then(|| "mlx5_core".to_owned()),
        pci: physical.then(|| "0000:3b:00.0".to_owned()),
        ..Interface::default()
    }
}

fn rank(host: usize, name: &str, address: &str) -> Rank {
    Rank {
        host,
        pid: 0,
        interfaces: vec![ChosenInterface {
            name: name.to_owned(),
            address: address.to_owned(),
            rule: "automatic: first that is neither docker nor lo".to_owned(),
        }],
        ..Rank::default()
    }
}

fn ring(e: &mut Evidence, rate: f64, nic: &str) {
    let n = e.ranks.len();
    for from in 0..n {
        let to = (from + 1) % n;
        e.edges.push(Edge {
            from,
            to,
            transport: Transport::Socket,
            gdr: None,
            nic: Some(nic.to_owned()),
            connections: 1,
        });
        for phase in [Phase::Before, Phase::After] {
            e.paths.push(path(from, to, phase, true, rate));
        }
    }
}

fn path(from: usize, to: usize, phase: Phase, all_at_once: bool, rate_bps: f64) -> PathRate {
    PathRate { from, to, phase, all_at_once, rate_bps, seconds: 0.3, round_trip_us: Some(60.0) }
}

/// Sets the rate of the ring path between two ranks, as measured before and after.
pub(crate) fn set_path(e: &mut Evidence, from: usize, to: usize, rate: f64) {
    for p in e.paths.iter_mut().filter(|p| (p.from, p.to) == (from, to)) {
        p.rate_bps = rate;
    }
}

/// Adds pair probes of all ranks, both directions, at the rate that `rate` gives.
pub(crate) fn probe_pairs(e: &mut Evidence, rate: impl Fn(usize, usize) -> f64) {
    for from in 0..e.ranks.len() {
        for to in (0..e.ranks.len()).filter(|to| *to != from) {
            e.paths.push(path(from, to, Phase::Blame, false, rate(from, to)));
        }
    }
}

/// Replaces the series: all-reduce at 8 bytes, 64 KiB, 1 MiB, 16 MiB and 64 MiB, at that share of
/// what the slowest ring path allows, with counters that agree.
pub(crate) fn run(e: &mut Evidence, share: f64) {
    let slowest =
        e.paths.iter().filter(|p| p.all_at_once).map(|p| p.rate_bps).fold(f64::INFINITY, f64::min);
    let n = e.ranks.len();
    let local = e.hosts.len() == 1;
    let (bytes, reduced) = rank_bytes(Collective::AllReduce, Algorithm::Ring, n);
    let per_byte =
        bytes * if local { 1.0 / slowest + reduced / e.reduce_bps[0] } else { 1.0 / slowest };
    e.series.clear();
    e.wire.clear();
    e.cpu.clear();
    for size in [8, 64 << 10, 1 << 20, 16 << 20, 64 << 20] {
        for in_place in [false, true] {
            let mean_us = 80.0 + size as f64 * per_byte * 1e6 / share;
            push(e, size, in_place, mean_us);
        }
    }
}

fn push(e: &mut Evidence, size: u64, in_place: bool, mean_us: f64) {
    let n = e.ranks.len();
    let index = e.series.len();
    let algbw = size as f64 / mean_us / 1e3;
    let small = size < 64 << 10;
    e.series.push(Point {
        collective: Collective::AllReduce,
        dtype: DataType::Float32,
        op: Some(RedOp::Sum),
        root: None,
        in_place,
        size,
        count: size / 4,
        ranks: n,
        algorithm: if small { "recursive doubling" } else { "ring" }.to_owned(),
        protocol: None,
        time: Timing {
            mean_us,
            ci95_us: 0.012 * mean_us,
            min_us: 0.97 * mean_us,
            median_us: mean_us,
            max_us: 1.04 * mean_us,
            operations: OPERATIONS,
            warmup: 5,
            converged: true,
            ..Timing::default()
        },
        algbw,
        busbw: algbw * Collective::AllReduce.busbw_factor(n),
        earlier_busbw: Vec::new(),
        wrong: Some(0),
        wrong_ranks: Vec::new(),
    });
    let nodes = e.hosts.len();
    let bytes = node_bytes(Collective::AllReduce, Algorithm::Ring, Layout { ranks: n, nodes });
    for host in 0..nodes {
        if nodes > 1 {
            let moved = (bytes.out * size as f64 * OPERATIONS as f64 * 1.05) as u64;
            let nic = e.ranks.iter().find(|r| r.host == host).unwrap().interfaces[0].name.clone();
            let believed = e.hosts[host]
                .interfaces
                .iter()
                .find(|i| i.name == nic)
                .and_then(Interface::line_rate_bits);
            e.wire.push(WireWindow {
                host,
                nic,
                point: index,
                seconds: mean_us * OPERATIONS as f64 / 1e6,
                rx_bytes: moved,
                tx_bytes: moved,
                errors: 0,
                drops: 0,
                retransmits: Some(0),
                segments: Some(moved / 1448),
                line_rate_bits: believed,
            });
        }
        let machine = e.hosts[host].cpus;
        e.cpu.push(CpuWindow {
            host,
            point: index,
            seconds: 0.5,
            busy_cpus: machine.min(2.0),
            machine_cpus: machine,
            stolen_cpus: 0.0,
            trial_cpus: 1.5,
            throttled_seconds: 0.0,
        });
    }
}

/// Gives every host a physical NIC of that speed in place of its veth.
pub(crate) fn physical(e: &mut Evidence, mbits: u64) {
    for host in &mut e.hosts {
        for i in host.interfaces.iter_mut().filter(|i| i.name == "eth0") {
            i.kind = Kind::Physical;
            i.pci = Some("0000:3b:00.0".to_owned());
            i.reported_mbits = Some(mbits);
        }
    }
}
