//! What a file is wrapped in: gzip, and tar as `kubectl cp`, `docker cp` and people make it.

use std::io::{self, Read};

/// Bytes of a tar block.
const BLOCK: usize = 512;
/// Longest name of a member that is read.
const NAME: u64 = 4096;

/// Whether bytes begin a gzip stream.
pub(crate) fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(&[0x1f, 0x8b, 8])
}

/// Whether bytes begin a tar archive: POSIX or GNU.
pub(crate) fn is_tar(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar")
}

/// Calls `each` with name and content of every file of a tar archive. A cut archive gives what is
/// there and then the error.
pub(crate) fn members(
    from: &mut dyn Read,
    each: &mut dyn FnMut(&str, &mut dyn Read) -> io::Result<()>,
) -> io::Result<()> {
    let mut header = [0u8; BLOCK];
    let mut long_name: Option<String> = None;
    loop {
        if !fill(from, &mut header)? || header.iter().all(|b| *b == 0) {
            return Ok(());
        }
        if header.get(257..262) != Some(b"ustar") {
            return Err(bad("no tar header where one must be"));
        }
        let size = number(&header[124..136]).ok_or_else(|| bad("a size that is no number"))?;
        let padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
        let mut content = from.take(size);
        match header[156] {
            b'0' | 0 => {
                let name = long_name.take().unwrap_or_else(|| name(&header));
                each(&name, &mut content)?;
            }
            // GNU's long name, and POSIX's extended header, speak of the member that follows
            b'L' => {
                let mut text = Vec::new();
                content.by_ref().take(NAME).read_to_end(&mut text)?;
                long_name = Some(text_of(&text));
            }
            b'x' => {
                let mut text = Vec::new();
                content.by_ref().take(NAME * 16).read_to_end(&mut text)?;
                let text = String::from_utf8_lossy(&text).into_owned();
                long_name = text
                    .lines()
                    .find_map(|l| l.split_once(" path=").map(|(_, p)| p.to_owned()))
                    .or(long_name);
            }
            _ => long_name = None,
        }
        io::copy(&mut content, &mut io::sink())?;
        let left = content.limit();
        if left > 0 {
            return Err(bad("the archive ends inside a member"));
        }
        io::copy(&mut from.take(padding), &mut io::sink())?;
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// Fills a block; false at the end of the input.
fn fill(from: &mut dyn Read, block: &mut [u8]) -> io::Result<bool> {
    let mut have = 0;
    while have < block.len() {
        match from.read(&mut block[have..]) {
            Ok(0) if have == 0 => return Ok(false),
            Ok(0) => return Err(bad("the archive ends inside a header")),
            Ok(n) => have += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn name(header: &[u8; BLOCK]) -> String {
    let prefix = text_of(&header[345..500]);
    let name = text_of(&header[..100]);
    if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
}

fn text_of(field: &[u8]) -> String {
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

/// An octal number, or GNU's binary one for sizes over 8 GiB.
fn number(field: &[u8]) -> Option<u64> {
    if field.first().is_some_and(|b| b & 0x80 != 0) {
        return field[4..]
            .iter()
            .try_fold(0u64, |n, b| n.checked_mul(256)?.checked_add(u64::from(*b)));
    }
    let text = std::str::from_utf8(field).ok()?;
    let text = text.trim_matches(['\0', ' ']);
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut header = [0u8; BLOCK];
        header[..name.len()].copy_from_slice(name.as_bytes());
        let size = format!("{:011o}\0", content.len());
        header[124..136].copy_from_slice(size.as_bytes());
        header[156] = kind;
        header[257..263].copy_from_slice(b"ustar\0");
        let mut out = header.to_vec();
        out.extend_from_slice(content);
        out.resize(out.len().div_ceil(BLOCK) * BLOCK, 0);
        out
    }

    fn read(bytes: &[u8]) -> (Vec<(String, usize)>, io::Result<()>) {
        let mut seen = Vec::new();
        let result = members(&mut &bytes[..], &mut |name, content| {
            let mut text = Vec::new();
            content.read_to_end(&mut text)?;
            seen.push((name.to_owned(), text.len()));
            Ok(())
        });
        (seen, result)
    }

    #[test]
    fn members_in_order() {
        let mut tar = member("logs/", b'5', b"");
        tar.extend(member("logs/rank0.log", b'0', &[b'a'; 700]));
        tar.extend(member("././@LongLink", b'L', b"a/very/long/name.log\0"));
        tar.extend(member("a/very/lo", b'0', b"x"));
        tar.extend([0; 2 * BLOCK]);
        let (seen, result) = read(&tar);
        assert!(result.is_ok());
        assert_eq!(
            seen,
            [("logs/rank0.log".to_owned(), 700), ("a/very/long/name.log".to_owned(), 1)]
        );
    }

    #[test]
    fn a_cut_archive_gives_what_is_there() {
        let mut tar = member("one.log", b'0', b"first");
        tar.extend(member("two.log", b'0', &[b'a'; 2000]));
        for cut in 0..tar.len() {
            let (seen, result) = read(&tar[..cut]);
            // a member is there once its last byte is; its padding says nothing
            let first = cut >= 517;
            let second = cut >= 1024 + 512 + 2000;
            if first {
                assert_eq!(seen[0], ("one.log".to_owned(), 5), "{cut}");
            }
            let whole = cut == 0 || (first && cut <= 1024) || second;
            assert_eq!(result.is_ok(), whole, "{cut}");
        }
    }
}
