//! Archives whose bytes depend on nothing but their content: ustar and ar with fixed owners and times.

use std::io::Write as _;

use anyhow::{Context as _, bail};

/// What a path is.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A file with its bytes.
    File(Vec<u8>),
    /// A symbolic link and its target.
    Link(String),
    /// A folder.
    Folder,
}

/// One path of an archive.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Path, without a leading slash.
    pub(super) path: String,
    /// Permission bits.
    pub(super) mode: u32,
    /// What it is.
    pub(super) kind: Kind,
}

impl Entry {
    /// A file.
    pub(super) fn file(path: &str, mode: u32, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.to_owned(), mode, kind: Kind::File(bytes.into()) }
    }

    /// A symbolic link.
    pub(super) fn link(path: &str, target: &str) -> Self {
        Self { path: path.to_owned(), mode: 0o777, kind: Kind::Link(target.to_owned()) }
    }

    /// A folder.
    pub(super) fn folder(path: &str, mode: u32) -> Self {
        Self { path: path.to_owned(), mode, kind: Kind::Folder }
    }
}

/// Adds the folders that lead to every entry, each once and before what is in it.
pub(super) fn with_folders(entries: Vec<Entry>) -> Vec<Entry> {
    let mut all: Vec<Entry> = Vec::new();
    for entry in entries {
        for (at, _) in entry.path.match_indices('/') {
            let folder = &entry.path[..at];
            if !all.iter().any(|e| e.path == folder) {
                all.push(Entry::folder(folder, 0o755));
            }
        }
        all.push(entry);
    }
    all
}

/// A ustar archive, everything owned by root, all times `seconds` since 1970.
pub(super) fn tar(entries: &[Entry], seconds: u64) -> anyhow::Result<Vec<u8>> {
    let mut out = Vec::new();
    for entry in entries {
        let (kind, target, bytes): (u8, &str, &[u8]) = match &entry.kind {
            Kind::File(bytes) => (b'0', "", bytes),
            Kind::Link(target) => (b'2', target, &[]),
            Kind::Folder => (b'5', "", &[]),
        };
        let mut path = entry.path.clone();
        if kind == b'5' {
            path.push('/');
        }
        if path.len() > 100 || target.len() > 100 {
            bail!("{path}: longer than a ustar name");
        }
        let mut header = [0_u8; 512];
        let mut put = |at: usize, text: &str| {
            header[at..at + text.len()].copy_from_slice(text.as_bytes());
        };
        put(0, &path);
        put(100, &format!("{:07o}\0", entry.mode));
        put(108, "0000000\0");
        put(116, "0000000\0");
        put(124, &format!("{:011o}\0", bytes.len()));
        put(136, &format!("{seconds:011o}\0"));
        put(148, "        ");
        put(157, target);
        put(257, "ustar\x0000");
        put(265, "root");
        put(297, "root");
        header[156] = kind;
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(bytes);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    Ok(out)
}

/// Compresses, without a time or a name in the header.
pub(super) fn gzip(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).context("gzip")?;
    encoder.finish().context("gzip")
}

/// A Debian package: `ar` with its three members in their order (deb(5)).
pub(super) fn deb(control: &[Entry], data: &[Entry], seconds: u64) -> anyhow::Result<Vec<u8>> {
    let mut out = b"!<arch>\n".to_vec();
    let relative = |entries: &[Entry]| -> Vec<Entry> {
        std::iter::once(Entry::folder(".", 0o755))
            .chain(entries.iter().cloned().map(|mut entry| {
                entry.path.insert_str(0, "./");
                entry
            }))
            .collect()
    };
    for (name, bytes) in [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gzip(&tar(&relative(control), seconds)?)?),
        ("data.tar.gz", gzip(&tar(&relative(data), seconds)?)?),
    ] {
        out.extend_from_slice(
            format!("{name:<16}{seconds:<12}0     0     100644  {:<10}`\n", bytes.len()).as_bytes(),
        );
        out.extend_from_slice(&bytes);
        if bytes.len() % 2 == 1 {
            out.push(b'\n');
        }
    }
    Ok(out)
}
