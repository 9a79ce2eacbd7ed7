//! The shape of one NCCL line, behind any prefix.
//!
//! The line is found by its ` NCCL <LEVEL> ` mark and read backward from there, so that a
//! collector's prefix, a time stamp in any format and text glued to the host name do not matter.

use memchr::{memchr, memmem, memrchr};

use super::prefix;

/// Level of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// `WARN`: NCCL's only error level.
    Warn,
    /// `ATTN`, 2.31 and later.
    Attn,
    /// `INFO`.
    Info,
    /// `TRACE`, in builds that have it.
    Trace,
    /// `CALL`: one line an API call.
    Call,
    /// `ABORT`, accepted and never printed so far.
    Abort,
    /// `DIAG`: built-in diagnostics, 2.31 and later.
    Diag,
}

/// One NCCL line. Everything borrows from the raw bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Level.
    pub level: Level,
    /// Host name up to its first dot; empty where the line was cut.
    pub host: &'a [u8],
    /// Process id, 0 where the line was cut.
    pub pid: u32,
    /// Thread id, 0 where not printed.
    pub tid: u32,
    /// CUDA's current device of the thread: a hint, not a rank.
    pub device: Option<i32>,
    /// Source file that printed a warning.
    pub file: Option<&'a [u8]>,
    /// Line in that file.
    pub file_line: u32,
    /// The message, without trailing white space.
    pub message: &'a [u8],
    /// What stood before the host name: the collector's prefix and time stamps.
    pub before: &'a [u8],
    /// Where in the raw bytes the next line of NCCL starts, when two share one line.
    pub rest: usize,
}

const MARK: &[u8] = b"NCCL ";

/// Finds ` NCCL <LEVEL> ` at or after `from`: where `NCCL` starts, the level, and where the message
/// starts.
pub fn find_mark(raw: &[u8], from: usize) -> Option<(usize, Level, usize)> {
    let mut at = from;
    while let Some(found) = memmem::find(raw.get(at..)?, MARK) {
        let start = at + found;
        if let Some((level, message)) = mark_at(raw, start) {
            return Some((start, level, message));
        }
        at = start + MARK.len();
    }
    None
}

/// Whether `NCCL <LEVEL> ` stands exactly at `start`.
#[inline]
pub fn mark_at(raw: &[u8], start: usize) -> Option<(Level, usize)> {
    let tail = raw.get(start..)?.strip_prefix(MARK)?;
    if start > 0 && !matches!(raw[start - 1], b' ' | b'\t' | b'"' | b'>' | b'|' | b':') {
        return None;
    }
    let (level, width) = match tail.first()? {
        b'I' if tail.starts_with(b"INFO") => (Level::Info, 4),
        b'W' if tail.starts_with(b"WARN") => (Level::Warn, 4),
        b'T' if tail.starts_with(b"TRACE") => (Level::Trace, 5),
        b'C' if tail.starts_with(b"CALL") => (Level::Call, 4),
        b'A' if tail.starts_with(b"ATTN") => (Level::Attn, 4),
        b'A' if tail.starts_with(b"ABORT") => (Level::Abort, 5),
        b'D' if tail.starts_with(b"DIAG") => (Level::Diag, 4),
        _ => return None,
    };
    match tail.get(width) {
        None => Some((level, start + MARK.len() + width)),
        Some(b' ') => Some((level, start + MARK.len() + width + 1)),
        // a JSON string ends or breaks right after the level
        Some(b'"' | b'\\' | b'\r' | b'\t') => Some((level, start + MARK.len() + width)),
        _ => None,
    }
}

/// Reads the line whose mark was found by [`find_mark`].
pub fn parse(raw: &[u8], mark: usize, level: Level, message: usize) -> Line<'_> {
    let head = header(&raw[..mark]);
    let (end, rest) = message_end(raw, message, head.quoted);
    Line {
        level,
        host: head.host,
        pid: head.pid,
        tid: head.tid,
        device: head.device,
        file: head.file,
        file_line: head.file_line,
        message: trim_end(&raw[message.min(end)..end]),
        before: head.before,
        rest,
    }
}

#[derive(Default)]
struct Header<'a> {
    host: &'a [u8],
    pid: u32,
    tid: u32,
    device: Option<i32>,
    file: Option<&'a [u8]>,
    file_line: u32,
    before: &'a [u8],
    quoted: bool,
}

