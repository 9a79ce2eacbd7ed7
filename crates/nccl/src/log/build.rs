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

/// Foreign lines after which a table is over.
const TABLE_GAP: u64 = 1000;

/// Takes lines in order and keeps what matters.
#[derive(Debug, Default)]
pub struct Builder {
    model: Model,
    source: u32,
    line: u64,
    /// Process by host and pid.
    by_name: HashMap<(Box<[u8]>, u32, u32), usize>,
    /// Process of the last line.
    last: Option<usize>,
    /// Headers seen lately, by a hash of their bytes.
    headers: Vec<Option<Cached<usize>>>,
    /// Whole lines seen lately, by a hash of their bytes: process and effect.
    lines: Vec<Option<Cached<(usize, Again)>>>,
    /// Unknown lines by their shape.
    unknown: Vec<(String, Unknown)>,
    by_shape: HashMap<String, usize>,
    /// Where host and mark stood in the last lines that differ in it.
    layouts: [(usize, usize); 4],
    by_comm: HashMap<String, usize>,
    by_notice: HashMap<(usize, u64), usize>,
    by_edge: HashMap<(usize, u64), ()>,
    /// Offset of the mark in the last line.
    hint: usize,
    /// A table is open: index into the model's tables.
    table: Option<usize>,
    /// Last line of it.
    table_seen: u64,
}

/// Bytes of a line from the host's name on, or up to the mark, and what they mean.
#[derive(Debug)]
struct Cached<T> {
    bytes: Box<[u8]>,
    value: T,
}

/// What a line does when it comes once more, word for word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// Nothing but being counted as a line of its process.
    Nothing,
    /// One more call of a collective.
    Operation,
    /// One more step of an error's way out.
    Trail,
    /// One more of a notice.
    Notice(usize),
    /// One more of an unknown line.
    Unknown(usize),
}

/// Slots of the header cache; several times the ranks of a large host.
const HEADERS: usize = 1024;
/// Slots of the cache of whole lines.
const LINES: usize = 8192;
/// Longest line that it holds.
const LINE_WIDTH: usize = 400;

impl Builder {
    /// Takes a line that is known already: one that came before word for word, or one call of a
    /// collective by a process that is known. Almost every line of a long log is one.
    #[inline]
    pub fn known(&mut self, raw: &[u8]) -> bool {
        for at in 0..self.layouts.len() {
            let (host, mark) = self.layouts[at];
            if mark <= host || raw.get(mark..).is_none_or(|t| !t.starts_with(b"NCCL ")) {
                continue;
            }
            let header = &raw[host..mark];
            let Some(Some(seen)) = self.headers.get(slot(header, HEADERS)) else { continue };
            if *seen.bytes != *header {
                continue;
            }
            let process = seen.value;
            let tail = &raw[mark + 5..];
            if tail.strip_prefix(b"INFO ").is_some_and(message::is_call) {
                self.again(process, Again::Operation);
                return true;
            }
            if let Some(Some(line)) = self.lines.get(slot(tail, LINES))
                && line.value.0 == process
                && *line.bytes == *tail
            {
                let again = line.value.1;
                self.again(process, again);
                return true;
            }
            return false;
        }
        false
    }

    fn again(&mut self, process: usize, again: Again) {
        self.line += 1;
        self.model.lines += 1;
        self.model.nccl_lines += 1;
        self.last = Some(process);
        let p = &mut self.model.processes[process];
        p.lines += 1;
        (p.last.source, p.last.line) = (self.source, self.line);
        match again {
            Again::Nothing => {}
            Again::Operation => p.operations += 1,
            Again::Trail => p.trails += 1,
            Again::Notice(index) => self.model.notices[index].count += 1,
            Again::Unknown(index) => self.unknown[index].1.count += 1,
        }
    }

    /// Passes over lines in which nothing was found.
    pub fn skip(&mut self, lines: u64) {
        self.line += lines;
        self.model.lines += lines;
    }

    /// Whether lines that belong to no process must be looked at one by one.
    pub fn is_in_table(&self) -> bool {
        self.table.is_some()
    }

