//! Where the processes of one launch on one host meet: a file that only this user can read, with the
//! coordinator's address and the token.
//!
//! The coordinator holds a lock on it as long as it lives, so a file without a lock was left by a
//! process that was killed, and may be replaced.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};

use super::Environment;
use crate::token::Token;

/// Why processes can not meet.
#[derive(Debug, thiserror::Error)]
pub enum MeetingError {
    /// The folder or file can not be used.
    #[error("meeting place {path}", path = .path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Somebody else could read or change what is written there.
    #[error("meeting place {path} {why}; remove it, or set XDG_RUNTIME_DIR to a folder of yours with mode 0700", path = .path.display())]
    Unsafe {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A living coordinator has it.
    #[error("{path} belongs to a coordinator that still runs: two launches say that they are the same job", path = .path.display())]
    Taken {
        /// The path.
        path: PathBuf,
    },
}

/// The folder: nobody else can write into it, or put something else in its place.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    fd: OwnedFd,
}

/// The file of a living coordinator; removed when dropped.
#[derive(Debug)]
pub(super) struct Meeting {
    folder: Folder,
    name: String,
    /// Carries the lock.
    _locked: File,
}

impl Folder {
    /// `$XDG_RUNTIME_DIR/ncclctl`, or `/tmp/ncclctl-UID` where there is no usable runtime folder.
    pub(super) fn open(environment: &Environment) -> Result<Self, MeetingError> {
        let user = rustix::process::geteuid();
        if let Some(runtime) = environment.get("XDG_RUNTIME_DIR").filter(|p| p.starts_with('/'))
            && let Ok(parent) = Self::of(PathBuf::from(runtime), false)
        {
            return Self::of(parent.path.join("ncclctl"), true);
        }
        Self::of(PathBuf::from(format!("/tmp/ncclctl-{}", user.as_raw())), true)
    }

