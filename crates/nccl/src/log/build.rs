//! Builds the [`Model`] line by line.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::address;
use super::failure;
use super::line::{self, Level, Line};
use super::message::{self, Message};
use super::model::{
    At, Communicator, EDGE_LIMIT, Edge, Member, Model, NOTICE_LIMIT, Notice, Process, SIGNAL_LIMIT,
    Seen, Setting, TEXT_LIMIT, Table, Transport, UNKNOWN_LIMIT, Unknown,
};
use super::prefix;
use super::signal;
use super::time;
use crate::Version;

/// Bytes of one table that are kept.
const TABLE_LIMIT: usize = 1 << 22;

/// Takes lines in order and keeps what matters.
#[derive(Debug, Default)]
pub struct Builder {
    model: Model,
    source: u32,
    line: u64,
    /// Process by host and pid.
    by_name: HashMap<(Box<[u8]>, u32, u32), usize>,
    /// Process of the last line, with the bytes that named it.
    last: Option<(Box<[u8]>, u32, usize)>,
    by_comm: HashMap<String, usize>,
    by_notice: HashMap<(usize, u64), usize>,
    by_edge: HashMap<(usize, u64), ()>,
    /// Offset of the mark in the last line.
    hint: usize,
    /// A table is open: index into the model's tables.
    table: Option<usize>,
}

impl Builder {
    /// Begins a new input.
    pub fn source(&mut self, name: &str) {
        self.model.sources.push(name.to_owned());
        self.source = u32::try_from(self.model.sources.len() - 1).unwrap_or(u32::MAX);
        self.line = 0;
        self.last = None;
        self.table = None;
    }

    /// The model so far.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The finished model.
    pub fn finish(mut self) -> Model {
        self.adopt_versions();
        self.model
    }

    /// Takes one line without its newline.
    pub fn line(&mut self, raw: &[u8]) {
        self.line += 1;
        self.model.lines += 1;
        let mark = match line::mark_at(raw, self.hint) {
            Some((level, message)) => Some((self.hint, level, message)),
            None => line::find_mark(raw, 0),
        };
        let Some((mut start, mut level, mut message)) = mark else {
            self.foreign(raw);
            return;
        };
        self.hint = start;
        self.model.nccl_lines += 1;
        let mut text = raw;
        loop {
            let line = line::parse(text, start, level, message);
            let rest = line.rest;
            self.nccl(&line, raw);
            text = &text[rest..];
            match line::find_mark(text, 0) {
                Some(next) if rest > 0 => (start, level, message) = next,
                _ => break,
            }
        }
    }

    /// Several lines of other programs at once are not looked at for tables or signals.
    fn foreign(&mut self, raw: &[u8]) {
        self.table_line(raw);
        if raw.is_empty() {
            return;
        }
        let mut hits = Vec::new();
        signal::find(raw, |s| hits.push(s));
        if !hits.is_empty() {
            let at = self.at(raw);
            for hit in hits {
                let list = self.model.signals.entry(hit).or_default();
                if list.len() < SIGNAL_LIMIT {
                    list.push(at.clone());
                }
            }
        }
        if let Some(found) = memchr::memmem::find(raw, b"NCCL version ") {
            let text = String::from_utf8_lossy(&raw[found + 13..]);
            if let Some(version) = read_version(&text) {
                let at = self.at(raw);
                if self.model.versions.len() < 64 {
                    self.model.versions.push((version.0, at));
                }
                if let Some((_, _, process)) = self.last {
                    self.set_version(process, version);
                }
            }
        }
    }

    /// Gathers the text of nccl-tests tables.
    fn table_line(&mut self, raw: &[u8]) {
        let first = raw.iter().position(|b| !matches!(b, b' ' | b'\t'));
        let interesting = match first.map(|at| raw[at]) {
            Some(b'#') => true,
            Some(b'0'..=b'9' | b'[' | b'{') => true,
            None => self.table.is_some(),
            _ => memchr::memchr(b'#', raw).is_some(),
        };
        if !interesting {
            return;
        }
        let text = prefix::strip(line::trim_end(raw));
        let begins = text.starts_with(b"# nThread") || text.starts_with(b"# nccl-tests version");
        if begins {
            let joins = self.table.is_some_and(|t| {
                // the version line and the parameter line belong together
                self.model.tables[t].text.lines().count() < 4
                    && !self.model.tables[t].text.contains("# nThread")
            });
            if !joins {
                self.model.tables.push(Table {
                    source: self.source,
                    line: self.line,
                    text: String::new(),
                    lines: Vec::new(),
                });
                self.table = Some(self.model.tables.len() - 1);
            }
        }
        let Some(table) = self.table else { return };
        let row = text.first().is_none_or(|b| matches!(b, b'#' | b' ') || b.is_ascii_digit());
        if row {
            let kept = &mut self.model.tables[table];
            if kept.text.len() + text.len() < TABLE_LIMIT {
                kept.text.push_str(&String::from_utf8_lossy(text));
                kept.text.push('\n');
                kept.lines.push(self.line);
            }
        }
    }

