//! A look into the files of a container, running or not, or of an image: only the few that decide
//! which library NCCL is and what it reads, put into a folder as a capture has them. Nothing of it
//! is run.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::Path;

use serde_json::json;

use crate::engine::{Engine, EngineError};
use crate::http::escape;
use crate::inspect::Seen;

/// Folders of libraries, of the systems and of providers.
const FOLDERS: [&str; 15] = [
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/cuda/lib64",
    "/usr/local/nvidia/lib64",
    "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu",
    "/opt/amazon/ofi-nccl/lib",
    "/opt/amazon/efa/lib",
    "/opt/amazon/efa/lib64",
    "/opt/hpcx/nccl_rdma_sharp_plugin/lib",
    "/opt/hpcx/ucx/lib",
    "/usr/local/tcpx/lib64",
    "/usr/local/gib/lib64",
];

/// Libraries that decide.
const LIBRARIES: [&str; 9] = [
    "libnccl.so.2",
    "libibverbs.so.1",
    "libnccl-net.so",
    "libnccl-tuner.so",
    "libnccl-env.so",
    "libfabric.so.1",
    "libucp.so.0",
    "libcudart.so.12",
    "libcudart.so.13",
];

/// Where Python environments are, and which versions.
const PYTHONS: [&str; 4] = ["/usr/local/lib", "/usr/lib", "/opt/conda/lib", "/opt/venv/lib"];
const MINORS: std::ops::RangeInclusive<u32> = 8..=14;

/// Most bytes that are taken of one text file, and of one folder.
const TEXT: u64 = 1 << 20;
const FOLDER: u64 = 32 << 20;

/// Puts what decides into `into`. For an image a container is made that is never started, and removed.
pub fn files(engine: &Engine, seen: &Seen, into: &Path) -> Result<(), EngineError> {
    if !seen.id.is_empty() {
        return Look { engine, id: &seen.id, into }.all(seen);
    }
    let body = json!({"Image": seen.image, "Entrypoint": ["/never"], "NetworkDisabled": true, "Labels": {"ncclctl/role": "look"}});
    let made =
        engine.json("POST", "/containers/create", Some(&body), "a container to look into")?;
    let id = made["Id"].as_str().unwrap_or_default().to_owned();
    let looked = Look { engine, id: &id, into }.all(seen);
    let gone = engine.json("DELETE", &format!("/containers/{id}?force=1&v=1"), None, "remove it");
    looked.and(gone.map(|_| ()))
}

struct Look<'a> {
    engine: &'a Engine,
    id: &'a str,
    into: &'a Path,
}

/// Head of an entry of an archive (POSIX.1-1988 ustar).
struct Head {
    name: String,
    kind: u8,
    size: u64,
    link: String,
}

/// The first entry of an archive, and what follows it.
type Opened = (Head, Box<dyn io::Read + Send>);

