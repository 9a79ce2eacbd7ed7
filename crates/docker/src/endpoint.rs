//! Where an engine listens: `unix://`, `tcp://`, `ssh://`, as `DOCKER_HOST` has it.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where an engine listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A socket of this machine.
    Unix(PathBuf),
    /// Plain HTTP, `HOST:PORT`.
    Tcp(String),
    /// The engine of another host, reached by `ssh HOST docker system dial-stdio`, as the Docker client does.
    Ssh(String),
}

/// An address that is none.
#[derive(Debug, thiserror::Error)]
#[error("`{0}`: expected unix:///PATH, ssh://[USER@]HOST or tcp://HOST:PORT{1}")]
pub struct EndpointError(String, &'static str);

impl Endpoint {
    /// The engine that the user means: `given`, else `DOCKER_HOST`, else the socket of a rootless engine
    /// where only that is there, else `/var/run/docker.sock`.
    pub fn find(
        given: Option<&str>,
        environment: &BTreeMap<String, String>,
    ) -> Result<Self, EndpointError> {
        let named = given.or_else(|| {
            environment.get("DOCKER_HOST").map(String::as_str).filter(|host| !host.is_empty())
        });
        if let Some(text) = named {
            let tls = environment.get("DOCKER_TLS_VERIFY").is_some_and(|v| !v.is_empty());
            return Self::parse(text, tls);
        }
        let usual = PathBuf::from("/var/run/docker.sock");
        let rootless =
            environment.get("XDG_RUNTIME_DIR").map(|dir| PathBuf::from(dir).join("docker.sock"));
        Ok(Self::Unix(match rootless {
            Some(rootless) if !usual.exists() && rootless.exists() => rootless,
            _ => usual,
        }))
    }

    /// Whether the engine is on this machine, so that its devices are those to be seen here.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    fn parse(text: &str, tls: bool) -> Result<Self, EndpointError> {
        let fail = |why| Err(EndpointError(text.to_owned(), why));
        match text.split_once("://") {
            Some(("unix", path)) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(("tcp" | "http", _)) if tls => {
                fail("; TLS (DOCKER_TLS_VERIFY) is not spoken here: use ssh://")
            }
            Some(("tcp" | "http", address)) if address.contains(':') => {
                Ok(Self::Tcp(address.trim_end_matches('/').to_owned()))
            }
            // what starts with a dash would be an option of ssh
            Some(("ssh", host)) if !host.is_empty() && !host.starts_with('-') => {
                Ok(Self::Ssh(host.trim_end_matches('/').to_owned()))
            }
            _ => fail(""),
        }
    }

    /// Opens a connection; a read that brings nothing for `patience` fails.
    pub(crate) fn connect(&self, patience: Option<Duration>) -> io::Result<Box<dyn Duplex>> {
        match self {
            Self::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(patience)?;
                Ok(Box::new(stream))
            }
            Self::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_read_timeout(patience)?;
                Ok(Box::new(stream))
            }
            Self::Ssh(host) => {
                let (host, port) = match host.rsplit_once(':') {
                    Some((host, port)) if port.parse::<u16>().is_ok() => (host, Some(port)),
                    _ => (host.as_str(), None),
                };
                let mut command = Command::new("ssh");
                command.args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]);
                if let Some(port) = port {
                    command.args(["-p", port]);
                }
                let child = command
                    .args([host, "--", "docker", "system", "dial-stdio"])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()?;
                Ok(Box::new(Ssh(child)))
            }
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
            Self::Ssh(host) => write!(f, "ssh://{host}"),
        }
    }
}

/// Both directions of a connection.
pub(crate) trait Duplex: Read + Write + Send {}

impl<T: Read + Write + Send> Duplex for T {}

struct Ssh(Child);

impl Read for Ssh {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.stdout.as_mut().map_or(Ok(0), |out| out.read(buffer))
    }
}

impl Write for Ssh {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.stdin.as_mut().map_or(Err(io::ErrorKind::BrokenPipe.into()), |to| to.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.stdin.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_docker_writes_them() {
        let environment = |host: &str, tls: &str| {
            [("DOCKER_HOST", host), ("DOCKER_TLS_VERIFY", tls)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into()
        };
        let find = |host: &str| Endpoint::find(None, &environment(host, ""));
        assert_eq!(find("unix:///run/d.sock").unwrap(), Endpoint::Unix("/run/d.sock".into()));
        assert_eq!(find("tcp://h:2375").unwrap(), Endpoint::Tcp("h:2375".into()));
        assert_eq!(find("ssh://me@h:22").unwrap(), Endpoint::Ssh("me@h:22".into()));
        for bad in
            ["ssh://-oProxyCommand=x", "unix://relative", "tcp://h", "h:2375", "npipe:////./x"]
        {
            assert!(find(bad).is_err(), "{bad}");
        }
        let tls = Endpoint::find(None, &environment("tcp://h:2376", "1")).unwrap_err();
        insta::assert_snapshot!(tls, @"`tcp://h:2376`: expected unix:///PATH, ssh://[USER@]HOST or tcp://HOST:PORT; TLS (DOCKER_TLS_VERIFY) is not spoken here: use ssh://");
        let given = Endpoint::find(Some("ssh://a"), &environment("ssh://b", "")).unwrap();
        assert_eq!(given.to_string(), "ssh://a");
    }
}