    fn at(&self, raw: &[u8]) -> At {
        At { source: self.source, line: self.line, text: cut(raw) }
    }

    fn nccl(&mut self, line: &Line<'_>, raw: &[u8]) {
        let process = self.process(line, raw);
        let place = (self.source, self.line);
        let p = &mut self.model.processes[process];
        p.lines += 1;
        (p.last.source, p.last.line) = place;
        match line.level {
            Level::Warn => {
                self.notice(process, line, raw);
                let at = self.at(raw);
                let p = &mut self.model.processes[process];
                if p.first_warning.is_none() {
                    p.first_warning = Some(at);
                }
            }
            Level::Diag | Level::Attn => {
                if self.model.diagnostics.len() < SIGNAL_LIMIT {
                    let at = self.at(raw);
                    self.model.diagnostics.push(at);
                }
            }
            Level::Info => self.info(process, line, raw),
            Level::Trace | Level::Call | Level::Abort => {}
        }
    }

    fn process(&mut self, line: &Line<'_>, raw: &[u8]) -> usize {
        if let Some((host, pid, process)) = &self.last
            && *pid == line.pid
            && **host == *line.host
        {
            return *process;
        }
        if line.host.is_empty()
            && let Some((_, _, process)) = self.last
        {
            return process;
        }
        // a cut line without a host belongs to nobody else's
        let source = if line.host.is_empty() { self.source } else { u32::MAX };
        let key = (Box::from(line.host), line.pid, source);
        let count = self.model.processes.len();
        let process = *self.by_name.entry(key).or_insert(count);
        if process == count {
            let at = self.at(raw);
            self.model.processes.push(Process {
                host: String::from_utf8_lossy(line.host).into_owned(),
                pid: line.pid,
                source: self.source,
                device: line.device,
                last: at.clone(),
                first: at,
                ..Process::default()
            });
        }
        self.last = Some((Box::from(line.host), line.pid, process));
        process
    }

