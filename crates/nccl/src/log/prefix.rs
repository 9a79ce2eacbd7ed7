//! What collectors put in front of a line: stripped where it is glued to a host name, and taken
//! off whole for lines that are not NCCL's own.

use memchr::memmem;

use super::time;

/// Splits what is glued in front of a host name (`[1,0]<stdout>:rdma-0`, `{"log":"node`,
/// `2025-05-16T16:39:51.208-07:00ip-10-41-7-88`): the host and where it starts.
pub fn host(token: &[u8]) -> (&[u8], usize) {
    let mut start = 0;
    if let Some(colour) = memchr::memrchr(0x1b, token)
        && let Some(end) = memchr::memchr(b'm', &token[colour..])
    {
        start = colour + end + 1;
    }
    let separator = |b: &u8| matches!(b, b':' | b'>' | b']' | b'|' | b')' | b'"' | b'\t' | b'`');
    if let Some(at) = token[start..].iter().rposition(separator) {
        start += at + 1;
    }
    if let Some(width) = time::iso_width(token) {
        start = start.max(width.min(token.len()));
    }
    (&token[start..], start)
}

/// The stream mark of the container runtime's log format: partial (`P`) or full (`F`), and the
/// text after it.
pub fn cri(raw: &[u8]) -> Option<(bool, &[u8])> {
    let width = time::iso_width(raw)?;
    let rest = raw.get(width..)?.strip_prefix(b" ")?;
    let rest = rest.strip_prefix(b"stdout ").or_else(|| rest.strip_prefix(b"stderr "))?;
    match rest {
        [b'P', b' ', text @ ..] => Some((true, text)),
        [b'F', b' ', text @ ..] => Some((false, text)),
        [b'P'] => Some((true, &[])),
        [b'F'] => Some((false, &[])),
        _ => None,
    }
}

/// The line without the prefixes that are certain: CRI or ISO time stamps, mpirun and torchrun
/// tags, compose and stern columns before a `|`. Used where a table or a foreign message follows.
pub fn strip(raw: &[u8]) -> &[u8] {
    let mut text = raw;
    loop {
        let before = text.len();
        if let Some((_, rest)) = cri(text) {
            text = rest;
        }
        if let Some(width) = time::iso_width(text) {
            let rest = &text[width..];
            text = rest.strip_prefix(b":").unwrap_or(rest);
            text = text.strip_prefix(b" ").unwrap_or(text);
        }
        if text.first() == Some(&b'[')
            && let Some(end) = text.iter().take(48).position(|b| *b == b']')
        {
            let tag = &text[1..end];
            let rest = &text[end + 1..];
            if let Some(rest) = mpi_tag(tag, rest) {
                text = rest;
            } else if is_launcher_tag(tag)
                && let Some(rest) = rest.strip_prefix(b":")
            {
                text = rest;
            } else if memmem::find(tag, b"/").is_some()
                && let Some(rest) = rest.strip_prefix(b" ")
            {
                text = rest;
            }
        }
        if let Some(bar) = text.iter().take(64).position(|b| *b == b'|')
            && bar > 0
            && text[..bar].iter().all(|b| b.is_ascii_alphanumeric() || b"-_. ".contains(b))
            && text[bar - 1] == b' '
            && text[0].is_ascii_alphanumeric()
            && !text[..bar].iter().all(|b| b.is_ascii_digit() || *b == b' ')
        {
            let rest = &text[bar + 1..];
            text = rest.strip_prefix(b" ").unwrap_or(rest);
        }
        if text.len() == before {
            return text;
        }
    }
}

/// `[1,3]<stdout>:`
fn mpi_tag<'a>(tag: &[u8], rest: &'a [u8]) -> Option<&'a [u8]> {
    if !tag.iter().all(|b| b.is_ascii_digit() || *b == b',') {
        return None;
    }
    ["<stdout>:", "<stderr>:", "<stddiag>:", "<stdout>: ", "<stderr>: "]
        .iter()
        .find_map(|mark| rest.strip_prefix(mark.as_bytes()))
}

fn is_launcher_tag(tag: &[u8]) -> bool {
    ["rank", "default", "trainer", "worker"].iter().any(|name| {
        tag.strip_prefix(name.as_bytes())
            .is_some_and(|n| !n.is_empty() && n.iter().all(|b| b.is_ascii_digit() || *b == b'|'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_off_what_is_certain() {
        for raw in [
            "# nThread 1",
            "2025-04-02T03:22:10.000000000Z # nThread 1",
            "2025-04-02T03:22:10.000000000Z stdout F # nThread 1",
            "[1,0]<stdout>:# nThread 1",
            "2019-06-02T16:13:44.884Z: [1,12]<stdout>:# nThread 1",
            "[rank3]:# nThread 1",
            "[pod/train-0/main] # nThread 1",
            "worker-1  | # nThread 1",
        ] {
            assert_eq!(strip(raw.as_bytes()), b"# nThread 1", "{raw}");
        }
        assert_eq!(strip(b"  8  2 float"), b"  8  2 float");
        assert_eq!(strip(b"8 | 2"), b"8 | 2");
    }

    #[test]
    fn host_behind_anything() {
        for token in ["node-1", "[1,0]<stdout>:node-1", "{\"log\":\"node-1", "\u{1b}[0;0mnode-1"] {
            assert_eq!(host(token.as_bytes()).0, b"node-1", "{token}");
        }
        assert_eq!(host(b"vm-e0q7m").0, b"vm-e0q7m");
        assert_eq!(host(b"[rank0]:gpu-farm-m1").0, b"gpu-farm-m1");
    }

    #[test]
    fn partial_lines() {
        let raw = b"2025-04-02T03:22:16.000047514Z stdout P ddp NCCL W";
        assert_eq!(cri(raw), Some((true, &b"ddp NCCL W"[..])));
        assert_eq!(cri(b"2025-04-02T03:22:16Z text"), None);
    }
}
