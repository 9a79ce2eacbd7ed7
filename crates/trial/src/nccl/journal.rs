//! This rank's NCCL log, read while it is written.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Read;

use ncclctl_findings::evidence::{ChosenInterface, Edge, NcclRecord, Transport};
use ncclctl_nccl::log::{Model, Reader, Transport as Via};

use super::card::Card;

/// Last lines that are kept for an error's text.
const LAST: usize = 3;

/// Reads the log as it grows.
#[derive(Default)]
pub(super) struct Journal {
    files: Vec<File>,
    reader: Reader,
    /// Start of a line whose end is not written yet.
    pending: Vec<u8>,
    last: VecDeque<String>,
    warning: Option<String>,
    /// Algorithm and protocol by NCCL's name of the function and size.
    chosen: BTreeMap<(String, u64), (String, String)>,
    /// The last choice for each function.
    recent: BTreeMap<String, (String, String)>,
}

impl Journal {
    /// A journal of those files; without any it stays empty.
    pub(super) fn open<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let files = paths.into_iter().filter_map(|path| File::open(path).ok()).collect();
        let mut reader = Reader::default();
        reader.source("NCCL log");
        Self { files, reader, ..Self::default() }
    }

    /// Takes what was written since the last time.
    pub(super) fn read(&mut self) {
        for mut file in std::mem::take(&mut self.files) {
            let mut bytes = Vec::new();
            if file.read_to_end(&mut bytes).is_ok() && !bytes.is_empty() {
                self.feed(&bytes);
            }
            self.files.push(file);
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.reader.feed(bytes);
        self.pending.extend_from_slice(bytes);
        let Some(end) = self.pending.iter().rposition(|b| *b == b'\n') else { return };
        let whole: Vec<u8> = self.pending.drain(..=end).collect();
        for line in String::from_utf8_lossy(&whole).lines().filter(|l| !l.trim().is_empty()) {
            if let Some(choice) = tuning(line) {
                let (function, bytes, algorithm, protocol) = choice;
                let pair = (algorithm, protocol);
                self.recent.insert(function.clone(), pair.clone());
                self.chosen.insert((function, bytes), pair);
                continue;
            }
            if line.contains("NCCL WARN") {
                self.warning.get_or_insert_with(|| said(line));
            }
            self.last.push_back(said(line));
            if self.last.len() > LAST {
                self.last.pop_front();
            }
        }
    }

    /// What NCCL said last, for an error's text: its first warning, else its last lines.
    pub(super) fn last_words(&mut self) -> String {
        self.read();
        match (&self.warning, self.last.is_empty()) {
            (Some(warning), _) => format!("; NCCL warned: {warning}"),
            (None, true) => String::new(),
            (None, false) => {
                let lines: Vec<&str> = self.last.iter().map(String::as_str).collect();
                format!("; last lines of its log: {}", lines.join(" | "))
            }
        }
    }

    /// Algorithm and protocol of a collective at a size, lower case.
    pub(super) fn choice(&self, function: &str, bytes: u64) -> Option<(String, String)> {
        self.chosen
            .get(&(function.to_owned(), bytes))
            .or_else(|| self.recent.get(function))
            .cloned()
    }

    /// What the log says so far.
    pub(super) fn model(&self) -> &Model {
        self.reader.model()
    }

    /// Interfaces that the network transport uses.
    pub(super) fn interfaces(&self, ifname: Option<&str>) -> Vec<ChosenInterface> {
        let Some(process) = self.model().processes.first() else { return Vec::new() };
        let rule = match ifname {
            Some(value) => format!("NCCL_SOCKET_IFNAME={value}"),
            None => "automatic, by NCCL".to_owned(),
        };
        let uses_sockets = process.network.value.is_empty() || process.network.value == "Socket";
        let bound = if uses_sockets { &process.sockets.value } else { &process.bootstrap.value };
        bound
            .iter()
            .map(|b| ChosenInterface {
                name: b.interface.clone(),
                address: b.ip.map(|ip| ip.to_string()).unwrap_or_default(),
                rule: rule.clone(),
            })
            .collect()
    }

    /// Edges on which `rank` sends, as the log shows them.
    pub(super) fn edges(&self, rank: usize, cards: &[Card], nvlinked: &[String]) -> Vec<Edge> {
        let Some(process) = self.model().processes.first() else { return Vec::new() };
        let mut edges: BTreeMap<usize, Edge> = BTreeMap::new();
        for seen in &process.edges {
            if seen.from as usize != rank || seen.send == Some(false) {
                continue;
            }
            let to = seen.to as usize;
            let peer = cards.get(to);
            let (transport, nic) = match &seen.transport {
                Via::P2p(_) => {
                    let linked = peer
                        .is_some_and(|p| nvlinked.iter().any(|id| id == "*" || *id == p.bus_id));
                    (if linked { Transport::Nvlink } else { Transport::Pcie }, None)
                }
                Via::Shm => (Transport::Shm, None),
                Via::CollNet => (Transport::Ib, None),
                Via::Net { name, device, .. } => {
                    let device = *device as usize;
                    match name.as_str() {
                        "Socket" => {
                            let own =
                                cards.get(rank).zip(peer).is_some_and(|(a, b)| a.same_host(b));
                            let nic = if own {
                                Some("lo".to_owned())
                            } else {
                                process.sockets.value.get(device).map(|b| b.interface.clone())
                            };
                            (Transport::Socket, nic)
                        }
                        "IB" => match process.ports.value.get(device) {
                            Some(port) if port.layer == "RoCE" => {
                                (Transport::Roce, Some(port.device.clone()))
                            }
                            port => (Transport::Ib, port.map(|p| p.device.clone())),
                        },
                        _ => (Transport::Plugin, None),
                    }
                }
            };
            let network = matches!(transport, Transport::Ib | Transport::Roce | Transport::Plugin);
            let edge = edges.entry(to).or_insert(Edge {
                from: rank,
                to,
                transport,
                gdr: network.then_some(seen.gdr),
                nic,
                connections: 0,
            });
            edge.connections += 1;
            if network {
                // one direction without it is a direction without it
                edge.gdr = edge.gdr.map(|all| all && seen.gdr);
            }
        }
        edges.into_values().collect()
    }

    /// What else the log tells, for the record.
    pub(super) fn remains(&self) -> NcclRecord {
        let model = self.model();
        let mut remains = NcclRecord {
            log_lines: model.nccl_lines,
            unknown_lines: model.unknown.values().map(|u| u.count).sum(),
            warnings: model.warnings().map(|w| w.text.clone()).take(16).collect(),
            diagnostics: model.diagnostics.iter().map(|at| at.text.clone()).collect(),
            ..NcclRecord::default()
        };
        if let Some(process) = model.processes.first() {
            remains.network =
                (!process.network.value.is_empty()).then(|| process.network.value.clone());
            remains.channels = process.channels.clone();
            remains.settings =
                process.settings.iter().map(|(k, v)| (k.clone(), v.value.clone())).collect();
        }
        remains
    }
}

