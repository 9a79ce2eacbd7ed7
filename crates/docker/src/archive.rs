//! A ustar archive of files in memory, for what is put into a volume.

/// One file.
pub(crate) struct Entry<'a> {
    /// Name, under 100 bytes.
    pub(crate) name: &'a str,
    /// Permission bits.
    pub(crate) mode: u32,
    /// Owner and group.
    pub(crate) owner: u32,
    /// Content.
    pub(crate) bytes: &'a [u8],
}

/// The archive (POSIX.1-1988 ustar).
pub(crate) fn ustar(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries {
        let mut header = [0_u8; 512];
        let mut put = |at: usize, text: &str| {
            header[at..at + text.len()].copy_from_slice(text.as_bytes());
        };
        put(0, entry.name);
        put(100, &format!("{:07o}\0{:07o}\0{:07o}\0", entry.mode, entry.owner, entry.owner));
        put(124, &format!("{:011o}\0{:011o}\0        0", entry.bytes.len(), 0));
        put(257, "ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(entry.bytes);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn tar_reads_it() {
        let archive = ustar(&[
            Entry { name: "a", mode: 0o755, owner: 0, bytes: b"x" },
            Entry { name: "token", mode: 0o400, owner: 65532, bytes: &[0; 600] },
        ]);
        let mut tar = std::process::Command::new("tar")
            .args(["-tv", "--numeric-owner", "-f", "-"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        tar.stdin.take().unwrap().write_all(&archive).unwrap();
        let list = String::from_utf8(tar.wait_with_output().unwrap().stdout).unwrap();
        assert!(
            list.contains("-rwxr-xr-x 0/0") && list.contains("-r-------- 65532/65532"),
            "{list}"
        );
    }
}