    fn info(&mut self, process: usize, line: &Line<'_>, raw: &[u8]) {
        let found = message::info(line.message);
        match found {
            Message::Tuning | Message::Operation(_) => {
                self.model.processes[process].operations += 1;
                return;
            }
            Message::Known => return,
            Message::Trail(_) => {
                self.model.processes[process].trails += 1;
                return;
            }
            Message::Channel(channel) => return self.edge(process, channel, raw),
            Message::Kept => return self.notice(process, line, raw),
            Message::Unknown => return self.unknown(line, raw),
            _ => {}
        }
        let at = self.at(raw);
        let stamp = time::seconds(line.before);
        let p = &mut self.model.processes[process];
        if let Some(now) = stamp {
            p.time = Some(p.time.map_or((now, now), |(first, _)| (first, now)));
        }
        match found {
            Message::Setting(name, value) => {
                p.settings
                    .entry(name.to_owned())
                    .or_insert_with(|| Setting { value: cut(value.as_bytes()), at });
            }
            Message::Version(text) => {
                if let Some(version) = read_version(text) {
                    self.set_version(process, version);
                }
            }
            Message::CudaDriver(driver) => p.cuda_driver = Some(driver),
            Message::Bootstrap(list) => {
                fill(&mut p.bootstrap, address::bound_list(list), at);
            }
            Message::NetSocket(list) => fill(&mut p.sockets, address::bound_list(list), at),
            Message::NetIb(list) => {
                let (ports, oob) = list.split_once(';').unwrap_or((list, ""));
                p.relaxed_ordering |= ports.contains("[RO]");
                p.oob = oob.trim().strip_prefix("OOB ").and_then(address::bound).or(p.oob.take());
                let ports = address::ports(ports);
                if !ports.is_empty() {
                    fill(&mut p.ports, ports, at);
                }
            }
            Message::NoIbDevice => {
                p.no_rdma.get_or_insert(at);
            }
            Message::Network(name) => fill(&mut p.network, name.to_owned(), at),
            Message::GdrHca(enabled, device) => {
                p.gdr.entry(device.to_owned()).or_insert((enabled, at));
            }
            Message::QueuePair(text) => {
                if let Some(qp) = failure::queue_pair(text)
                    && p.queue_pairs.len() < 256
                    && !p.queue_pairs.iter().any(|(have, _)| *have == qp)
                {
                    p.queue_pairs.push((qp, at));
                }
            }
            Message::Ring(channel, [previous, _, next]) if p.rings.len() < 256 => {
                p.rings.push((channel, previous, next));
            }
            Message::Order(channel, ranks) if p.orders.len() < 256 => {
                p.orders.push((channel, cut(ranks.as_bytes())));
            }
            Message::Trees(text) => p.trees = cut(text.as_bytes()),
            Message::Channels(text) => p.channels = cut(text.as_bytes()),
            Message::Connected => p.connected = true,
            Message::End(what, _, nranks) => {
                p.destroyed |= what == "Destroy COMPLETE";
                if nranks == 1 {
                    let id = format!("{}/{}", self.model.processes[process].name(), nranks);
                    self.member(process, id, 0, 1, |m| m.complete = true, raw);
                }
            }
            Message::Init(init) => self.init(process, &init, raw),
            Message::Nodes(nodes) => {
                let comm = self.model.processes[process]
                    .members
                    .iter()
                    .rev()
                    .find(|(c, r)| {
                        *r == nodes.rank && self.model.communicators[*c].nranks == nodes.nranks
                    })
                    .map(|(c, _)| *c);
                if let Some(comm) = comm {
                    let c = &mut self.model.communicators[comm];
                    c.nodes = Some(nodes.nodes);
                    c.mnnvl |= nodes.mnnvl;
                    if let Some(m) = c.members.get_mut(&nodes.rank) {
                        m.local_ranks = nodes.local_ranks;
                    }
                }
            }
            _ => {}
        }
    }

    fn init(&mut self, process: usize, init: &message::Init<'_>, raw: &[u8]) {
        let id = match init.comm_id {
            Some(id) => id.trim_end_matches('-').to_owned(),
            None => format!("{} ranks", init.nranks),
        };
        self.model.processes[process].complete |= init.complete;
        let device = init.nvml_dev.or(init.cuda_dev);
        let comm = self.member(
            process,
            id,
            init.rank,
            init.nranks,
            |m| {
                m.device = device.or(m.device);
                m.started |= !init.complete;
                m.complete |= init.complete;
                init.bus_id.clone_into(&mut m.bus_id);
            },
            raw,
        );
        self.model.communicators[comm].child |= init.child;
    }

    fn member(
        &mut self,
        process: usize,
        id: String,
        rank: u32,
        nranks: u32,
        change: impl FnOnce(&mut Member),
        raw: &[u8],
    ) -> usize {
        let at = self.at(raw);
        let comm = match self.by_comm.entry(id) {
            Entry::Occupied(found) => *found.get(),
            Entry::Vacant(slot) => {
                self.model.communicators.push(Communicator {
                    id: slot.key().clone(),
                    nranks,
                    ..Communicator::default()
                });
                *slot.insert(self.model.communicators.len() - 1)
            }
        };
        let member = self.model.communicators[comm].members.entry(rank).or_insert_with(|| Member {
            process,
            at,
            ..Member::default()
        });
        change(member);
        let p = &mut self.model.processes[process];
        if !p.members.contains(&(comm, rank)) {
            p.members.push((comm, rank));
        }
        comm
    }

    fn edge(&mut self, process: usize, channel: message::Channel<'_>, raw: &[u8]) {
        let (transport, gdr) = Transport::read(channel.via);
        let edge = Edge {
            channel: channel.channel,
            from: channel.from,
            to: channel.to,
            send: channel.send,
            transport,
            gdr,
        };
        if self.by_edge.insert((process, hash(&edge)), ()).is_some() {
            return;
        }
        let kind = edge.transport.kind();
        let new = !self.model.processes[process].edge_at.contains_key(kind);
        let at = new.then(|| self.at(raw));
        let p = &mut self.model.processes[process];
        if let Some(at) = at {
            p.edge_at.insert(kind, at);
        }
        if p.edges.len() < EDGE_LIMIT {
            p.edges.push(edge);
        } else {
            p.edges_dropped += 1;
        }
    }