/// The message of a line, without host, process and level.
fn said(line: &str) -> String {
    let text = ["NCCL WARN ", "NCCL INFO "]
        .iter()
        .find_map(|mark| line.split_once(mark).map(|(_, rest)| rest))
        .unwrap_or(line);
    text.trim().chars().take(240).collect()
}

/// Reads the line in which NCCL says what it chose for a call: from 2.24 by name
/// (`AllReduce: 4096 Bytes -> Algo RING proto LL …`), before by number
/// (`4096 Bytes -> Algo 1 proto 0 time …`, with the function's name from 2.23).
fn tuning(line: &str) -> Option<(String, u64, String, String)> {
    let (before, after) = line.split_once(" Bytes -> Algo ")?;
    let before = before.rsplit("NCCL INFO ").next()?;
    let (function, bytes) = match before.split_once(": ") {
        Some((function, bytes)) => (function.trim(), bytes),
        None => ("", before),
    };
    let mut words = after.split_ascii_whitespace();
    let algorithm = words.next()?;
    let protocol = if words.next()? == "proto" { words.next()? } else { return None };
    let algorithm = match algorithm {
        "0" => "tree",
        "1" => "ring",
        "2" => "collnet_direct",
        "3" => "collnet_chain",
        "4" => "nvls",
        "5" => "nvls_tree",
        "6" => "pat",
        name => name,
    };
    let protocol = match protocol {
        "0" => "LL",
        "1" => "LL128",
        "2" => "Simple",
        name => name,
    };
    let bytes = bytes.trim().parse().ok()?;
    Some((function.to_owned(), bytes, algorithm.to_ascii_lowercase(), protocol.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(lines: &[&str]) -> Journal {
        let mut journal = Journal::open([]);
        for line in lines {
            // in two pieces: a line may be read before it is whole
            let text = format!("{line}\n");
            let (a, b) = text.split_at(text.len() / 2);
            journal.feed(a.as_bytes());
            journal.feed(b.as_bytes());
        }
        journal
    }

    fn card(host: u64) -> Card {
        Card { machine: "m".to_owned(), netns: host, ..Card::default() }
    }

    #[test]
    fn what_was_chosen_by_name_and_by_number() {
        let j = journal(&[
            "vm:1:1 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}",
            "vm:1:1 [0] NCCL INFO AllReduce: 8192 Bytes -> Algo TREE proto SIMPLE channel{Lo..Hi}={0..1}",
        ]);
        assert_eq!(j.choice("AllReduce", 4096), Some(("ring".into(), "LL".into())));
        assert_eq!(j.choice("AllReduce", 1), Some(("tree".into(), "SIMPLE".into())));
        assert_eq!(j.choice("Broadcast", 1), None);
        let old = journal(&["vm:1:1 [0] NCCL INFO 4096 Bytes -> Algo 1 proto 2 time 9.6"]);
        assert_eq!(old.choice("", 4096), Some(("ring".into(), "Simple".into())));
    }

    #[test]
    fn edges_by_transport() {
        let lines = [
            "vm:7:7 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>",
            "vm:7:7 [0] NCCL INFO Using network Socket",
            "vm:7:7 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0",
            "vm:7:7 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0",
            "vm:7:7 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[0] [send] via NET/Socket/0",
            "vm:7:7 [0] NCCL INFO Channel 00/0 : 0[0] -> 2[1] via P2P/CUMEM/read",
            "vm:7:7 [0] NCCL INFO Channel 00 : 0[0] -> 3[2] via SHM/direct/direct",
        ];
        let cards = [card(1), card(2), card(1), card(1)];
        let shown = |cards: &[Card], nvlinked: &[String]| -> Vec<String> {
            journal(&lines)
                .edges(0, cards, nvlinked)
                .iter()
                .map(|e| format!("{} {:?} {:?} x{}", e.to, e.transport, e.nic, e.connections))
                .collect()
        };
        assert_eq!(
            shown(&cards, &["*".to_owned()]),
            ["1 Socket Some(\"eth0\") x2", "2 Nvlink None x1", "3 Shm None x1"]
        );
        let same = [card(1), card(1), card(1), card(1)];
        assert_eq!(
            shown(&same, &[]),
            ["1 Socket Some(\"lo\") x2", "2 Pcie None x1", "3 Shm None x1"]
        );
    }

    #[test]
    fn gdr_only_where_every_channel_has_it() {
        let line = |c: u32, gdr: &str| {
            format!("vm:7:7 [0] NCCL INFO Channel 0{c}/0 : 0[0] -> 1[0] [send] via NET/IB/0{gdr}")
        };
        let using =
            "vm:7:7 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>";
        let cards = [card(1), card(2)];
        let all = journal(&[using, &line(0, "/GDRDMA"), &line(1, "/GDRDMA")]).edges(0, &cards, &[]);
        assert_eq!((all[0].gdr, all[0].transport), (Some(true), Transport::Roce));
        assert_eq!(all[0].nic.as_deref(), Some("mlx5_0"));
        let some = journal(&[using, &line(0, "/GDRDMA"), &line(1, "")]).edges(0, &cards, &[]);
        assert_eq!(some[0].gdr, Some(false));
    }

    #[test]
    fn last_words_are_the_warning_else_the_last_lines() {
        let mut j = journal(&["h:1:2 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>"]);
        assert_eq!(j.last_words(), "; last lines of its log: Bootstrap: Using eth0:10.0.0.1<0>");
        j.feed(b"\nh:1:2 [0] misc/socket.cc:1 NCCL WARN no socket interface found\nh:1:2 [0] NCCL INFO a -> 3\n");
        assert_eq!(j.last_words(), "; NCCL warned: no socket interface found");
    }
}