impl Look<'_> {
    fn all(&self, seen: &Seen) -> Result<(), EngineError> {
        let environment = &seen.given.environment;
        let mut folders: Vec<String> = environment
            .get("LD_LIBRARY_PATH")
            .into_iter()
            .flat_map(|path| path.split(':'))
            .filter(|folder| folder.starts_with('/'))
            .map(|folder| folder.trim_end_matches('/').to_owned())
            .collect();
        folders.extend(FOLDERS.map(str::to_owned));
        let mut done = BTreeSet::new();
        for folder in folders {
            if !done.insert(folder.clone()) || self.head(&folder)?.is_none() {
                continue;
            }
            for name in LIBRARIES {
                self.name(&format!("{folder}/{name}"))?;
            }
            self.names_in(&format!("{folder}/libibverbs"))?;
        }
        for base in PYTHONS {
            for minor in MINORS {
                for packages in ["site-packages", "dist-packages"] {
                    let folder = format!("{base}/python3.{minor}/{packages}");
                    let library = format!("{folder}/nvidia/nccl/lib/libnccl.so.2");
                    if self.head(&format!("{base}/python3.{minor}"))?.is_some()
                        && self.name(&library)?
                    {
                        self.text(&format!("{folder}/nvidia/nccl/include/nccl.h"))?;
                    }
                }
            }
        }
        self.text("/etc/nccl.conf")?;
        let home = environment.get("HOME").map_or("/root", String::as_str);
        let own = environment.get("NCCL_CONF_FILE").cloned();
        let own = own.unwrap_or_else(|| format!("{}/.nccl.conf", home.trim_end_matches('/')));
        if own.starts_with('/') {
            self.text(&own)?;
        }
        self.text("/etc/ld.so.preload")?;
        self.folder("/etc/ld.so.conf.d")
    }

    /// The first entry of the archive of a path, and the rest of the answer; `None` where it is not there.
    fn open(&self, path: &str) -> Result<Option<Opened>, EngineError> {
        let query = format!("/containers/{}/archive?path={}", self.id, escape(path));
        match self.engine.send("GET", &query, "application/json", b"", None, path) {
            Ok(answer) => {
                let mut body = answer.body;
                Ok(head(&mut body).map(|head| (head, body)))
            }
            Err(error) if error.is_gone() => Ok(None),
            // a path through a file, or a link that leads nowhere
            Err(EngineError::Refused { status: 400..=599, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn head(&self, path: &str) -> Result<Option<Head>, EngineError> {
        Ok(self.open(path)?.map(|(head, _)| head))
    }

    /// Keeps the name of a file, and where it points to, without its content.
    fn name(&self, path: &str) -> Result<bool, EngineError> {
        let Some(head) = self.head(path)? else { return Ok(false) };
        if head.kind == b'2' {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let to = if head.link.starts_with('/') {
                head.link.clone()
            } else {
                format!("{folder}/{}", head.link)
            };
            self.write(&to, b"");
            self.symlink(path, &head.link);
        } else {
            self.write(path, b"");
        }
        Ok(true)
    }

    fn text(&self, path: &str) -> Result<(), EngineError> {
        let Some((head, body)) = self.open(path)? else { return Ok(()) };
        if head.kind == b'0' || head.kind == 0 {
            let mut bytes = Vec::new();
            if body.take(head.size.min(TEXT)).read_to_end(&mut bytes).is_ok() {
                self.write(path, &bytes);
            }
        }
        Ok(())
    }

    /// Names of the files in a small folder.
    fn names_in(&self, path: &str) -> Result<(), EngineError> {
        self.entries(path, |look, name, _| look.write(&format!("{path}/{name}"), b""))
    }

    /// Files of a small folder.
    fn folder(&self, path: &str) -> Result<(), EngineError> {
        self.entries(path, |look, name, bytes| look.write(&format!("{path}/{name}"), bytes))
    }

    fn entries(&self, path: &str, keep: impl Fn(&Self, &str, &[u8])) -> Result<(), EngineError> {
        let Some((first, body)) = self.open(path)? else { return Ok(()) };
        if first.kind != b'5' {
            return Ok(());
        }
        let mut body = body.take(FOLDER);
        while let Some(head) = head(&mut body) {
            let mut bytes = Vec::new();
            let padded = head.size.next_multiple_of(512);
            if (&mut body).take(padded).read_to_end(&mut bytes).is_err() {
                break;
            }
            bytes.truncate(usize::try_from(head.size).unwrap_or(0));
            let name = head.name.rsplit('/').next().unwrap_or_default();
            if matches!(head.kind, b'0' | 0 | b'2') && !name.is_empty() {
                keep(self, name, &bytes);
            }
        }
        Ok(())
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        if let Some(place) = self.place(path)
            && !place.exists()
        {
            let _ = std::fs::write(place, bytes);
        }
    }

    fn symlink(&self, path: &str, target: &str) {
        if let Some(place) = self.place(path) {
            let _ = std::os::unix::fs::symlink(target, place);
        }
    }

    /// Where a path lies in the folder; `None` for one that would leave it.
    fn place(&self, path: &str) -> Option<std::path::PathBuf> {
        let relative = path.trim_start_matches('/');
        let mut parts = Vec::new();
        for part in relative.split('/').filter(|p| !p.is_empty() && *p != ".") {
            match part {
                ".." => {
                    parts.pop()?;
                }
                part => parts.push(part),
            }
        }
        let place = self.into.join(parts.join("/"));
        std::fs::create_dir_all(place.parent()?).ok()?;
        Some(place)
    }
}

/// Reads the head of the next entry; `None` at the end, or where it is no archive.
fn head(body: &mut impl io::Read) -> Option<Head> {
    let mut block = [0_u8; 512];
    body.read_exact(&mut block).ok()?;
    let text = |from: usize, to: usize| {
        let bytes = &block[from..to];
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    let name = text(0, 100);
    if name.is_empty() {
        return None;
    }
    let size = u64::from_str_radix(text(124, 136).trim(), 8).ok()?;
    Some(Head { name, kind: block[156], size, link: text(157, 257) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{Entry, ustar};

    #[test]
    fn heads_of_an_archive() {
        let archive = ustar(&[Entry { name: "nccl.conf", mode: 0o644, owner: 0, bytes: b"A=1\n" }]);
        let mut rest = archive.as_slice();
        let first = head(&mut rest).unwrap();
        assert_eq!((first.name.as_str(), first.size, first.kind), ("nccl.conf", 4, b'0'));
        assert_eq!(&rest[..4], b"A=1\n");
        assert!(head(&mut &[0_u8; 1024][..]).is_none());
        assert!(head(&mut &b"no archive"[..]).is_none());
    }
}
