//! What an INFO message says. Classified by its first bytes, since most lines of a long log are of
//! a few kinds and the look-up is on the hot path.
//!
//! The text of each kind is that of every version from 2.4 to 2.32; where a version moved or
//! reworded a line, all forms are here and give the same [`Message`].

use std::str;

use memchr::memmem;

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// `<NAME> set by environment to <value>.`
    Setting(&'a str, &'a str),
    /// `NCCL version 2.21.5+cuda12.4`
    Version(&'a str),
    /// `cudaDriverVersion 12040`
    CudaDriver(u32),
    /// `Bootstrap : Using …`: list of interfaces.
    Bootstrap(&'a str),
    /// `NET/Socket : Using …`: list of interfaces.
    NetSocket(&'a str),
    /// `NET/IB : Using …`: list of ports with the set-up interface.
    NetIb(&'a str),
    /// `NET/IB : No device found.`
    NoIbDevice,
    /// `Using network <name>`
    Network(&'a str),
    /// Start of a communicator.
    Init(Init<'a>),
    /// `comm … nNodes …`
    Nodes(Nodes),
    /// `comm … - Destroy COMPLETE`, `Abort COMPLETE`: what, rank, nranks.
    End(&'a str, u32, u32),
    /// `Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA`
    Channel(Channel<'a>),
    /// `Ring 00 : 3 -> 0 -> 1`
    Ring(u32, [i32; 3]),
    /// `Channel 00/02 : 0 1 2 3`: ring order on rank 0.
    Order(u32, &'a str),
    /// `Trees [0] 1/-1/-1->0->-1 …`
    Trees(&'a str),
    /// `2 coll channels, …`
    Channels(&'a str),
    /// `Connected all rings` and kin.
    Connected,
    /// `AllReduce: 4096 Bytes -> Algo RING proto LL …`
    Tuning,
    /// `AllReduce: opCount …`
    Operation(&'a str),
    /// `GPU Direct RDMA Disabled for HCA …` and `Enabled`: enabled, device.
    GdrHca(bool, &'a str),
    /// `NET/IB: … mtu 5 … GID 3 (…)`
    QueuePair(&'a str),
    /// `transport/net.cc:1137 -> 6`
    Trail(u32),
    /// A line that a rule may want to see whole.
    Kept,
    /// A line that is known and says nothing here.
    Known,
    /// A line that no table here has.
    Unknown,
}

/// Start or end of a communicator's set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Init<'a> {
    /// Rank.
    pub rank: u32,
    /// Ranks in all.
    pub nranks: u32,
    /// CUDA device.
    pub cuda_dev: Option<i32>,
    /// NVML device.
    pub nvml_dev: Option<i32>,
    /// Bus id in hex.
    pub bus_id: &'a str,
    /// Communicator's id, equal on all ranks (2.16.2 and later).
    pub comm_id: Option<&'a str>,
    /// Split or shrunk from another.
    pub child: bool,
    /// Finished, else only begun.
    pub complete: bool,
}

/// How NCCL sees the nodes of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// Rank.
    pub rank: u32,
    /// Ranks in all.
    pub nranks: u32,
    /// Nodes.
    pub nodes: u32,
    /// Ranks on this node.
    pub local_ranks: u32,
    /// Multi-node NVLink in use.
    pub mnnvl: bool,
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel<'a> {
    /// Channel.
    pub channel: u32,
    /// Sending rank.
    pub from: u32,
    /// Receiving rank.
    pub to: u32,
    /// `[send]` or `[receive]` of a network line.
    pub send: Option<bool>,
    /// Text after `via`.
    pub via: &'a str,
}

/// Whether a message, to the end of its raw line, is one call of a collective and nothing else.
#[inline]
pub fn is_call(tail: &[u8]) -> bool {
    let Some(head) = tail.first_chunk::<4>() else { return false };
    if !matches!(
        head,
        b"AllR" | b"AllG" | b"AllT" | b"Redu" | b"Broa" | b"Send" | b"Recv" | b"Gath" | b"Scat"
    ) {
        return false;
    }
    let Some(colon) = tail[4..].iter().take(12).position(|b| *b == b':') else { return false };
    let rest = &tail[4 + colon + 1..];
    if rest.starts_with(b" opCount ") {
        return memmem::find(rest, b"NCCL ").is_none();
    }
    // `4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}`: another line's text in it would
    // not end so, or be longer
    rest.len() < 110
        && rest.get(1).is_some_and(u8::is_ascii_digit)
        && matches!(rest, [.., b'}'] | [.., b'}', b'\r'])
}

/// Reads an INFO message.
pub fn info(message: &[u8]) -> Message<'_> {
    if tuning(message) {
        return Message::Tuning;
    }
    // only ASCII up to what is cut off matters
    let Ok(text) = str::from_utf8(message) else {
        return match str::from_utf8(&message[..valid_up_to(message)]) {
            Ok(text) => classify(text),
            Err(_) => Message::Unknown,
        };
    };
    classify(text)
}

fn valid_up_to(bytes: &[u8]) -> usize {
    str::from_utf8(bytes).map_or_else(|e| e.valid_up_to(), str::len)
}

/// The line of one collective: by far the most common one in a long log.
#[inline]
fn tuning(message: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', &message[..message.len().min(24)]) else {
        return message.first().is_some_and(u8::is_ascii_digit)
            && memmem::find(message, b" Bytes -> Algo ").is_some();
    };
    let after = &message[colon + 1..];
    after.first() == Some(&b' ')
        && after.get(1).is_some_and(u8::is_ascii_digit)
        && memmem::find(&after[..after.len().min(40)], b" Bytes -> Algo ").is_some()
}

fn classify(text: &str) -> Message<'_> {
    match text.as_bytes().first() {
        Some(b'C') => {
            if let Some(rest) = text.strip_prefix("Channel ").or(text.strip_prefix("CollNet ")) {
                return channel(rest);
            }
            if text.starts_with("Connected ") {
                return Message::Connected;
            }
        }
        Some(b'R') => {
            if let Some(rest) = text.strip_prefix("Ring ") {
                return ring(rest);
            }
        }
        Some(b'B') => {
            if let Some(list) = after_any(text, &["Bootstrap : Using ", "Bootstrap: Using "]) {
                return Message::Bootstrap(list);
            }
        }
        Some(b'N') => {
            if let Some(m) = net(text) {
                return m;
            }
        }
        Some(b'U') => {
            if let Some(name) = text.strip_prefix("Using network ") {
                return Message::Network(name.trim_end());
            }
        }
        Some(b'T') => {
            if let Some(list) = text.strip_prefix("Trees ") {
                return Message::Trees(list);
            }
        }
        Some(b'G') => {
            if let Some(m) = gdr(text) {
                return m;
            }
        }
        Some(b'c') => {
            if let Some(number) = text.strip_prefix("cudaDriverVersion ") {
                return number.trim().parse().map_or(Message::Known, Message::CudaDriver);
            }
        }
        Some(b'0'..=b'9') if text.contains(" coll channels, ") => return Message::Channels(text),
        _ => {}
    }
    if let Some((name, value)) = setting(text) {
        return Message::Setting(name, value);
    }
    if text.contains("comm 0x")
        && let Some(m) = communicator(text)
    {
        return m;
    }
    if let Some((function, _)) = text.split_once(": opCount ") {
        return Message::Operation(function);
    }
    if let Some(code) = trail(text) {
        return Message::Trail(code);
    }
    if KEPT.iter().any(|k| text.contains(k)) {
        return Message::Kept;
    }
    if KNOWN.iter().any(|k| text.starts_with(k)) { Message::Known } else { Message::Unknown }
}

fn after_any<'a>(text: &'a str, heads: &[&str]) -> Option<&'a str> {
    heads.iter().find_map(|h| text.strip_prefix(h))
}

fn net(text: &str) -> Option<Message<'_>> {
    if let Some(version) = text.strip_prefix("NCCL version ") {
        return Some(Message::Version(version));
    }
    let list = after_any(text, &["NET/Socket : Using ", "NET/Socket: Using "]);
    if let Some(list) = list {
        return Some(if list.contains(" threads and ") {
            Message::Known
        } else {
            Message::NetSocket(list)
        });
    }
    if let Some(list) = after_any(text, &["NET/IB : Using ", "NET/IB: Using "]) {
        return Some(Message::NetIb(list));
    }
    if text.starts_with("NET/IB : No device found") || text.starts_with("NET/IB: No device found") {
        return Some(Message::NoIbDevice);
    }
    if text.starts_with("NET/") && text.contains("GPU Direct RDMA ") {
        return gdr(&text[text.find("GPU Direct RDMA ")?..]);
    }
    if text.starts_with("NET/IB") && text.contains(" mtu ") {
        return Some(Message::QueuePair(text));
    }
    if let Some((name, value)) = text.split_once(" set to ")
        && is_name(name)
    {
        return Some(Message::Setting(name, value.trim_end()));
    }
    None
}

fn gdr(text: &str) -> Option<Message<'_>> {
    let rest = text.strip_prefix("GPU Direct RDMA ")?;
    let (word, rest) = rest.split_once(' ')?;
    let enabled = word == "Enabled";
    if !rest.starts_with("for HCA ") {
        return Some(Message::Kept);
    }
    let device = rest.split('\'').nth(1).unwrap_or("");
    Some(Message::GdrHca(enabled, device))
}

fn setting(text: &str) -> Option<(&str, &str)> {
    let at = memmem::find(text.as_bytes(), b" set by environment to ")?;
    let name = &text[..at];
    let value = &text[at + " set by environment to ".len()..];
    let name = name.rsplit(' ').next().unwrap_or(name);
    if !is_name(name) {
        return None;
    }
    // numbers and level names end with a dot that is not part of the value
    let bare = value.strip_suffix('.').unwrap_or(value);
    let number = !bare.is_empty() && bare.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    Some((name, if number { bare } else { value.trim_end() }))
}

fn is_name(name: &str) -> bool {
    name.len() > 5
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

fn word_after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let at = text.find(key)? + key.len();
    let rest = &text[at..];
    Some(&rest[..rest.find(' ').unwrap_or(rest.len())])
}

fn number_after<T: str::FromStr>(text: &str, key: &str) -> Option<T> {
    word_after(text, key)?.trim_end_matches(['-', ',']).parse().ok()
}

fn communicator(text: &str) -> Option<Message<'_>> {
    let rank = number_after(text, " rank ")?;
    let nranks = number_after(text, " nranks ").or_else(|| number_after(text, " nRanks "))?;
    if text.contains(" nNodes ") {
        return Some(Message::Nodes(Nodes {
            rank,
            nranks,
            nodes: number_after(text, " nNodes ")?,
            local_ranks: number_after(text, " localRanks ").unwrap_or(0),
            mnnvl: number_after::<u32>(text, " MNNVL ") == Some(1),
        }));
    }
    let start = text.contains("Init START");
    let complete = text.contains("Init COMPLETE") || text.ends_with("- COMPLETE");
    if start || complete {
        return Some(Message::Init(Init {
            rank,
            nranks,
            cuda_dev: number_after(text, " cudaDev "),
            nvml_dev: number_after(text, " nvmlDev "),
            bus_id: word_after(text, " busId ").unwrap_or(""),
            comm_id: word_after(text, " commId "),
            child: text.contains(" parent 0x"),
            complete,
        }));
    }
    for what in ["Destroy COMPLETE", "Abort COMPLETE", "Abort START", "Destroy START", "Revoke"] {
        if text.contains(what) {
            return Some(Message::End(what, rank, nranks));
        }
    }
    None
}

/// After `Channel `: an order (`00/02 : 0 1 2`) or an edge (`00/0 : 0[0] -> 1[0] [send] via …`).
fn channel(rest: &str) -> Message<'_> {
    let Some((head, tail)) = rest.split_once(':') else { return Message::Known };
    let number = head.split('/').next().unwrap_or("").trim().parse();
    let Ok(channel) = number else { return Message::Known };
    if !tail.contains("via") {
        return Message::Order(channel, tail.trim());
    }
    edge(channel, tail.trim_start())
}

fn edge(channel: u32, tail: &str) -> Message<'_> {
    let read = || {
        let (pair, via) = tail.split_once(" via ")?;
        let (from, to) = pair.split_once("->")?;
        let rank = |t: &str| t.trim().split(['[', ' ', '(']).next()?.parse().ok();
        let send = if to.contains("[send]") {
            Some(true)
        } else if to.contains("[receive]") {
            Some(false)
        } else {
            None
        };
        Some(Channel { channel, from: rank(from)?, to: rank(to)?, send, via: via.trim_end() })
    };
    read().map_or(Message::Known, Message::Channel)
}

/// After `Ring `: neighbours, or an edge of versions up to 2.6.
fn ring(rest: &str) -> Message<'_> {
    let Some((head, tail)) = rest.split_once(':') else { return Message::Known };
    let Ok(channel) = head.trim().parse() else { return Message::Known };
    if tail.contains(" via ") {
        return edge(channel, tail.trim_start());
    }
    let mut ranks = [-1; 3];
    for (slot, part) in ranks.iter_mut().zip(tail.split("->")) {
        *slot = part.trim().parse().unwrap_or(-1);
    }
    Message::Ring(channel, ranks)
}

