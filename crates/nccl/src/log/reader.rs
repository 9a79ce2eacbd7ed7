//! Takes bytes in pieces, cuts them into lines, joins the container runtime's partial lines.

use memchr::memmem::{self, Finder};
use memchr::{memchr, memrchr};

use super::build::Builder;
use super::model::Model;
use super::prefix;
use super::signal;

/// Bytes of one line that are looked at; an endless line is read in pieces of this size.
pub const LINE_LIMIT: usize = 1 << 16;

/// Reads one or more inputs into one [`Model`].
#[derive(Debug)]
pub struct Reader {
    builder: Builder,
    /// Finds NCCL's mark.
    mark: Finder<'static>,
    /// Start of a line whose end has not come yet.
    pending: Vec<u8>,
    /// Text of partial lines of the container runtime's format.
    partial: Vec<u8>,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            builder: Builder::default(),
            mark: Finder::new(b"NCCL "),
            pending: Vec::new(),
            partial: Vec::new(),
        }
    }
}

/// A line of the container runtime's format that may be a partial one.
fn may_be_partial(raw: &[u8]) -> bool {
    raw.first() == Some(&b'2')
        && raw.get(10) == Some(&b'T')
        && prefix::cri(raw).is_some_and(|(more, _)| more)
}

impl Reader {
    /// Begins a new input.
    pub fn source(&mut self, name: &str) {
        self.end();
        self.builder.source(name);
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        if !self.pending.is_empty()
            && let Some(newline) = memchr(b'\n', bytes)
        {
            self.pending.extend_from_slice(&bytes[..newline]);
            let whole = std::mem::take(&mut self.pending);
            self.line(&whole);
            self.pending = whole;
            self.pending.clear();
            bytes = &bytes[newline + 1..];
        }
        if self.pending.is_empty()
            && let Some(last) = memrchr(b'\n', bytes)
        {
            self.block(&bytes[..=last]);
            bytes = &bytes[last + 1..];
        }
        while self.pending.len() + bytes.len() > LINE_LIMIT {
            let take = LINE_LIMIT - self.pending.len();
            self.pending.extend_from_slice(&bytes[..take]);
            bytes = &bytes[take..];
            let whole = std::mem::take(&mut self.pending);
            self.line(&whole);
            self.pending = whole;
            self.pending.clear();
        }
        self.pending.extend_from_slice(bytes);
    }

    /// Takes whole lines. Runs of lines without NCCL's mark are searched for signals at once.
    fn block(&mut self, block: &[u8]) {
        let mut position = 0;
        // next place of the mark at or after `position`, once it is known
        let mut mark = 0;
        let mut gap = 0..0;
        let mut gap_lines = 0;
        while let Some(length) = memchr(b'\n', &block[position..]) {
            let end = position + length;
            let raw = &block[position..end];
            if self.builder.known(raw) {
                // foreign lines before it have no effect on a line that is only counted
                position = end + 1;
                if gap_lines > 0 {
                    self.gap(&block[gap.clone()], gap_lines);
                    gap_lines = 0;
                }
                continue;
            }
            if mark < position {
                mark = self.mark.find(&block[position..]).map_or(usize::MAX, |at| position + at);
            }
            let foreign = mark >= end
                && raw.len() <= LINE_LIMIT
                && !self.builder.is_in_table()
                && !may_be_partial(raw)
                && self.partial.is_empty();
            if foreign {
                if gap_lines == 0 {
                    gap.start = position;
                }
                gap.end = end + 1;
                gap_lines += 1;
            } else {
                if gap_lines > 0 {
                    self.gap(&block[gap.clone()], gap_lines);
                    gap_lines = 0;
                }
                self.line(raw);
            }
            position = end + 1;
        }
        if gap_lines > 0 {
            self.gap(&block[gap], gap_lines);
        }
    }

    /// Whole lines without NCCL's mark.
    fn gap(&mut self, text: &[u8], lines: u64) {
        if signal::first(text).is_none() {
            self.builder.skip(lines);
            return;
        }
        let mut rest = text;
        while let Some(newline) = memchr(b'\n', rest) {
            self.line(&rest[..newline]);
            rest = &rest[newline + 1..];
        }
    }

    /// Ends the input: what is left without a newline is a line too.
    fn end(&mut self) {
        if !self.pending.is_empty() {
            let whole = std::mem::take(&mut self.pending);
            if self.may_be_cut(&whole) {
                self.builder.skip(1);
            } else {
                self.line(&whole);
            }
        }
        if !self.partial.is_empty() {
            let whole = std::mem::take(&mut self.partial);
            self.builder.line(&whole);
        }
    }

