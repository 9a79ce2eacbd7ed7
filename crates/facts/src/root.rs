//! The one handle through which a machine is read: the real one, or a captured tree.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Where facts are read from. Everything else in the project is forbidden to touch the file system
/// or the environment directly, so that a captured tree can stand in for a machine.
#[derive(Clone, Debug)]
pub struct Root {
    base: PathBuf,
    environment: BTreeMap<String, String>,
    live: bool,
    touched: Option<Arc<Mutex<BTreeSet<String>>>>,
}

/// Most bytes that are read of one file.
const MOST: u64 = 1 << 20;

/// Symbolic links that are followed on the way to one path, as many as the kernel follows.
const LINKS: usize = 40;

impl Root {
    /// The machine that this process runs on.
    #[expect(clippy::disallowed_methods, reason = "this is the root handle")]
    pub fn live() -> Self {
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self { base: PathBuf::from("/"), environment, live: true, touched: None }
    }

    /// A captured tree with an environment of its own.
    pub fn captured(base: impl Into<PathBuf>, environment: BTreeMap<String, String>) -> Self {
        Self { base: base.into(), environment, live: false, touched: None }
    }

    /// Whether this is the running machine, so that netlink and other calls tell of it too.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// The environment, UTF-8 values only.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// One variable.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str)
    }

    /// Where an absolute path lies under this root.
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.base.join(absolute.trim_start_matches('/'))
    }

    /// The same root, remembering every path that is read, so that a capture can hold just these.
    #[must_use]
    pub fn remembering(mut self) -> Self {
        self.touched = Some(Arc::default());
        self
    }

    /// The paths that were read so far, where they are remembered.
    pub fn touched(&self) -> BTreeSet<String> {
        self.touched.as_ref().and_then(|t| t.lock().ok().map(|t| t.clone())).unwrap_or_default()
    }

    fn touch(&self, absolute: &str) {
        if let Some(mut touched) = self.touched.as_ref().and_then(|t| t.lock().ok()) {
            touched.insert(absolute.to_owned());
        }
    }

    /// Reads a text file, at most a mebibyte, bytes that are not UTF-8 replaced.
    pub fn read(&self, absolute: &str) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes(absolute)?).into_owned())
    }

    /// Reads a file, at most a mebibyte. What is no regular file is refused: a pipe would wait for
    /// somebody who writes.
    pub fn bytes(&self, absolute: &str) -> io::Result<Vec<u8>> {
        self.touch(absolute);
        let file = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(self.inside(absolute))?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(MOST).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Where a path lies in the real file system. Links in a captured tree are followed inside it.
    fn inside(&self, absolute: &str) -> PathBuf {
        if self.live {
            return self.path(absolute);
        }
        self.real(absolute).map_or_else(|| self.path(absolute), |real| self.path(&real))
    }

    /// The path without symbolic links, as the machine itself would see it; `None` where a part of
    /// it is missing.
    #[expect(clippy::disallowed_methods, reason = "this is the root handle")]
    pub fn real(&self, absolute: &str) -> Option<String> {
        self.touch(absolute);
        let mut rest: Vec<String> = split(absolute);
        let mut at: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            if part == ".." {
                at.pop();
                continue;
            }
            at.push(part);
            let here = self.path(&at.join("/"));
            let meta = std::fs::symlink_metadata(&here).ok()?;
            if meta.file_type().is_symlink() {
                links += 1;
                if links > LINKS {
                    return None;
                }
                let target = std::fs::read_link(&here).ok()?;
                let target = target.to_str()?;
                at.pop();
                if target.starts_with('/') {
                    at.clear();
                }
                rest.extend(split(target));
            }
        }
        Some(format!("/{}", at.join("/")))
    }

    /// Whether a folder is there, links followed.
    pub fn is_folder(&self, absolute: &str) -> bool {
        self.inside(absolute).is_dir()
    }

    /// Whether something is there.
    pub fn exists(&self, absolute: &str) -> bool {
        self.real(absolute).is_some()
    }

    /// Reads a text file and trims it; `None` where it can not be read or is empty.
    pub fn line(&self, absolute: &str) -> Option<String> {
        let text = self.read(absolute).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Reads a number, decimal.
    pub fn number<T: std::str::FromStr>(&self, absolute: &str) -> Option<T> {
        self.line(absolute)?.parse().ok()
    }

    /// Names in a folder, sorted; empty where it can not be read.
    #[expect(clippy::disallowed_methods, reason = "this is the root handle")]
    pub fn list(&self, absolute: &str) -> Vec<String> {
        self.touch(absolute);
        let mut names: Vec<String> = std::fs::read_dir(self.inside(absolute))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// Target of a symbolic link as written.
    #[expect(clippy::disallowed_methods, reason = "this is the root handle")]
    pub fn link(&self, absolute: &str) -> Option<PathBuf> {
        self.touch(absolute);
        let (folder, name) = absolute.rsplit_once('/')?;
        std::fs::read_link(self.inside(folder).join(name)).ok()
    }

    /// Last component of a symbolic link's target, like a driver's name.
    pub fn link_name(&self, absolute: &str) -> Option<String> {
        let target = self.link(absolute)?;
        Path::new(&target).file_name()?.to_str().map(str::to_owned)
    }
}

/// Parts of a path, the first one last.
fn split(path: &str) -> Vec<String> {
    path.split('/').rev().filter(|p| !p.is_empty() && *p != ".").map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_a_captured_tree_stay_inside_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        std::fs::create_dir_all(at.join("sys/devices/pci0/net/eth0")).unwrap();
        std::fs::create_dir_all(at.join("sys/class/net")).unwrap();
        std::fs::write(at.join("sys/devices/pci0/net/eth0/mtu"), "9000\n").unwrap();
        std::os::unix::fs::symlink("../../devices/pci0/net/eth0", at.join("sys/class/net/eth0"))
            .unwrap();
        std::os::unix::fs::symlink("/sys/class/net/eth0", at.join("sys/class/net/alias")).unwrap();
        std::os::unix::fs::symlink("loop", at.join("sys/loop")).unwrap();
        let root = Root::captured(at, BTreeMap::new()).remembering();
        assert_eq!(root.line("/sys/class/net/eth0/mtu").as_deref(), Some("9000"));
        assert_eq!(root.line("/sys/class/net/alias/mtu").as_deref(), Some("9000"));
        assert_eq!(
            root.real("/sys/class/net/alias").as_deref(),
            Some("/sys/devices/pci0/net/eth0")
        );
        assert_eq!(root.real("/sys/loop"), None);
        assert_eq!(root.real("/../../etc/passwd"), None, "nothing above the tree");
        assert!(root.touched().contains("/sys/class/net/eth0/mtu"));
    }

    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        let root = Root::captured(folder.path(), BTreeMap::new());
        assert!(root.read("/pipe").is_err());
    }
}