/// `file.cc:12 -> 3`, with a function and a thread's name where there is one.
fn trail(text: &str) -> Option<u32> {
    let (place, code) = text.split_once(" -> ")?;
    let file = place.split(" (").next()?;
    let (name, line) = file.rsplit_once(':')?;
    if name.is_empty() || name.contains(' ') || line.parse::<u32>().is_err() {
        return None;
    }
    code.split(' ').next()?.parse().ok()
}

/// Text of INFO lines that rules read whole.
pub const KEPT: &[&str] = &[
    "Failed to open libibverbs",
    "P2P is disabled between",
    "Could not enable P2P between",
    "peer access",
    "Could not find a path for pattern",
    "topology file",
    "Call to ibv_",
    "NET/OFI",
    "NET/FasTrak",
    "NET/GPUDirectTCPX",
    "NET/Plugin",
    "NET/gIB",
    "TUNER/Plugin",
    "P2P plugin",
    "Plugin Path",
    "net plugin",
    "NET plugin",
    "Loaded coll",
    "is less than CollNet node threshold",
    "MNNVL",
    "IMEX",
    "NVLS",
    "affinity for GPU",
    "Affinity for GPU",
    "speed change detected",
    "HINT:",
    "cuMem host allocations do not appear",
    "which requires driver",
    "fallocate",
    "discarding peer connection",
    "Local Net device counts",
    "Data Direct",
    "DMA-BUF is available",
    "Check P2P Type",
    "Init timings",
    "Pattern ",
    "NET/IB : Made virtual device",
    "Invalid value",
    "Comm config",
    "RAS ",
    "dlvsym",
    "Retry",
    "retry",
    "ailed",
    "rror",
];