    /// Opens a folder and checks that it is this user's alone.
    pub(super) fn of(path: PathBuf, create: bool) -> Result<Self, MeetingError> {
        let fail = |error: rustix::io::Errno| MeetingError::File {
            path: path.clone(),
            source: error.into(),
        };
        let broken = |why: String| MeetingError::Unsafe { path: path.clone(), why };
        if create {
            match rustix::fs::mkdir(&path, Mode::RWXU) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(fail(error)),
            }
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
                return Err(broken("is no folder".to_owned()));
            }
            Err(error) => return Err(fail(error)),
        };
        let meta = rustix::fs::fstat(&fd).map_err(fail)?;
        if meta.st_uid != rustix::process::geteuid().as_raw() {
            return Err(broken(format!("belongs to user {}", meta.st_uid)));
        }
        if meta.st_mode & 0o077 != 0 {
            return Err(broken(format!("is open to others (mode {:04o})", meta.st_mode & 0o7777)));
        }
        Ok(Self { path, fd })
    }

    fn file(&self, name: &str) -> Result<Option<File>, MeetingError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(File::from(fd))),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(self.fail(name, error.into())),
        }
    }

    fn fail(&self, name: &str, source: io::Error) -> MeetingError {
        MeetingError::File { path: self.path.join(name), source }
    }

    /// Address and token, where they are there already.
    pub(super) fn read(&self, name: &str) -> Result<Option<(String, Token)>, MeetingError> {
        let Some(file) = self.file(name)? else { return Ok(None) };
        let mut text = String::new();
        file.take(4096).read_to_string(&mut text).map_err(|error| self.fail(name, error))?;
        let Some((address, token)) = text.split_once('\n') else { return Ok(None) };
        Ok(Token::parse(token, "meeting place").ok().map(|token| (address.to_owned(), token)))
    }

    /// Removes what a killed coordinator left. Says whether a living one has the file.
    pub(super) fn sweep(&self, name: &str) -> Result<bool, MeetingError> {
        let Some(file) = self.file(name)? else { return Ok(false) };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(true);
        }
        // only the holder of the lock may remove what it locked, and nothing that came after it
        let same = |a: &rustix::fs::Stat, b: &rustix::fs::Stat| {
            (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
        };
        let locked = rustix::fs::fstat(&file).map_err(|error| self.fail(name, error.into()))?;
        let there = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW);
        if there.is_ok_and(|there| same(&there, &locked)) {
            let _ = rustix::fs::unlinkat(&self.fd, name, AtFlags::empty());
        }
        Ok(false)
    }

    /// Writes the file of this coordinator: whole or not at all, 0600, locked.
    pub(super) fn write(
        self,
        name: &str,
        address: &str,
        token: &Token,
    ) -> Result<Meeting, MeetingError> {
        let temporary = OsString::from(format!(".{name}.{}", std::process::id()));
        let _ = rustix::fs::unlinkat(&self.fd, &*temporary, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, &*temporary, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| self.fail(name, error.into()))?;
        let mut file = File::from(fd);
        let written = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(file, "{address}\n{}", token.text()))
            .map_err(|error| self.fail(name, error))
            .and_then(|()| self.link(&temporary, name));
        let _ = rustix::fs::unlinkat(&self.fd, &*temporary, AtFlags::empty());
        written?;
        Ok(Meeting { folder: self, name: name.to_owned(), _locked: file })
    }

    /// Gives the finished file its name, unless a living coordinator has that name.
    fn link(&self, temporary: &OsString, name: &str) -> Result<(), MeetingError> {
        for _ in 0..10 {
            let linked =
                rustix::fs::linkat(&self.fd, &**temporary, &self.fd, name, AtFlags::empty());
            match linked {
                Ok(()) => return Ok(()),
                Err(rustix::io::Errno::EXIST) => {
                    if self.sweep(name)? {
                        return Err(MeetingError::Taken { path: self.path.join(name) });
                    }
                }
                Err(error) => return Err(self.fail(name, error.into())),
            }
        }
        Err(MeetingError::Taken { path: self.path.join(name) })
    }

    /// Where a file of this name lies, for messages.
    pub(super) fn shown(&self, name: &str) -> PathBuf {
        Path::new(&self.path).join(name)
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        let _ = rustix::fs::unlinkat(&self.folder.fd, &*self.name, AtFlags::empty());
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests look at what was written")]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn folder(base: &Path) -> Result<Folder, MeetingError> {
        Folder::of(base.join("ncclctl"), true)
    }

    #[test]
    fn written_read_and_removed() {
        let base = tempfile::tempdir().unwrap();
        let token = Token::new().unwrap();
        assert!(folder(base.path()).unwrap().read("job").unwrap().is_none());
        let meeting = folder(base.path()).unwrap().write("job", "127.0.0.1:9", &token).unwrap();
        let path = base.path().join("ncclctl/job");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let (address, read) = folder(base.path()).unwrap().read("job").unwrap().unwrap();
        assert_eq!((address.as_str(), read == token), ("127.0.0.1:9", true));
        drop(meeting);
        assert_eq!(std::fs::read_dir(base.path().join("ncclctl")).unwrap().count(), 0);
    }

    #[test]
    fn a_living_coordinator_keeps_its_place_and_a_dead_one_loses_it() {
        let base = tempfile::tempdir().unwrap();
        let token = Token::new().unwrap();
        let meeting = folder(base.path()).unwrap().write("job", "a:1", &token).unwrap();
        let second = folder(base.path()).unwrap().write("job", "b:2", &token);
        assert!(matches!(second, Err(MeetingError::Taken { .. })), "{second:?}");
        assert_eq!(folder(base.path()).unwrap().read("job").unwrap().unwrap().0, "a:1");
        assert!(folder(base.path()).unwrap().sweep("job").unwrap());
        drop(meeting);
        // what kill -9 leaves: the file, and no lock
        std::fs::write(base.path().join("ncclctl/job"), "a:1\n").unwrap();
        assert!(folder(base.path()).unwrap().read("job").unwrap().is_none());
        let meeting = folder(base.path()).unwrap().write("job", "b:2", &token).unwrap();
        assert_eq!(folder(base.path()).unwrap().read("job").unwrap().unwrap().0, "b:2");
        drop(meeting);
        std::fs::write(base.path().join("ncclctl/job"), "a:1\n").unwrap();
        assert!(!folder(base.path()).unwrap().sweep("job").unwrap());
        assert!(!base.path().join("ncclctl/job").exists());
    }

    #[test]
    fn links_and_open_folders_are_refused() {
        let base = tempfile::tempdir().unwrap();
        let elsewhere = base.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, base.path().join("ncclctl")).unwrap();
        let error = folder(base.path()).unwrap_err().to_string();
        assert!(error.contains("is no folder"), "{error}");
        std::fs::remove_file(base.path().join("ncclctl")).unwrap();
        std::fs::create_dir(base.path().join("ncclctl")).unwrap();
        std::fs::set_permissions(
            base.path().join("ncclctl"),
            std::fs::Permissions::from_mode(0o770),
        )
        .unwrap();
        let error = folder(base.path()).unwrap_err().to_string();
        assert!(error.contains("mode 0770"), "{error}");
    }

    #[test]
    fn a_link_in_the_files_place_is_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let victim = base.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let folder = folder(base.path()).unwrap();
        symlink(&victim, base.path().join("ncclctl/job")).unwrap();
        assert!(folder.read("job").is_err());
        assert!(folder.write("job", "a:1", &Token::new().unwrap()).is_err());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }
}
