//! Evidence: what one trial left behind. Filled by the `trial` crate, judged by [`crate::rules`]
//! and the verdict, kept whole by `--save`.
//!
//! Units stand in the names: `_us` microseconds, `_bps` **bytes** per second, `_bits` bits per
//! second. Optional fields are `None` where the source could not be had, never a guess.

use std::collections::BTreeMap;

use ncclctl_facts::net::Interface;
use ncclctl_nccl::{Collective, DataType, RedOp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Everything that one trial left behind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Engine that moved the bytes: `tcp` or `nccl`.
    pub engine: String,
    /// NCCL settings that the ranks were given, by name.
    pub settings: BTreeMap<String, String>,
    /// Line rate that the user stated for every NIC, bits per second.
    pub stated_line_rate_bits: Option<u64>,
    /// The hosts, in order of their first rank. A host is one network namespace on one machine.
    pub hosts: Vec<Host>,
    /// The ranks; the index is the rank number.
    pub ranks: Vec<Rank>,
    /// Connections that carried data.
    pub edges: Vec<Edge>,
    /// Raw paths, measured before, after or for blame.
    pub paths: Vec<PathRate>,
    /// Raw paths over interfaces that were not chosen, measured to see whether one is faster.
    #[serde(default)]
    pub alternatives: Vec<Alternative>,
    /// Rate at which each rank reduces one buffer into another, bytes of result per second, while
    /// all ranks do so at once; the index is the rank number.
    pub reduce_bps: Vec<f64>,
    /// Results, in the order in which they were measured.
    pub series: Vec<Point>,
    /// Counters of NICs over the steady part of a point.
    pub wire: Vec<WireWindow>,
    /// Processor use of each host over the steady part of a point.
    pub cpu: Vec<CpuWindow>,
    /// Ranks that died, did not come or were cut off.
    pub failures: Vec<Failure>,
    /// What could not be measured, and why.
    pub not_measured: Vec<String>,
    /// What NCCL itself said, one record a rank.
    #[serde(default)]
    pub nccl: Vec<NcclRecord>,
    /// GPUs while the trial ran, one record a rank.
    #[serde(default)]
    pub gpus: Vec<GpuRecord>,
}

/// What NCCL told on one rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NcclRecord {
    /// Rank.
    pub rank: usize,
    /// File that the library was loaded from.
    pub library: String,
    /// Network that it chose: `Socket`, `IB`, a plug-in's name.
    pub network: Option<String>,
    /// Its line about channels: `2 coll channels, …`.
    pub channels: String,
    /// Settings that it found in force, by name.
    pub settings: BTreeMap<String, String>,
    /// Lines of its log.
    pub log_lines: u64,
    /// Lines among them that nothing here knows.
    pub unknown_lines: u64,
    /// Its warnings, at most 16.
    pub warnings: Vec<String>,
    /// What its built-in diagnostics printed (2.31 and later).
    pub diagnostics: Vec<String>,
}

/// One rank's GPU while the trial ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuRecord {
    /// Rank.
    pub rank: usize,
    /// PCI id, like `0000:01:00.0`.
    pub gpu: String,
    /// Name, like `NVIDIA H200`.
    pub name: String,
    /// Memory in all.
    pub memory_bytes: u64,
    /// Other ranks of this trial used the same GPU: a test mode.
    pub shared: bool,
    /// Bytes read and written per second while a buffer is copied in its memory, where one GPU is
    /// alone.
    pub copy_bps: Option<f64>,
    /// Readings, in order.
    pub samples: Vec<GpuSample>,
    /// Memory errors that could not be corrected, counted during the trial.
    pub uncorrected_errors: Option<u64>,
    /// Numbers of the driver's Xid errors during the trial.
    pub xids: Vec<u64>,
    /// Why there are no readings.
    pub missing: Option<String>,
}