    /// Whether a line without its newline could say the opposite of the whole one: GPUDirect stands
    /// at the very end of a connection's line, and half a network's name looks like another network.
    fn may_be_cut(&self, line: &[u8]) -> bool {
        const NETWORK: &[u8] = b"Using network ";
        if let Some(at) = memmem::find(line, NETWORK) {
            let name = &line[at + NETWORK.len()..];
            return self.builder.model().processes.iter().any(|process| {
                let known = process.network.value.as_bytes();
                known.len() > name.len() && known.starts_with(name)
            });
        }
        memmem::find(line, b" via NET/").is_some()
    }

    /// The model of what was fed so far, but for an unfinished line.
    pub fn model(&self) -> &Model {
        self.builder.model()
    }

    /// The model of everything fed.
    pub fn finish(mut self) -> Model {
        self.end();
        self.builder.finish()
    }

    fn line(&mut self, mut raw: &[u8]) {
        while raw.len() > LINE_LIMIT {
            let (piece, rest) = raw.split_at(LINE_LIMIT);
            self.builder.line(piece);
            raw = rest;
        }
        // only a line that starts with a year can be of the runtime's format
        if raw.first() == Some(&b'2')
            && let Some((more, text)) = prefix::cri(raw)
        {
            if more {
                if self.partial.is_empty() {
                    // the stamp of the first piece stays
                    self.partial.extend_from_slice(&raw[..raw.len() - text.len()]);
                }
                if self.partial.len() + text.len() <= LINE_LIMIT {
                    self.partial.extend_from_slice(text);
                }
                return;
            }
            if !self.partial.is_empty() {
                self.partial.extend_from_slice(text);
                let whole = std::mem::take(&mut self.partial);
                self.builder.line(&whole);
                return;
            }
        }
        self.builder.line(raw);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Model {
        let mut reader = Reader::default();
        reader.source("test");
        for piece in pieces {
            reader.feed(piece);
        }
        reader.finish()
    }

    #[test]
    fn partial_lines_are_joined() {
        let model = read(&[b"2025-04-02T03:22:16.000047514Z stdout P a:1:2 [0] f.cc:1 NCCL W\n\
            2025-04-02T03:22:16.000047514Z stdout F ARN something bad\n"]);
        assert_eq!(model.notices.len(), 1);
        assert_eq!(model.notices[0].text, "something bad");
    }

    #[test]
    fn any_cut_gives_the_same() {
        let text =
            b"a:1:2 [0] NCCL INFO Using network IB\nb:3:4 [0] NCCL INFO Using network Socket";
        for cut in 0..text.len() {
            let model = read(&[&text[..cut], &text[cut..]]);
            assert_eq!(model.processes.len(), 2, "{cut}");
            assert_eq!(model.processes[1].network.value, "Socket");
        }
    }

    #[test]
    fn half_a_name_is_no_other_network() {
        let text = b"a:1:2 [0] NCCL INFO Using network IB\nb:3:4 [0] NCCL INFO Using network I";
        let networks: Vec<String> =
            read(&[text]).processes.into_iter().map(|p| p.network.value).collect();
        assert_eq!(networks, ["IB"]);
    }

    #[test]
    fn an_endless_line_is_bounded() {
        let piece = vec![b'x'; 10_000];
        let pieces: Vec<&[u8]> = (0..100).map(|_| piece.as_slice()).collect();
        let model = read(&pieces);
        assert_eq!(model.lines, 1_000_000_u64.div_ceil(LINE_LIMIT as u64));
    }

    #[test]
    fn one_job_out_of_interleaved_lines() {
        let model = read(&[b"\
h1:1:1 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
h2:2:2 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.2<0>
NCCL version 2.21.5+cuda12.4
h1:1:9 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 3 cudaDev 0 nvmlDev 0 busId 4000 commId 0x5b - Init START
h2:2:9 [0] NCCL INFO ncclCommInitRank comm 0x6 rank 1 nranks 3 cudaDev 0 nvmlDev 0 busId 4000 commId 0x5b - Init START
h1:1:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA
h1:1:9 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA
h1:1:9 [0] NCCL INFO brand new line 17
h1:1:9 [0] NCCL INFO brand new line 18
"]);
        assert_eq!(model.communicators.len(), 1);
        assert_eq!(model.communicators[0].members.len(), 2);
        assert_eq!(model.processes[0].edges.len(), 1);
        assert!(model.processes[0].edges[0].gdr);
        assert_eq!(model.unknown["brand new line #"].count, 2);
        assert_eq!(model.version_of(1).unwrap().to_string(), "2.21.5");
    }

    proptest::proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
            let mut text = b"h:1:2 [0] NCCL INFO ".to_vec();
            text.extend_from_slice(&bytes);
            let _ = read(&[&text]);
        }
    }
}
