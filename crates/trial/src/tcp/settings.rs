//! NCCL_SOCKET_* settings that shape the connections.

use std::collections::BTreeMap;

/// Most sockets that one connection may have (`MAX_SOCKETS`, NCCL `transport/net_socket.cc`).
const MAX_SOCKETS: usize = 64;
/// Most helper threads (`MAX_THREADS`, same file).
const MAX_THREADS: usize = 16;

/// How connections are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// Threads that move data, each with its own sockets (`NCCL_SOCKET_NTHREADS`, at least the
    /// rank's own).
    pub(super) threads: usize,
    /// Sockets of one thread to one peer over one interface (`NCCL_NSOCKS_PERTHREAD`).
    pub(super) sockets: usize,
    /// Connection attempts after the first (`NCCL_SOCKET_RETRY_CNT`).
    pub(super) retries: u32,
    /// First pause between attempts, grows linearly (`NCCL_SOCKET_RETRY_SLEEP_MSEC`).
    pub(super) retry_ms: u32,
    /// SO_SNDBUF, where it was asked for (`NCCL_SOCKET_SNDBUF`).
    pub(super) send_buffer: Option<usize>,
    /// SO_RCVBUF, where it was asked for (`NCCL_SOCKET_RCVBUF`).
    pub(super) receive_buffer: Option<usize>,
}

impl Settings {
    /// Reads the settings; `drivers` are those of the chosen interfaces, from which NCCL picks
    /// automatic values (2 × 8 on AWS, 4 × 1 on gVNIC, else a single socket).
    pub(super) fn read(settings: &BTreeMap<String, String>, drivers: &[&str]) -> Self {
        let number = |name: &str, default: i64| {
            settings.get(name).and_then(|v| integer(v)).unwrap_or(default)
        };
        let automatic = match drivers.first() {
            Some(&"ena") => (2, 8),
            Some(&"gve" | &"gvnic") => (4, 1),
            _ => (0, 1),
        };
        let or_automatic = |value: i64, automatic: i64| if value < 0 { automatic } else { value };
        let threads = or_automatic(number("NCCL_SOCKET_NTHREADS", -2), automatic.0) as usize;
        let threads = threads.min(MAX_THREADS);
        let sockets = or_automatic(number("NCCL_NSOCKS_PERTHREAD", -2), automatic.1) as usize;
        // without helper threads the control socket carries the data: one socket, whatever is set
        let most = MAX_SOCKETS.checked_div(threads).unwrap_or(1);
        let sockets = sockets.clamp(1, most);
        let buffer = |name| usize::try_from(number(name, -1)).ok().filter(|bytes| *bytes > 0);
        Self {
            threads: threads.max(1),
            sockets,
            retries: number("NCCL_SOCKET_RETRY_CNT", 34).clamp(0, i64::from(u32::MAX)) as u32,
            retry_ms: number("NCCL_SOCKET_RETRY_SLEEP_MSEC", 100).clamp(0, 60_000) as u32,
            send_buffer: buffer("NCCL_SOCKET_SNDBUF"),
            receive_buffer: buffer("NCCL_SOCKET_RCVBUF"),
        }
    }
}

/// An integer as C's `strtoll` with base 0 reads it, and as NCCL therefore does: `0x10` is 16,
/// `010` is 8, what follows the digits is dropped, text is 0. Empty or out of range: the default.
fn integer(text: &str) -> Option<i64> {
    if text.is_empty() {
        return None;
    }
    let text = text.trim_start();
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let (radix, digits) = match hex {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_hexdigit()) => (16, rest),
        _ if digits.starts_with('0') => (8, digits),
        _ => (10, digits),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    if end == 0 {
        return Some(0);
    }
    i64::from_str_radix(&digits[..end], radix).ok().map(|value| sign * value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)], driver: &str) -> (usize, usize) {
        let map = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let s = Settings::read(&map, &[driver]);
        (s.threads, s.sockets)
    }

    #[test]
    fn threads_and_sockets_follow_nccl() {
        assert_eq!(read(&[], "mlx5_core"), (1, 1));
        assert_eq!(read(&[], "ena"), (2, 8));
        assert_eq!(read(&[], "gve"), (4, 1));
        assert_eq!(read(&[("NCCL_SOCKET_NTHREADS", "4")], "ena"), (4, 8));
        assert_eq!(read(&[("NCCL_NSOCKS_PERTHREAD", "4")], "veth"), (1, 1));
        let both =
            |t, s| read(&[("NCCL_SOCKET_NTHREADS", t), ("NCCL_NSOCKS_PERTHREAD", s)], "veth");
        assert_eq!(both("4", "4"), (4, 4));
        assert_eq!(both("16", "64"), (16, 4));
        assert_eq!(both("99", "1"), (16, 1));
        assert_eq!(both("0x2", "010"), (2, 8));
    }

    #[test]
    fn integers_are_read_as_c_reads_them() {
        for (text, want) in [
            ("4M", Some(4)),
            ("true", Some(0)),
            ("", None),
            ("-2", Some(-2)),
            ("0", Some(0)),
            ("08", Some(0)),
            ("0x", Some(0)),
            ("99999999999999999999", None),
        ] {
            assert_eq!(integer(text), want, "{text}");
        }
    }
}
