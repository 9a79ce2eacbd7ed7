//! What a log tells: who ran, over what, with which settings, and what went wrong.
//!
//! The model's size is bounded by the number of processes and channels, never by the length of the
//! log: repeated lines are counted, long texts are cut, and each list has a stated limit.

use std::collections::BTreeMap;

use serde::Serialize;

use super::address::{Bound, Port};
use super::failure::QueuePair;
use super::line::Level;
use super::signal::Signal;
use crate::Version;

/// Characters of a line that are kept.
pub const TEXT_LIMIT: usize = 480;
/// Warnings and kept lines a log may have in all; more are only counted.
pub const NOTICE_LIMIT: usize = 16_384;
/// Lines kept of one kind of signal; more are only counted.
pub const SIGNAL_LIMIT: usize = 256;
/// Kinds of unknown lines that are told apart.
pub const UNKNOWN_LIMIT: usize = 1_024;
/// Connections kept of one process.
pub const EDGE_LIMIT: usize = 4_096;

/// A place in the input: which source, which line (from 1), and the line itself, cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct At {
    /// Index into [`Model::sources`].
    pub source: u32,
    /// Line, from 1.
    pub line: u64,
    /// The line's text.
    pub text: String,
}

/// Everything that the log tells.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Model {
    /// Names of the inputs.
    pub sources: Vec<String>,
    /// Lines read in all.
    pub lines: u64,
    /// Lines of NCCL among them.
    pub nccl_lines: u64,
    /// Processes, in the order of their first line.
    pub processes: Vec<Process>,
    /// Communicators, in the order of their first line.
    pub communicators: Vec<Communicator>,
    /// Warnings, and INFO lines that rules read whole; in the order of the log.
    pub notices: Vec<Notice>,
    /// Notices beyond the limit.
    pub notices_dropped: u64,
    /// Foreign lines that tell something.
    pub signals: BTreeMap<Signal, Vec<At>>,
    /// What the built-in diagnostics printed.
    pub diagnostics: Vec<At>,
    /// INFO lines that no table has, grouped by shape.
    pub unknown: BTreeMap<String, Unknown>,
    /// Library versions printed on lines without a process.
    pub versions: Vec<(Version, At)>,
    /// Tables of nccl-tests: the lines, without prefix.
    pub tables: Vec<Table>,
}

/// Lines of NCCL that no table has, of one shape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// How often.
    pub count: u64,
    /// The first of them.
    pub first: At,
}

/// Text of one nccl-tests run found in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Index into [`Model::sources`].
    pub source: u32,
    /// Line of the first line, from 1.
    pub line: u64,
    /// The text, prefixes taken off.
    pub text: String,
    /// Line of the input for each line of the text.
    pub lines: Vec<u64>,
}

/// One process that printed NCCL lines.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Process {
    /// Host name as NCCL prints it; empty where only cut lines were seen.
    pub host: String,
    /// Process id in its own namespace.
    pub pid: u32,
    /// Input in which it was first seen.
    pub source: u32,
    /// CUDA device of its first line.
    pub device: Option<i32>,
    /// First line.
    pub first: At,
    /// Last line.
    pub last: At,
    /// Time of the first and last line that had one, seconds.
    pub time: Option<(f64, f64)>,
    /// Lines.
    pub lines: u64,
    /// NCCL's version.
    pub version: Option<Version>,
    /// CUDA version that NCCL was built with: 12.4 is (12, 4).
    pub cuda_build: Option<(u32, u32)>,
    /// CUDA version of the driver, 12040 is 12.4.
    pub cuda_driver: Option<u32>,
    /// Settings in force.
    pub settings: BTreeMap<String, Setting>,
    /// Interface of the rendezvous; several in old versions.
    pub bootstrap: Seen<Vec<Bound>>,
    /// Interfaces of the socket transport.
    pub sockets: Seen<Vec<Bound>>,
    /// RDMA ports in use.
    pub ports: Seen<Vec<Port>>,
    /// Interface that the RDMA transport uses for set-up.
    pub oob: Option<Bound>,
    /// Relaxed ordering in use.
    pub relaxed_ordering: bool,
    /// NCCL found no usable RDMA device.
    pub no_rdma: Option<At>,
    /// Network chosen: `IB`, `Socket`, or a plugin's name.
    pub network: Seen<String>,
    /// Driver-level GPUDirect per RDMA device.
    pub gdr: BTreeMap<String, (bool, At)>,
    /// GID and MTU of connections, each combination once.
    pub queue_pairs: Vec<(QueuePair, At)>,
    /// Communicators it belongs to: index and rank.
    pub members: Vec<(usize, u32)>,
    /// Connections, each once.
    pub edges: Vec<Edge>,
    /// Connections beyond the limit.
    pub edges_dropped: u64,
    /// First line of each kind of transport.
    pub edge_at: BTreeMap<&'static str, At>,
    /// Ring neighbours: channel, previous, next.
    pub rings: Vec<(u32, i32, i32)>,
    /// Tree text of each channel as printed, at most one line.
    pub trees: String,
    /// Ring order of each channel (rank 0 prints it): channel and ranks.
    pub orders: Vec<(u32, String)>,
    /// `2 coll channels, …`
    pub channels: String,
    /// Rings or trees were connected.
    pub connected: bool,
    /// A communicator finished its set-up.
    pub complete: bool,
    /// A communicator was destroyed in order.
    pub destroyed: bool,
    /// Collective calls seen (COLL or TUNING lines).
    pub operations: u64,
    /// Error codes on the way out: `file:line -> code`.
    pub trails: u64,
    /// First warning.
    pub first_warning: Option<At>,
}