/// Reads what stands before the mark, from right to left.
fn header(head: &[u8]) -> Header<'_> {
    let mut out = Header::default();
    let mut end = head.len();
    // at most: function, file:line, milliseconds, [device], host:pid:tid
    for _ in 0..6 {
        while end > 0 && matches!(head[end - 1], b' ' | b'\t') {
            end -= 1;
        }
        if end == 0 {
            break;
        }
        let start = memrchr(b' ', &head[..end]).map_or(0, |at| at + 1);
        let token = &head[start..end];
        if let Some(place) = host_pid_tid(token) {
            let (host, glued) = prefix::host(place.0);
            out.host = host;
            out.pid = place.1;
            out.tid = place.2;
            out.before = &head[..start + glued];
            out.quoted = memchr(b'"', out.before).is_some();
            return out;
        }
        if token.first() == Some(&b'[') && token.last() == Some(&b']') {
            if out.device.is_none() {
                out.device = number(&token[1..token.len() - 1]);
            }
        } else if token.first() == Some(&b'(') {
            // the function's name: nothing here needs it
        } else if let Some((file, line)) = file_line(token)
            && out.file.is_none()
        {
            out.file = Some(file);
            out.file_line = line;
        } else if !token.iter().all(|b| b.is_ascii_digit() || *b == b'.') {
            break;
        }
        end = start;
    }
    out.before = &head[..end];
    out.quoted = memchr(b'"', head).is_some();
    out
}

/// `…host:pid:tid`, or `host:pid` of the diagnostics; gives what stands before the first number.
fn host_pid_tid(token: &[u8]) -> Option<(&[u8], u32, u32)> {
    let (rest, tid) = trailing_number(token)?;
    match trailing_number(rest) {
        Some((host, pid)) if !host.is_empty() => Some((host, pid, tid)),
        _ => None,
    }
}

/// Splits `text:123` into `text` and 123.
fn trailing_number(token: &[u8]) -> Option<(&[u8], u32)> {
    let digits = token.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || digits > 10 || digits >= token.len() {
        return None;
    }
    let colon = token.len() - digits - 1;
    if token[colon] != b':' {
        return None;
    }
    let value = token[colon + 1..].iter().fold(0u64, |n, b| n * 10 + u64::from(b - b'0'));
    Some((&token[..colon], u32::try_from(value).ok()?))
}

/// `path/file.cc:123` or `function:123`.
fn file_line(token: &[u8]) -> Option<(&[u8], u32)> {
    let (file, line) = trailing_number(token)?;
    (!file.is_empty()).then_some((file, line))
}

fn number(text: &[u8]) -> Option<i32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Where the message ends, and where a second line of NCCL in the same raw line may start.
fn message_end(raw: &[u8], message: usize, quoted: bool) -> (usize, usize) {
    let mut end = raw.len();
    let mut rest = raw.len();
    let tail = &raw[message.min(end)..];
    // a table row or an unterminated stream can hold several
    if tail.len() > 24
        && let Some((mark, _, _)) = find_mark(tail, 0)
    {
        let next = header(&tail[..mark]);
        // the second line starts with its host name, or with its own prefix
        end = message + next.before.len();
        rest = end;
        let glued = memmem::rfind(&raw[message..end], b" | ").map(|at| message + at);
        end = glued.unwrap_or(end);
    }
    if quoted && let Some(at) = json_end(&raw[message.min(end)..end]) {
        end = message + at;
    }
    (end, rest)
}

/// Where a string that began before the message ends: an escaped newline, or the closing quote
/// before `,`, `}` or the end.
fn json_end(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &text[at..]) {
        let here = at + found;
        match (text[here], text.get(here + 1)) {
            (b'\\', Some(b'n' | b'r')) => return Some(here),
            (b'\\', _) => at = here + 2,
            (_, None | Some(b',' | b'}' | b']' | b' ' | b'\r')) => return Some(here),
            _ => at = here + 1,
        }
        if at > text.len() {
            return None;
        }
    }
    None
}

