//! `nccl.conf` and the other files of NCCL's own format, read as NCCL reads them, with the place of
//! every name and value.
//!
//! Source: NCCL 2.30.7 `src/misc/param.cc` (`setEnvFile`): a line is split at its first `=`;
//! nothing is trimmed, unquoted or expanded; `#` makes a comment only as the very first character;
//! a value never replaces one that is already set, so that of two lines the *first* wins.

use std::ops::Range;

use crate::version::Version;

/// Names and values are cut behind this many bytes.
pub const LONGEST: usize = 1023;

/// Since this release a carriage return at the end of a line is dropped; before, it is part of
/// the value.
pub const CARRIAGE_RETURN_DROPPED: Version = Version::new(2, 30, 3);

/// Since this release `NCCL_CONF_FILE` names the user's file.
pub const CONF_FILE_SINCE: Version = Version::new(2, 23, 4);

/// Since this release a line that starts with `#` is a comment; before, one with a `=` sets a
/// variable whose name starts with `#`.
pub const COMMENT_SINCE: Version = Version::new(2, 26, 2);

/// One line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// Number, from 1.
    pub number: usize,
    /// Bytes of the line without its end.
    pub span: Range<usize>,
    /// What the line is.
    pub what: What<'a>,
}

/// What a line is to NCCL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// Nothing on it.
    Blank,
    /// Starts with `#`.
    Comment,
    /// Has no `=`: skipped without a message.
    Ignored,
    /// Sets a variable, of whatever name.
    Entry(Entry<'a>),
}

/// A variable and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Name, exactly as written: blanks belong to it.
    pub name: &'a str,
    /// Bytes of the name.
    pub name_span: Range<usize>,
    /// Value without a carriage return at its end; blanks and quotes belong to it.
    pub value: &'a str,
    /// Bytes of the value.
    pub value_span: Range<usize>,
    /// The line ends with a carriage return, part of the value before 2.30.3.
    pub carriage_return: bool,
}

impl Entry<'_> {
    /// The value that a release takes: cut at its limit, and with a carriage return where that
    /// release keeps it.
    pub fn value_in(&self, version: Version) -> String {
        let mut value = cut(self.value).to_owned();
        if self.carriage_return && version < CARRIAGE_RETURN_DROPPED && value.len() < LONGEST {
            value.push('\r');
        }
        value
    }
}

/// Reads a file. Nothing is an error: what NCCL skips is said to be skipped.
pub fn read(text: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for (index, whole) in text.split_inclusive('\n').enumerate() {
        let line = whole.strip_suffix('\n').unwrap_or(whole);
        let what = line_of(line, start);
        lines.push(Line { number: index + 1, span: start..start + line.len(), what });
        start += whole.len();
    }
    lines
}

/// The variables that a file sets, each with its line: of two lines for one name the first.
pub fn entries(text: &str) -> Vec<(usize, Entry<'_>)> {
    let mut found: Vec<(usize, Entry<'_>)> = Vec::new();
    for line in read(text) {
        if let What::Entry(entry) = line.what
            && !entry.name.is_empty()
            && !found.iter().any(|(_, e)| e.name == entry.name)
        {
            found.push((line.number, entry));
        }
    }
    found
}

fn line_of(line: &str, start: usize) -> What<'_> {
    if line.starts_with('#') {
        return What::Comment;
    }
    // C text ends at a zero byte
    let seen = &line[..line.find('\0').unwrap_or(line.len())];
    let Some(at) = seen.find('=') else {
        return if seen.trim_end_matches('\r').is_empty() { What::Blank } else { What::Ignored };
    };
    let value = &seen[at + 1..];
    let kept = value.strip_suffix('\r').unwrap_or(value);
    let value_start = start + at + 1;
    What::Entry(Entry {
        name: cut(&seen[..at]),
        name_span: start..start + at,
        value: kept,
        value_span: value_start..value_start + kept.len(),
        carriage_return: kept.len() != value.len(),
    })
}

/// The first [`LONGEST`] bytes, without half a character at the end.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# site defaults\n\nNCCL_DEBUG=WARN\r\nNCCL_SOCKET_IFNAME==eth0\n \
        # NCCL_X=1\nexport NCCL_IB_HCA=\"mlx5\"\nno equals\nNCCL_DEBUG=INFO";

    #[test]
    fn as_nccl_splits_lines() {
        let lines = read(FILE);
        assert_eq!(lines[0].what, What::Comment);
        assert_eq!(lines[1].what, What::Blank);
        assert_eq!(lines[6].what, What::Ignored);
        let entries = entries(FILE);
        let names: Vec<_> = entries.iter().map(|(n, e)| (*n, e.name, e.value)).collect();
        assert_eq!(
            names,
            [
                (3, "NCCL_DEBUG", "WARN"),
                (4, "NCCL_SOCKET_IFNAME", "=eth0"),
                (5, " # NCCL_X", "1"),
                (6, "export NCCL_IB_HCA", "\"mlx5\""),
            ],
            "blanks, quotes and export belong to name and value; the first of two lines wins"
        );
    }

    #[test]
    fn a_carriage_return_is_part_of_the_value_before_2_30_3() {
        let (_, debug) = &entries(FILE)[0];
        assert_eq!(debug.value_in(Version::new(2, 28, 3)), "WARN\r");
        assert_eq!(debug.value_in(Version::new(2, 30, 3)), "WARN");
    }

    proptest::proptest! {
        #[test]
        fn spans_are_what_they_say(text in "([A-Z_#= \\r\\n\"é]|\\PC){0,80}") {
            let mut end = 0;
            for line in read(&text) {
                proptest::prop_assert!(line.span.start >= end);
                end = line.span.end;
                if let What::Entry(entry) = &line.what {
                    proptest::prop_assert_eq!(&text[entry.name_span.clone()], entry.name);
                    proptest::prop_assert_eq!(&text[entry.value_span.clone()], entry.value);
                }
            }
        }
    }
}