/// First words of INFO lines that are known and carry nothing that is used here.
pub const KNOWN: &[&str] = &[
    " ",
    "+",
    "===",
    "ENV/Plugin",
    "PROFILER/Plugin",
    "GIN/Plugin",
    "RMA/Plugin",
    "DL/Plugin",
    "P2P Chunksize",
    "threadThresholds",
    "CC O",
    "Latency/AlgBw",
    "Algorithm",
    "Protocol",
    "Max NThreads",
    "AllReduce",
    "AllGather",
    "ReduceScatter",
    "Broadcast",
    "Reduce",
    "Send",
    "Recv",
    "[Proxy",
    "New proxy",
    "Connected to proxy",
    "Topology detection",
    "TOPO/NET",
    "ncclTopo",
    "ncclP2p",
    "CPU/",
    "GPU/",
    "NET/",
    "PCI/",
    "NVS/",
    "NIC/",
    "Tree ",
    "Comm ",
    "Could not get speed",
    "Allocated ",
    "MMAP ",
    "CUMEM ",
    "Mem ",
    "Bootstrap timings",
    "timings:",
    "Launch mode",
    "KV Convert",
    "Setting ",
    "Stack size",
    "Skipping",
    "Using non-device net plugin",
    "NVLS ",
    "comm ",
    "Proxy",
    "proxy",
    "Enabled NCCL",
    "Loading ",
    "Set ",
    "Intra-node",
    "Trying to load",
    "Duplicating rings",
    "Attribute",
    "Paths from",
    "Ring",
    "Rank ",
    "Symmetric",
    "ncclComm",
    "Successfully loaded",
    "Initialized NET",
    "Assigned",
    "cudaDriver",
    "git",
    "NCCL git",
    "[Service",
    "[Rank",
    "Bootstrap",
    "Channel",
    "NCCL_",
    "MNNVL",
    "GIN",
    "RMA",
    "init.cc",
    "Graph",
    "graph",
    "Search",
    "Pre-",
    "Post-",
    "Received",
    "Register",
    "register",
    "Dmabuf",
    "Cross",
    "Communicator",
    "Running",
    "Profiler",
    "Function",
    "Operation",
    "ncclGroup",
    "group",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_meaning_in_every_version() {
        let show = |t: &str| format!("{:?}", info(t.as_bytes()));
        insta::assert_snapshot!(
            [
                "NCCL_IB_TIMEOUT set by environment to 22.",
                "NCCL_SOCKET_IFNAME set by environment to ^lo,docker0",
                "NCCL_SOCKET_IFNAME set to eth2",
                "NCCL version 2.28.9+cuda13.0",
                "Bootstrap : Using [0]bond0:172.31.93.2<0>",
                "Bootstrap: Using eth0:10.0.0.1<0>",
                "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
                "NET/Socket: Using 2 threads and 8 sockets per thread",
                "Using network AWS Libfabric",
                "ncclCommInitRank comm 0x55 rank 1 nranks 2 cudaDev 0 nvmlDev 3 busId 4000 commId 0x5b - Init START",
                "comm 0x55 rank 0 nranks 16 cudaDev 0 busId 18000 - Init COMPLETE",
                "comm 0x9 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0",
                "comm 0x9 rank 0 nranks 1 cudaDev 0 busId d8000 - Destroy COMPLETE",
                "Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/7(3)/GDRDMA/Shared",
                "Channel 00 : 0[40] -> 1[50] via direct shared memory",
                "Ring 01 : 3[0] -> 0[0] via P2P/IPC",
                "Ring 00 : 1 -> 0 -> 1",
                "Channel 00/02 :    0   1   2   3",
                "AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}",
                "4096 Bytes -> Algo 1 proto 0 time 9.6",
                "AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 4 datatype 7 op 0 root 0 comm 0x3 [nranks=2] stream 0x4",
                "NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0' (no module)",
                "NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 27510 mtu 5 GID 3 (0/1001F0AFFFF0000)",
                "transport/net.cc:1137 -> 6",
                "init.cc:12 (ncclFoo) -> 3 [Async thread]",
                "Failed to open libibverbs.so[.1]",
                "something new",
            ]
            .map(show)
            .join("\n"),
            @r#"
            Setting("NCCL_IB_TIMEOUT", "22")
            Setting("NCCL_SOCKET_IFNAME", "^lo,docker0")
            Setting("NCCL_SOCKET_IFNAME", "eth2")
            Version("2.28.9+cuda13.0")
            Bootstrap("[0]bond0:172.31.93.2<0>")
            Bootstrap("eth0:10.0.0.1<0>")
            NetIb("[0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>")
            Known
            Network("AWS Libfabric")
            Init(Init { rank: 1, nranks: 2, cuda_dev: Some(0), nvml_dev: Some(3), bus_id: "4000", comm_id: Some("0x5b"), child: false, complete: false })
            Init(Init { rank: 0, nranks: 16, cuda_dev: Some(0), nvml_dev: None, bus_id: "18000", comm_id: None, child: false, complete: true })
            Nodes(Nodes { rank: 0, nranks: 2, nodes: 2, local_ranks: 1, mnnvl: false })
            End("Destroy COMPLETE", 0, 1)
            Channel(Channel { channel: 0, from: 7, to: 8, send: Some(true), via: "NET/IB/7(3)/GDRDMA/Shared" })
            Channel(Channel { channel: 0, from: 0, to: 1, send: None, via: "direct shared memory" })
            Channel(Channel { channel: 1, from: 3, to: 0, send: None, via: "P2P/IPC" })
            Ring(0, [1, 0, 1])
            Order(0, "0   1   2   3")
            Tuning
            Tuning
            Operation("AllReduce")
            GdrHca(false, "mlx5_0")
            QueuePair("NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 27510 mtu 5 GID 3 (0/1001F0AFFFF0000)")
            Trail(6)
            Trail(3)
            Kept
            Unknown
            "#
        );
    }

    proptest::proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..60)) {
            let _ = info(&bytes);
            for head in ["Channel ", "Ring ", "NCCL_IB ", "comm 0x1 rank 0 nranks 2 ", "NET/IB : "] {
                let mut raw = head.as_bytes().to_vec();
                raw.extend_from_slice(&bytes);
                let _ = info(&raw);
            }
        }
    }
}