/// One reading of a GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuSample {
    /// Seconds since the first reading.
    pub at_s: f64,
    /// Share of time in which a kernel ran, percent.
    pub load_percent: Option<u32>,
    /// Clock of the multiprocessors.
    pub sm_clock_mhz: Option<u32>,
    /// Clock of the memory.
    pub memory_clock_mhz: Option<u32>,
    /// What holds the clocks back, by NVML's names; idleness and user limits left out.
    pub throttled_by: Vec<String>,
    /// Power drawn.
    pub power_w: Option<f64>,
    /// Temperature.
    pub celsius: Option<u32>,
    /// PCIe bytes per second sent by the GPU.
    pub pcie_tx_bps: Option<u64>,
    /// PCIe bytes per second received by the GPU.
    pub pcie_rx_bps: Option<u64>,
    /// NVLink payload bytes sent since the driver was loaded.
    pub nvlink_tx_bytes: Option<u64>,
    /// NVLink payload bytes received since the driver was loaded.
    pub nvlink_rx_bytes: Option<u64>,
}

/// One host of the trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Name to show; unique in the trial.
    pub name: String,
    /// Kernel's boot id, empty where unreadable. Equal boot ids are one machine.
    pub boot_id: String,
    /// Inode of the network namespace, 0 where unreadable.
    pub netns: u64,
    /// Interfaces as seen in that namespace.
    pub interfaces: Vec<Interface>,
    /// Processors that this container may use: affinity mask and cgroup quota, whichever is less.
    pub cpus: f64,
    /// Bytes of memory that this container may still take, where readable.
    pub memory: Option<u64>,
    /// Ports that outgoing and listening sockets are given (`ip_local_port_range`), where readable.
    pub port_range: Option<(u16, u16)>,
    /// NCCL settings found in the worker's own environment, by name.
    pub environment: BTreeMap<String, String>,
}

/// One rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// Index into [`Evidence::hosts`].
    pub host: usize,
    /// Process id as its worker sees it.
    pub pid: u32,
    /// Interfaces that carry its data, in order of use.
    pub interfaces: Vec<ChosenInterface>,
    /// GPU, like `0 [0000:01:00] NVIDIA H200`; `None` for CPU engines.
    pub gpu: Option<String>,
    /// Version of the library that moved the bytes.
    pub version: Option<String>,
}

/// An interface that a rank chose, and by which rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChosenInterface {
    /// Interface name.
    pub name: String,
    /// Address without port.
    pub address: String,
    /// Which rule chose it, in words: `NCCL_SOCKET_IFNAME==eth0`, `automatic: …`.
    pub rule: String,
}

/// What carries an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TCP sockets.
    Socket,
    /// InfiniBand verbs.
    Ib,
    /// Verbs over Ethernet.
    Roce,
    /// Another network plug-in.
    Plugin,
    /// NVLink peer to peer.
    Nvlink,
    /// PCIe peer to peer.
    Pcie,
    /// Host shared memory.
    Shm,
    /// Not known.
    Unknown,
}

/// A directed connection between two ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Edge {
    /// Sending rank.
    pub from: usize,
    /// Receiving rank.
    pub to: usize,
    /// What carries it.
    pub transport: Transport,
    /// GPUDirect RDMA in use; `None` where it does not apply or is not known.
    pub gdr: Option<bool>,
    /// Device on the sending side through which the kernel routes it (`lo` for an own address).
    pub nic: Option<String>,
    /// Sockets or queue pairs in parallel.
    pub connections: u32,
}

/// Why a path was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Just before the sizes.
    Before,
    /// Just after the sizes.
    After,
    /// One pair at a time after a slow result, to find who is slow.
    Blame,
}

/// Rate of a raw stream from one rank to another, no collective involved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathRate {
    /// Sending rank.
    pub from: usize,
    /// Receiving rank.
    pub to: usize,
    /// Why it was measured.
    pub phase: Phase,
    /// Whether every ring edge streamed at the same time (else this pair alone, both directions).
    pub all_at_once: bool,
    /// Payload bytes per second as the receiver counted them.
    pub rate_bps: f64,
    /// Seconds measured.
    pub seconds: f64,
    /// Round trip of 8 bytes, microseconds, where measured.
    pub round_trip_us: Option<f64>,
}

/// Rate of a raw stream over an interface that the ranks did not choose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alternative {
    /// Interface on the sending side.
    pub interface: String,
    /// Sending rank.
    pub from: usize,
    /// Receiving rank.
    pub to: usize,
    /// Payload bytes per second as the receiver counted them, all edges at once.
    pub rate_bps: f64,
}