/// A value and the line that told it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Seen<T> {
    /// Value, empty where never seen.
    pub value: T,
    /// Line.
    pub at: At,
}

/// A setting in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Value as NCCL prints it.
    pub value: String,
    /// Line.
    pub at: At,
}

/// One communicator over all inputs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Communicator {
    /// Id, equal on all ranks; made up from the size where the version prints none.
    pub id: String,
    /// Ranks in all.
    pub nranks: u32,
    /// Split or shrunk from another.
    pub child: bool,
    /// Nodes as NCCL counts them.
    pub nodes: Option<u32>,
    /// Multi-node NVLink in use.
    pub mnnvl: bool,
    /// Ranks seen.
    pub members: BTreeMap<u32, Member>,
}

/// A rank of a communicator.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Member {
    /// Index into [`Model::processes`].
    pub process: usize,
    /// NVML device, else CUDA device.
    pub device: Option<i32>,
    /// Bus id in hex.
    pub bus_id: String,
    /// Ranks on its node, as NCCL counts them.
    pub local_ranks: u32,
    /// Set-up began.
    pub started: bool,
    /// Set-up finished.
    pub complete: bool,
    /// Its line.
    pub at: At,
}

/// What carries a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Peer to peer on one node: the text after `P2P/`.
    P2p(String),
    /// Shared memory.
    Shm,
    /// A network: name, device number, rank that relays (PXN).
    Net {
        /// Network's name: `IB`, `Socket`, a plugin's.
        name: String,
        /// NCCL's device number.
        device: u32,
        /// Rank whose NIC is used instead of the own one.
        relay: Option<u32>,
    },
    /// SHARP.
    CollNet,
}

/// One direction of one channel between two ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Edge {
    /// Channel.
    pub channel: u32,
    /// Sender.
    pub from: u32,
    /// Receiver.
    pub to: u32,
    /// The sender's view, the receiver's view, or not said.
    pub send: Option<bool>,
    /// What carries it.
    pub transport: Transport,
    /// GPUDirect RDMA used in this direction.
    pub gdr: bool,
}

/// A warning, or an INFO line that a rule may want to read.
#[derive(Clone, Debug, Serialize)]
pub struct Notice {
    /// Index into [`Model::processes`].
    pub process: usize,
    /// Level of the line.
    #[serde(skip)]
    pub level: Level,
    /// Source file that printed it, empty for INFO.
    pub file: String,
    /// The message.
    pub text: String,
    /// Place of the first of them.
    pub at: At,
    /// Seconds, where the line had a time.
    pub time: Option<f64>,
    /// How often this process printed it, numbers aside.
    pub count: u64,
}

impl Transport {
    /// Reads the text after `via`.
    pub fn read(via: &str) -> (Self, bool) {
        let gdr = via.contains("/GDRDMA");
        if let Some(kind) = via.strip_prefix("P2P/") {
            return (Self::P2p(kind.split('/').next().unwrap_or(kind).to_owned()), gdr);
        }
        if via.starts_with("SHM") || via.starts_with("direct shared memory") {
            return (Self::Shm, gdr);
        }
        if via.starts_with("COLLNET/") {
            return (Self::CollNet, gdr);
        }
        if let Some(rest) = via.strip_prefix("NET/") {
            let mut parts = rest.split('/');
            let name = parts.next().unwrap_or("").to_owned();
            let device = parts.next().unwrap_or("0");
            let (number, relay) = match device.split_once('(') {
                Some((n, r)) => (n, r.trim_end_matches(')').parse().ok()),
                None => (device, None),
            };
            return (Self::Net { name, device: number.parse().unwrap_or(0), relay }, gdr);
        }
        (Self::P2p(via.split(' ').next().unwrap_or(via).to_owned()), gdr)
    }

    /// Kind in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::P2p(_) => "P2P",
            Self::Shm => "SHM",
            Self::Net { .. } => "NET",
            Self::CollNet => "COLLNET",
        }
    }
}

impl Process {
    /// A setting's value.
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.get(name)
    }

    /// `host:pid`.
    pub fn name(&self) -> String {
        format!("{}:{}", self.host, self.pid)
    }
}

impl<T> Seen<T> {
    /// Whether it was seen at all.
    pub fn is_seen(&self) -> bool {
        self.at.line > 0
    }
}

impl Model {
    /// Warnings and kept lines whose text has one of these parts.
    pub fn notices_with<'a>(&'a self, parts: &'a [&'a str]) -> impl Iterator<Item = &'a Notice> {
        self.notices.iter().filter(move |n| parts.iter().any(|p| n.text.contains(p)))
    }

    /// Warnings only.
    pub fn warnings(&self) -> impl Iterator<Item = &Notice> {
        self.notices.iter().filter(|n| n.level == Level::Warn)
    }

    /// Lines of a signal.
    pub fn signal(&self, signal: Signal) -> &[At] {
        self.signals.get(&signal).map_or(&[], Vec::as_slice)
    }

    /// NCCL version of a process: its own, else the only one that the log prints.
    pub fn version_of(&self, process: usize) -> Option<Version> {
        self.processes.get(process).and_then(|p| p.version).or_else(|| self.version())
    }

    /// The version of the run: the first one printed anywhere.
    pub fn version(&self) -> Option<Version> {
        self.versions
            .first()
            .map(|(v, _)| *v)
            .or_else(|| self.processes.iter().find_map(|p| p.version))
    }

    /// Distinct host names, in order.
    pub fn hosts(&self) -> Vec<&str> {
        let mut hosts: Vec<&str> = Vec::new();
        for p in &self.processes {
            if !p.host.is_empty() && !hosts.contains(&p.host.as_str()) {
                hosts.push(&p.host);
            }
        }
        hosts
    }
}
