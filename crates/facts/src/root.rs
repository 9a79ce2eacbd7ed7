//! The one handle through which a machine is read: the real one, or a captured tree.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Where facts are read from. Everything else in the project is forbidden to touch the file system
/// or the environment directly, so that a captured tree can stand in for a machine.
#[derive(Clone, Debug)]
pub struct Root {
    base: PathBuf,
    environment: BTreeMap<String, String>,
    live: bool,
}

impl Root {
    /// The machine that this process runs on.
    #[expect(clippy::disallowed_methods, reason = "this is the root handle")]
    pub fn live() -> Self {
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self { base: PathBuf::from("/"), environment, live: true }
    }

    /// A captured tree with an environment of its own.
    pub fn captured(base: impl Into<PathBuf>, environment: BTreeMap<String, String>) -> Self {
        Self { base: base.into(), environment, live: false }
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

    /// Reads a text file, at most a mebibyte, bytes that are not UTF-8 replaced.
    #[expect(clippy::disallowed_methods, reason = "this is the root handle")]
    pub fn read(&self, absolute: &str) -> io::Result<String> {
        let mut bytes = std::fs::read(self.path(absolute))?;
        bytes.truncate(1 << 20);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
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
        let mut names: Vec<String> = std::fs::read_dir(self.path(absolute))
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
        std::fs::read_link(self.path(absolute)).ok()
    }

    /// Last component of a symbolic link's target, like a driver's name.
    pub fn link_name(&self, absolute: &str) -> Option<String> {
        let target = self.link(absolute)?;
        Path::new(&target).file_name()?.to_str().map(str::to_owned)
    }
}
