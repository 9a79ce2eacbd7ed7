//! The engine's multiplexed log stream, back to lines.

use std::io::{self, Read};

/// Which stream a line was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Error,
}

/// One line of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Stream.
    pub stream: Stream,
    /// Text without its newline; bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// Longest line that is kept whole; a result is one line of some mebibytes.
const LONGEST: usize = 256 << 20;

/// Reads frames (stream, three zeros, length big-endian, bytes; Engine API `ContainerAttach`) until
/// the end and gives each line.
pub(crate) fn read(mut from: impl Read, mut give: impl FnMut(Line)) -> io::Result<()> {
    let mut open = [Vec::new(), Vec::new()];
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\r').to_owned();
    loop {
        let mut head = [0_u8; 8];
        match from.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
        let (at, stream) = if head[0] == 2 { (1, Stream::Error) } else { (0, Stream::Out) };
        let length = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        let mut left = (&mut from).take(u64::from(length));
        left.read_to_end(&mut open[at])?;
        while let Some(end) = open[at].iter().position(|byte| *byte == b'\n') {
            let rest = open[at].split_off(end + 1);
            give(Line { stream, text: text(&open[at][..end]) });
            open[at] = rest;
        }
        if open[at].len() > LONGEST {
            let bytes = std::mem::take(&mut open[at]);
            give(Line { stream, text: text(&bytes) });
        }
    }
    for (bytes, stream) in open.iter().zip([Stream::Out, Stream::Error]) {
        if !bytes.is_empty() {
            give(Line { stream, text: text(bytes) });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_across_frames_and_a_last_one_without_end() {
        let frame = |stream: u8, text: &str| {
            let mut bytes = vec![stream, 0, 0, 0];
            bytes.extend((text.len() as u32).to_be_bytes());
            bytes.extend(text.as_bytes());
            bytes
        };
        let bytes = [frame(1, "a\nb"), frame(2, "err\r\n"), frame(1, "c\n\nlast")].concat();
        let lines = |bytes: &[u8]| {
            let mut lines = Vec::new();
            read(bytes, |line| lines.push((line.stream, line.text))).map(|()| lines)
        };
        let want = [
            (Stream::Out, "a"),
            (Stream::Error, "err"),
            (Stream::Out, "bc"),
            (Stream::Out, ""),
            (Stream::Out, "last"),
        ];
        assert_eq!(lines(&bytes).unwrap(), want.map(|(s, t)| (s, t.to_owned())));
        // an engine that dies in the middle of a frame loses nothing that it sent
        for cut in 0..bytes.len() {
            assert!(lines(&bytes[..cut]).is_ok());
        }
    }
}