    fn remember(&mut self, line: &Line<'_>, raw: &[u8], mark: usize, process: usize, again: Again) {
        let host = line.before.len();
        if line.host.is_empty() || line.before.contains(&b'"') || host >= mark {
            return;
        }
        if self.headers.is_empty() {
            self.headers.resize_with(HEADERS, || None);
            self.lines.resize_with(LINES, || None);
        }
        let key = &raw[host..mark];
        let seen = &mut self.headers[slot(key, HEADERS)];
        if seen.as_ref().is_none_or(|h| *h.bytes != *key) {
            *seen = Some(Cached { bytes: key.into(), value: process });
        }
        let key = &raw[mark + 5..];
        if key.len() <= LINE_WIDTH && line.rest == raw.len() {
            self.lines[slot(key, LINES)] =
                Some(Cached { bytes: key.into(), value: (process, again) });
        }
        if !self.layouts.contains(&(host, mark)) {
            self.layouts.rotate_right(1);
            self.layouts[0] = (host, mark);
        }
    }

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
        self.model.unknown = self.unknown.into_iter().collect();
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
            let (process, again) = self.nccl(&line, raw);
            if text.len() == raw.len() {
                self.remember(&line, raw, start, process, again);
            }
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
                if let Some(process) = self.last {
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
            if self.line > self.table_seen + TABLE_GAP {
                self.table = None;
            }
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
                self.table_seen = self.line;
            }
        }
        let Some(table) = self.table else { return };
        let row = text.first().is_none_or(|b| matches!(b, b'#' | b' ') || b.is_ascii_digit());
        if row {
            self.table_seen = self.line;
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

    fn nccl(&mut self, line: &Line<'_>, raw: &[u8]) -> (usize, Again) {
        let process = self.process(line, raw);
        let place = (self.source, self.line);
        let p = &mut self.model.processes[process];
        p.lines += 1;
        (p.last.source, p.last.line) = place;
        let again = match line.level {
            Level::Warn => {
                let again = self.notice(process, line, raw);
                let at = self.at(raw);
                let p = &mut self.model.processes[process];
                if p.first_warning.is_none() {
                    p.first_warning = Some(at);
                }
                again
            }
            Level::Diag | Level::Attn => {
                if self.model.diagnostics.len() < SIGNAL_LIMIT {
                    let at = self.at(raw);
                    self.model.diagnostics.push(at);
                }
                Again::Nothing
            }
            Level::Info => self.info(process, line, raw),
            Level::Trace | Level::Call | Level::Abort => Again::Nothing,
        };
        (process, again)
    }

    fn process(&mut self, line: &Line<'_>, raw: &[u8]) -> usize {
        if let Some(process) = self.last {
            let p = &self.model.processes[process];
            let same = p.pid == line.pid && p.host.as_bytes() == line.host;
            if same || line.host.is_empty() {
                return process;
            }
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
        self.last = Some(process);
        process
    }

    fn info(&mut self, process: usize, line: &Line<'_>, raw: &[u8]) -> Again {
        let found = message::info(line.message);
        match found {
            Message::Tuning | Message::Operation(_) => {
                self.model.processes[process].operations += 1;
                return Again::Operation;
            }
            Message::Known => return Again::Nothing,
            Message::Trail(_) => {
                self.model.processes[process].trails += 1;
                return Again::Trail;
            }
            Message::Channel(channel) => {
                self.edge(process, channel, raw);
                return Again::Nothing;
            }
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
            Message::Ring(channel, [previous, _, next])
                if p.rings.len() < 256 && !p.rings.iter().any(|r| r.0 == channel) =>
            {
                p.rings.push((channel, previous, next));
            }
            Message::Order(channel, ranks)
                if p.orders.len() < 256 && !p.orders.iter().any(|o| o.0 == channel) =>
            {
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
        Again::Nothing
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

    fn notice(&mut self, process: usize, line: &Line<'_>, raw: &[u8]) -> Again {
        let key = (process, shape_hash(line.message));
        if let Some(known) = self.by_notice.get(&key) {
            self.model.notices[*known].count += 1;
            return Again::Notice(*known);
        }
        if self.model.notices.len() >= NOTICE_LIMIT {
            self.model.notices_dropped += 1;
            return Again::Nothing;
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
        Again::Notice(self.model.notices.len() - 1)
    }

    fn unknown(&mut self, line: &Line<'_>, raw: &[u8]) -> Again {
        let mut shape = shape(line.message);
        // beyond the limit all other shapes share one entry
        if self.unknown.len() >= UNKNOWN_LIMIT && !self.by_shape.contains_key(&shape) {
            shape.clear();
        }
        let count = self.unknown.len();
        let index = *self.by_shape.entry(shape.clone()).or_insert(count);
        if index == count {
            let first = self.at(raw);
            self.unknown.push((shape, Unknown { count: 0, first }));
        }
        self.unknown[index].1.count += 1;
        Again::Unknown(index)
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

/// Slot of some bytes.
#[inline]
fn slot(key: &[u8], slots: usize) -> usize {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let word = |bytes: &[u8]| bytes.first_chunk::<8>().map_or(0, |b| u64::from_le_bytes(*b));
    let (mut a, mut b) = (key.len() as u64, MIX);
    let mut rest = key;
    while rest.len() >= 16 {
        a = (a ^ word(rest)).wrapping_mul(MIX);
        b = (b ^ word(&rest[8..])).wrapping_mul(MIX);
        a ^= a >> 29;
        b ^= b >> 31;
        rest = &rest[16..];
    }
    // the last words overlap what was read, so that no byte is left out
    a ^= word(&key[key.len().saturating_sub(16)..]);
    b ^= word(&key[key.len().saturating_sub(8)..]);
    let hash = (a ^ b.rotate_left(32)).wrapping_mul(MIX);
    usize::try_from(hash >> 40).unwrap_or(0) % slots
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