/// Without trailing white space, table bars and carriage returns.
pub fn trim_end(mut text: &[u8]) -> &[u8] {
    while let [rest @ .., b' ' | b'\t' | b'\r' | b'\n' | b'|' | 0] = text {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(raw: &str) -> String {
        let bytes = raw.as_bytes();
        let Some((mark, level, message)) = find_mark(bytes, 0) else { return "none".into() };
        let line = parse(bytes, mark, level, message);
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        format!(
            "{level:?} {}:{}:{} {:?} {} | {}",
            text(line.host),
            line.pid,
            line.tid,
            line.device,
            line.file.map_or("-".into(), |f| format!("{}:{}", text(f), line.file_line)),
            text(line.message)
        )
    }

    #[test]
    fn every_prefix_gives_the_same_line() {
        let want = "Info node-1:12:34 Some(0) - | Using network IB";
        let bare = "node-1:12:34 [0] NCCL INFO Using network IB";
        for raw in [
            bare.to_owned(),
            format!("{bare}\r"),
            format!("2025-04-02T03:22:10.000000000Z {bare}"),
            format!("2025-04-02T03:22:10.000000000Z stdout F {bare}"),
            format!("2019-06-02T16:13:44.884Z: [1,12]<stdout>:{bare}"),
            format!("[1,3]<stdout>:{bare}"),
            format!("[rank3]:{bare}"),
            format!("[default0]:{bare}"),
            format!("[trainer0|0]:{bare}"),
            format!("[pod/train-0/main] {bare}"),
            format!("train-0 main {bare}"),
            format!("worker-1  | {bare}"),
            format!("3: {bare}"),
            format!("(RayTrainWorker pid=123, ip=10.0.0.1) {bare}"),
            format!("(RayTrainWorker pid=123) {bare} [repeated 7x across cluster]")
                .replace(" [repeated 7x across cluster]", ""),
            format!("\u{1b}[0;36m(Worker_TP3 pid=1820)\u{1b}[0;0m {bare}"),
            format!("Dec 01 10:00:00 node-1 dockerd[77]: {bare}"),
            format!("{{\"log\":\"{bare}\\n\",\"stream\":\"stderr\",\"time\":\"2025-01-01\"}}"),
            format!("\"2025-01-01 00:00:00\",\"{bare}\""),
            format!("| 2025-05-16T16:39:51.208-07:00{bare} | {bare} |"),
            format!("> {bare}"),
            format!("    {bare}"),
            format!("[2026-04-22 21:34:20] {bare}"),
        ] {
            assert_eq!(read(&raw), want, "{raw}");
        }
    }

    #[test]
    fn every_version_of_the_warning_line() {
        insta::assert_snapshot!(
            [
                "h:1:2 [3] misc/ibvwrap.cc:63 NCCL WARN Failed to open libibverbs.so[.1]",
                "[2026-04-22 21:34:20] h:1:2 [3] misc/shmutils.cc:88 NCCL WARN Error: failed",
                "[2026-06-23 15:45:07] h:1:2 [5] transport/nvls.cc:379 (nvlsAllocateMem) NCCL WARN x",
                "h:1:2 [0] configure_ep_max_msg_size:1032 NCCL WARN NET/OFI Disabling",
                "h:1:2 [0] 12.345 ncclFoo:17 NCCL TRACE x",
                "h:1:2 NCCL CALL ncclAllReduce(…)",
                "node042:12345 NCCL DIAG === RAS Diagnostics ===",
                "9:2 [0] NCCL INFO cut",
                "cut] NCCL INFO cut more",
                "NCCL version 2.9.6+cuda11.0",
                "xNCCL INFO no",
            ]
            .map(read)
            .join("\n"),
            @r"
            Warn h:1:2 Some(3) misc/ibvwrap.cc:63 | Failed to open libibverbs.so[.1]
            Warn h:1:2 Some(3) misc/shmutils.cc:88 | Error: failed
            Warn h:1:2 Some(5) transport/nvls.cc:379 | x
            Warn h:1:2 Some(0) configure_ep_max_msg_size:1032 | NET/OFI Disabling
            Trace h:1:2 Some(0) ncclFoo:17 | x
            Call h:1:2 None - | ncclAllReduce(…)
            Diag :0:0 None node042:12345 | === RAS Diagnostics ===
            Info :0:0 Some(0) 9:2 | cut
            Info :0:0 None - | cut more
            none
            none
            "
        );
    }

    #[test]
    fn two_lines_in_one() {
        let raw =
            b"a:1:2 [0] NCCL INFO Using network IB | b:3:4 [1] NCCL INFO Using network Socket";
        let (mark, level, message) = find_mark(raw, 0).unwrap();
        let first = parse(raw, mark, level, message);
        assert_eq!(first.message, b"Using network IB");
        let rest = &raw[first.rest..];
        let (mark, level, message) = find_mark(rest, 0).unwrap();
        let second = parse(rest, mark, level, message);
        assert_eq!((second.host, second.message), (&b"b"[..], &b"Using network Socket"[..]));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80),
                        cut in 0usize..200) {
            let mut raw = b"[1,0]<stdout>:h:1:2 [0] f.cc:3 (g) NCCL WARN text \\n\" | ".to_vec();
            raw.extend_from_slice(&bytes);
            raw.extend_from_slice(b" h:1:2 [0] NCCL INFO more");
            raw.truncate(cut);
            if let Some((mark, level, message)) = find_mark(&raw, 0) {
                let line = parse(&raw, mark, level, message);
                proptest::prop_assert!(line.rest > mark && line.rest <= raw.len());
            }
        }
    }
}
