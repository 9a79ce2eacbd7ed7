//! The worker's side of a rank's NCCL log: an unnamed file that nobody can leave behind, passed on
//! line by line, so that container logs and collectors see what NCCL says.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use rustix::fs::MemfdFlags;

use super::options::LogTo;

/// Bytes read at a time.
const PIECE: usize = 1 << 16;

/// One rank's log.
pub(crate) struct Follow {
    rank: usize,
    log: File,
    output: File,
    read: [u64; 2],
    pending: [Vec<u8>; 2],
    to: Target,
    /// Lines about single calls that were passed on once; the rest are counted.
    calls: HashSet<Vec<u8>>,
    repeats: u64,
    last: Option<String>,
    warning: Option<String>,
}

enum Target {
    Stderr,
    File(File),
    Off,
}

impl Follow {
    /// Makes the log of a rank that is about to start.
    pub(crate) fn new(
        rank: usize,
        to: &LogTo,
        settings: &BTreeMap<String, String>,
    ) -> io::Result<Self> {
        let make = |name: String| -> io::Result<File> {
            Ok(File::from(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?))
        };
        let to = match to {
            LogTo::Stderr => Target::Stderr,
            LogTo::Off => Target::Off,
            LogTo::File(path) => {
                let asked = settings.get("NCCL_DEBUG_FILE").map(String::as_str);
                let pattern = asked.unwrap_or_else(|| path.to_str().unwrap_or("nccl.%r.log"));
                Target::File(File::create(file_name(pattern, rank))?)
            }
        };
        Ok(Self {
            rank,
            log: make(format!("nccl log of rank {rank}"))?,
            output: make(format!("output of rank {rank}"))?,
            read: [0; 2],
            pending: [Vec::new(), Vec::new()],
            to,
            calls: HashSet::new(),
            repeats: 0,
            last: None,
            warning: None,
        })
    }

    /// Path under which the rank opens the log: a descriptor of this process.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.log.as_raw_fd())
    }

    /// What the rank gets as standard output.
    pub(crate) fn output(&self) -> io::Result<File> {
        self.output.try_clone()
    }

    /// Passes on what came since the last time.
    pub(crate) fn pass(&mut self) {
        let mut lines = Vec::new();
        for which in 0..2 {
            let file = if which == 0 { &self.log } else { &self.output };
            let mut piece = [0; PIECE];
            while let Ok(n @ 1..) = file.read_at(&mut piece, self.read[which]) {
                self.read[which] += n as u64;
                self.pending[which].extend_from_slice(&piece[..n]);
            }
            let Some(end) = self.pending[which].iter().rposition(|b| *b == b'\n') else { continue };
            let whole: Vec<u8> = self.pending[which].drain(..=end).collect();
            lines
                .extend(whole.split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(<[u8]>::to_vec));
        }
        let mut out = Vec::new();
        for line in lines {
            self.take(&line, &mut out);
        }
        self.write(&out);
    }

    fn take(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let text = String::from_utf8_lossy(line);
        if let Some((_, said)) = text.split_once("NCCL WARN ") {
            self.warning.get_or_insert_with(|| said.trim().chars().take(240).collect());
        }
        // one line for every call would bury the rest: each different one is passed on once
        if text.contains(" Bytes -> Algo ") {
            if self.calls.len() > 4096 || !self.calls.insert(line.to_vec()) {
                self.repeats += 1;
                return;
            }
        } else if let Some((_, said)) = text.split_once("NCCL INFO ") {
            self.last = Some(said.trim().chars().take(240).collect());
        }
        if matches!(self.to, Target::Stderr) {
            out.extend_from_slice(format!("[rank {}] ", self.rank).as_bytes());
        }
        out.extend_from_slice(line);
        out.push(b'\n');
    }

    fn write(&mut self, bytes: &[u8]) {
        // a log that can not be written any more must not end the trial
        let _ = match &mut self.to {
            Target::Stderr => io::stderr().lock().write_all(bytes),
            Target::File(file) => file.write_all(bytes),
            Target::Off => Ok(()),
        };
    }

    /// Passes on the rest and says what NCCL said last, where the rank was lost.
    pub(crate) fn last_words(&mut self) -> String {
        self.pass();
        match (&self.warning, &self.last) {
            (Some(warning), _) => format!("; NCCL warned: {warning}"),
            (None, Some(last)) => format!("; NCCL said last: {last}"),
            (None, None) => String::new(),
        }
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.pass();
        if self.repeats > 0 {
            let text =
                format!("[rank {}] … {} more such lines, one a call\n", self.rank, self.repeats);
            self.write(text.as_bytes());
        }
    }
}

/// NCCL's own placeholders, and one for the rank; a name without any gets the rank at its end, so that
/// ranks do not share a file.
fn file_name(pattern: &str, rank: usize) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let named = pattern
        .replace("%h", &host)
        .replace("%p", &format!("rank{rank}"))
        .replace("%r", &rank.to_string());
    if named == pattern { format!("{pattern}.{rank}") } else { named }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests look at what was written")]
mod tests {
    use super::*;

    #[test]
    fn lines_are_passed_on_whole_and_calls_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nccl");
        let mut follow = Follow::new(2, &LogTo::File(path.clone()), &BTreeMap::new()).unwrap();
        let mut writer = std::fs::OpenOptions::new().write(true).open(follow.path()).unwrap();
        writer.write_all(b"h:1:1 [0] NCCL INFO A\nh:1:1 [0] NCCL IN").unwrap();
        follow.pass();
        writer.write_all(b"FO B\n").unwrap();
        for _ in 0..3 {
            writer
                .write_all(b"h:1:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo RING proto LL\n")
                .unwrap();
        }
        follow.output().unwrap().write_all(b"NCCL version 2.21.5+cuda12.4\n").unwrap();
        assert_eq!(follow.last_words(), "; NCCL said last: B");
        drop(follow);
        let text = std::fs::read_to_string(folder.path().join("nccl.2")).unwrap();
        insta::assert_snapshot!(text, @r"
        h:1:1 [0] NCCL INFO A
        h:1:1 [0] NCCL INFO B
        h:1:1 [0] NCCL INFO AllReduce: 8 Bytes -> Algo RING proto LL
        NCCL version 2.21.5+cuda12.4
        [rank 2] … 2 more such lines, one a call
        ");
    }

    #[test]
    fn names_of_files() {
        assert_eq!(file_name("/tmp/a.%r.log", 3), "/tmp/a.3.log");
        assert_eq!(file_name("/tmp/a", 3), "/tmp/a.3");
    }
}