/// One line of the table: one collective at one size, in place or out of place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Collective.
    pub collective: Collective,
    /// Element type.
    pub dtype: DataType,
    /// Reduction, where the collective reduces.
    pub op: Option<RedOp>,
    /// Root, where the collective has one.
    pub root: Option<usize>,
    /// Whether send and receive buffer are one.
    pub in_place: bool,
    /// Bytes, as in the size column.
    pub size: u64,
    /// Elements, as in the count column.
    pub count: u64,
    /// Ranks that took part (a sweep may use fewer than all).
    pub ranks: usize,
    /// Algorithm that was used, like `ring`.
    pub algorithm: String,
    /// Protocol, where the engine has such a thing.
    pub protocol: Option<String>,
    /// Time of one operation.
    pub time: Timing,
    /// Gigabytes (10^9) per second: size / time.
    pub algbw: f64,
    /// algbw times the factor of the collective.
    pub busbw: f64,
    /// busbw of slower measurements of the same line, in the order in which they were made: a line
    /// that looks too slow is measured again before it counts, and the best one stands.
    #[serde(default)]
    pub earlier_busbw: Vec<f64>,
    /// Wrong elements over all ranks; `None` where not checked.
    pub wrong: Option<u64>,
    /// Ranks that had wrong elements.
    pub wrong_ranks: Vec<usize>,
}

/// Time of one operation: mean over ranks (as nccl-tests' default), then statistics over samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timing {
    /// Mean, microseconds.
    pub mean_us: f64,
    /// Half width of the 95% confidence interval of the mean, microseconds.
    pub ci95_us: f64,
    /// Least sample.
    pub min_us: f64,
    /// Median sample.
    pub median_us: f64,
    /// Greatest sample.
    pub max_us: f64,
    /// Operations that were timed in all.
    pub operations: u64,
    /// Operations run and thrown away until the time was steady.
    pub warmup: u64,
    /// Mean of the last third over mean of the first third, minus 1.
    pub drift: f64,
    /// Samples beyond the outer Tukey fences.
    pub outliers: u64,
    /// Whether the wanted precision was reached before the time ran out.
    pub converged: bool,
    /// Each sample, microseconds per operation.
    pub samples_us: Vec<f64>,
    /// Mean time of each rank, microseconds: who waits, and who is waited for.
    pub rank_mean_us: Vec<f64>,
}

/// Counters of one NIC over the steady part of one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WireWindow {
    /// Index into [`Evidence::hosts`].
    pub host: usize,
    /// Interface or RDMA device.
    pub nic: String,
    /// Index into [`Evidence::series`] that it belongs to.
    pub point: usize,
    /// Seconds between the two readings.
    pub seconds: f64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Receive and transmit errors.
    pub errors: u64,
    /// Packets dropped, both directions.
    pub drops: u64,
    /// TCP segments sent again by this host (namespace-wide), where readable.
    pub retransmits: Option<u64>,
    /// Segments sent by this host in the same time, where readable.
    pub segments: Option<u64>,
    /// Line rate that can be believed (a physical PCI NIC's), bits per second.
    pub line_rate_bits: Option<u64>,
}

/// Processor use of one host over the steady part of one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuWindow {
    /// Index into [`Evidence::hosts`].
    pub host: usize,
    /// Index into [`Evidence::series`] that it belongs to.
    pub point: usize,
    /// Seconds between the two readings.
    pub seconds: f64,
    /// Busy processors of the machine, mean (1.0 = one whole processor).
    pub busy_cpus: f64,
    /// Processors of the machine.
    pub machine_cpus: f64,
    /// Processors of these that the hypervisor gave to others meanwhile; 0 on bare metal.
    #[serde(default)]
    pub stolen_cpus: f64,
    /// Busy processors due to the trial's own ranks on this host.
    pub trial_cpus: f64,
    /// Seconds that the cgroup's quota held this container back.
    pub throttled_seconds: f64,
}

/// A rank or worker that was lost, and what was seen of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Rank, where it got that far.
    pub rank: Option<usize>,
    /// Host or worker name.
    pub host: String,
    /// Phase: `rendezvous`, `start`, `connect`, `run`, …
    pub phase: String,
    /// What was seen: `exited with signal 9`, `no answer for 10 s`, …
    pub seen: String,
}
