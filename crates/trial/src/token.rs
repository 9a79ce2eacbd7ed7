//! The join token: the one secret that has to travel (see `docs/design/one-token.md`).

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom as _, SystemRandom};

/// 32 random bytes. Never shown: `Debug` is redacted and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; 32]);

/// Why a token can not be had.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file can not be read or written.
    #[error("token file {path}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The text is no token.
    #[error("{place} holds no token: expected 64 hexadecimal digits, found {found}")]
    Text {
        /// File or variable.
        place: String,
        /// What is there, without showing it.
        found: String,
    },
    /// Others could have read or written it.
    #[error("token file {path} {why}; `chmod 600` it, owned by the user who runs this", path = .path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    Random,
}

impl Token {
    /// A new token.
    pub fn new() -> Result<Self, TokenError> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| TokenError::Random)?;
        Ok(Self(bytes))
    }

    /// Reads the text form; `place` is named in the error, the text is not.
    pub fn parse(text: &str, place: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let fail = |found: String| TokenError::Text { place: place.to_owned(), found };
        if text.len() != 64 {
            return Err(fail(format!("{} characters", text.len())));
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digit = |c: u8| (c as char).to_digit(16);
            match (digit(pair[0]), digit(pair[1])) {
                (Some(high), Some(low)) => *byte = (high * 16 + low) as u8,
                _ => return Err(fail("other characters".to_owned())),
            }
        }
        Ok(Self(bytes))
    }

    /// Reads a token file. A file that its group or others may read is refused, unless it is
    /// mounted read-only for this process (a Kubernetes Secret is often 0644 or 0440).
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let fail = |source| TokenError::File { path: path.to_owned(), source };
        let file = File::open(path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        let read_only = rustix::fs::fstatvfs(&file)
            .is_ok_and(|fs| fs.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY));
        if !read_only && meta.mode() & 0o077 != 0 {
            let why = format!("may be read by others (mode {:04o})", meta.mode() & 0o7777);
            return Err(TokenError::Exposed { path: path.to_owned(), why });
        }
        let mut text = String::new();
        (&file).take(1024).read_to_string(&mut text).map_err(fail)?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Writes a new file, 0600, that must not exist; it appears whole or not at all.
    pub fn create(&self, path: &Path) -> Result<(), TokenError> {
        let fail = |source| TokenError::File { path: path.to_owned(), source };
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", std::process::id()));
        let temporary = path.with_file_name(name);
        let _ = std::fs::remove_file(&temporary);
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| writeln!(file, "{}", self.text()))
            // a hard link fails where the name is taken, so no one's file is replaced
            .and_then(|()| std::fs::hard_link(&temporary, path));
        let _ = std::fs::remove_file(&temporary);
        written.map_err(fail)
    }

    /// The text form, for a file or a Secret.
    pub fn text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A secret of 32 bytes for one purpose, by HKDF-SHA256.
    pub(crate) fn derive(&self, purpose: &'static [u8]) -> [u8; 32] {
        use ring::hkdf;
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"ncclctl join token v1");
        let mut out = [0; 32];
        // 32 bytes is one block of SHA-256: expanding can not be refused
        let filled = salt
            .extract(&self.0)
            .expand(&[purpose], hkdf::HKDF_SHA256)
            .and_then(|okm| okm.fill(&mut out));
        debug_assert!(filled.is_ok());
        out
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests look at what was written")]
mod tests {
    use super::*;

    #[test]
    fn written_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = Token::new().unwrap();
        token.create(&path).unwrap();
        assert_eq!(Token::read(&path).unwrap(), token);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_or_link_that_is_there_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let link = folder.path().join("token");
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        assert!(Token::new().unwrap().create(&link).is_err());
        assert!(Token::new().unwrap().create(&victim).is_err());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn an_exposed_or_broken_file_is_refused_without_showing_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        Token::new().unwrap().create(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = Token::read(&path).unwrap_err().to_string();
        assert!(error.contains("mode 0644") && error.contains("chmod 600"), "{error}");
        let error = Token::parse("hunter2", "NCCLCTL_TOKEN").unwrap_err().to_string();
        assert!(error.contains("NCCLCTL_TOKEN") && !error.contains("hunter2"), "{error}");
        assert!(Token::parse(&"é".repeat(32), "x").is_err());
    }

    #[test]
    fn debug_shows_nothing() {
        let token = Token::new().unwrap();
        assert!(!format!("{token:?}").contains(&token.text()[..8]));
    }
}