    fn notice(&mut self, process: usize, line: &Line<'_>, raw: &[u8]) {
        let key = (process, shape_hash(line.message));
        if let Some(known) = self.by_notice.get(&key) {
            self.model.notices[*known].count += 1;
            return;
        }
        if self.model.notices.len() >= NOTICE_LIMIT {
            self.model.notices_dropped += 1;
            return;
        }
        self.by_notice.insert(key, self.model.notices.len());
        let notice = Notice {
            process,
            level: line.level,
            file: line.file.map(|f| String::from_utf8_lossy(f).into_owned()).unwrap_or_default(),
            text: cut(line.message),
            at: self.at(raw),
            time: time::seconds(line.before),
            count: 1,
        };
        self.model.notices.push(notice);
    }

    fn unknown(&mut self, line: &Line<'_>, raw: &[u8]) {
        let shape = shape(line.message);
        if let Some(known) = self.model.unknown.get_mut(&shape) {
            known.count += 1;
        } else if self.model.unknown.len() < UNKNOWN_LIMIT {
            let first = self.at(raw);
            self.model.unknown.insert(shape, Unknown { count: 1, first });
        } else if let Some(rest) = self.model.unknown.get_mut("") {
            rest.count += 1;
        } else {
            let first = self.at(raw);
            self.model.unknown.insert(String::new(), Unknown { count: 1, first });
        }
    }

    fn set_version(&mut self, process: usize, (version, cuda): (Version, Option<(u32, u32)>)) {
        let p = &mut self.model.processes[process];
        p.version.get_or_insert(version);
        p.cuda_build = p.cuda_build.or(cuda);
    }

    /// Processes of a job whose rank 0 alone prints the version have that version too.
    fn adopt_versions(&mut self) {
        let mut of_source: HashMap<u32, Version> = HashMap::new();
        for (version, at) in &self.model.versions {
            of_source.entry(at.source).or_insert(*version);
        }
        for p in &mut self.model.processes {
            if p.version.is_none() {
                p.version = of_source.get(&p.source).copied();
            }
        }
    }
}

fn fill<T: Default>(slot: &mut Seen<T>, value: T, at: At) {
    if !slot.is_seen() {
        *slot = Seen { value, at };
    }
}

fn read_version(text: &str) -> Option<(Version, Option<(u32, u32)>)> {
    let word = text.split([' ', '\t', '|']).next()?;
    let version = word.trim_end_matches('.').parse().ok()?;
    let cuda = word.split_once("+cuda").and_then(|(_, c)| {
        let (major, minor) = c.split_once('.')?;
        let minor = minor.trim_end_matches(|c: char| !c.is_ascii_digit());
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    Some((version, cuda))
}

fn cut(raw: &[u8]) -> String {
    let raw = line::trim_end(raw);
    if raw.len() <= TEXT_LIMIT {
        return String::from_utf8_lossy(raw).into_owned();
    }
    let mut text = String::from_utf8_lossy(&raw[..TEXT_LIMIT]).into_owned();
    text.push('…');
    text
}

/// The message with its numbers replaced: equal for lines that differ only in figures.
fn shape(message: &[u8]) -> String {
    let mut out = String::new();
    let mut digit = false;
    for c in String::from_utf8_lossy(&message[..message.len().min(160)]).chars() {
        let is = c.is_ascii_digit();
        if is && !digit {
            out.push('#');
        } else if !is {
            out.push(c);
        }
        digit = is;
    }
    out
}

/// A hash of the message in which the addresses of pointers do not count, but ports, devices and
/// peers do.
fn shape_hash(message: &[u8]) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    let mut at = 0;
    while at < message.len() {
        if message[at] == b'0' && message.get(at + 1) == Some(&b'x') {
            at += 2;
            while message.get(at).is_some_and(u8::is_ascii_hexdigit) {
                at += 1;
            }
            continue;
        }
        // ports inside <…> differ from call to call
        if message[at] == b'<' {
            while message.get(at).is_some_and(|b| *b != b'>') {
                at += 1;
            }
        }
        if let Some(byte) = message.get(at) {
            state = (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        at += 1;
    }
    state
}

fn hash(edge: &Edge) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    edge.hash(&mut hasher);
    hasher.finish()
}
