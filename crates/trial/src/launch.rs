//! Launchers: `srun ncclctl bench`, `mpirun -np 4 ncclctl bench`, `torchrun --no-python ncclctl bench`.
//!
//! Every process reads its [`Seat`] from the environment. Process 0 coordinates and runs a worker of
//! its own, the others join. On one host they meet through a file that only this user can read; over
//! several they need the coordinator's address and one token file.

mod meeting;
pub mod nodelist;
mod seat;

use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use meeting::MeetingError;
pub use nodelist::NodeListError;
pub use seat::{Environment, Launcher, Seat, Spread, seat};

use self::meeting::{Folder, Meeting};
use crate::token::{Token, TokenError};
use crate::worker::{self, Ended, WorkerError};

/// Variable that names the coordinator, `HOST` or `HOST:PORT`.
pub const COORDINATOR: &str = "NCCLCTL_COORDINATOR";
/// Variable that names the token file.
pub const TOKEN_FILE: &str = "NCCLCTL_TOKEN_FILE";
/// Variable that holds the token itself.
pub const TOKEN: &str = "NCCLCTL_TOKEN";

/// First port that is derived from a job's id.
const PORTS_FROM: u16 = 20_000;
/// How many there are: they end where Linux' own range of client ports starts (`ip_local_port_range`, 32768).
const PORTS: u16 = 12_768;

/// Why a launched process can not take its seat.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A launcher's variable makes no sense.
    #[error("{name}=`{value}`: expected {expected}")]
    Variable {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// Variables that contradict each other.
    #[error("{launcher} says that this is {text}")]
    Contradiction {
        /// The launcher's command.
        launcher: &'static str,
        /// What it says.
        text: String,
    },
    /// A host list makes no sense.
    #[error(transparent)]
    Hosts(#[from] NodeListError),
    /// Several hosts and no token.
    #[error(
        "{world} processes on several hosts need one token; name a file that all hosts see (process 0 creates it, and removes it at the end):\n  {line}"
    )]
    NoToken {
        /// Processes.
        world: usize,
        /// The command to run.
        line: String,
    },
    /// Several hosts and nothing that says where the first process is.
    #[error("where process 0 runs is not known; say it:\n  {line}")]
    NoCoordinator {
        /// The command to run.
        line: String,
    },
    /// The token can not be had.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The token file did not appear.
    #[error("token file {path} did not appear within {waited:.0?}: does this host see the same folder as process 0?", path = .path.display())]
    NoTokenFile {
        /// The file.
        path: PathBuf,
        /// Time waited.
        waited: Duration,
    },
    /// The meeting place can not be used.
    #[error(transparent)]
    Meeting(#[from] MeetingError),
    /// Process 0 wrote nothing.
    #[error("process 0 did not write {path} within {waited:.0?}: it ended early, or runs in another container; then set NCCLCTL_TOKEN_FILE to a path that both see, and NCCLCTL_COORDINATOR", path = .path.display())]
    NobodyCame {
        /// The file.
        path: PathBuf,
        /// Time waited.
        waited: Duration,
    },
    /// The port is taken.
    #[error("can not listen on {address}; choose another port with NCCLCTL_COORDINATOR=HOST:PORT")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// What a process brings to its seat.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Program and arguments that become a rank.
    pub rank_program: (PathBuf, Vec<String>),
    /// Name to show; the host name where `None`.
    pub name: Option<String>,
    /// How long to wait for the others.
    pub patience: Duration,
}

/// What this process does.
#[derive(Debug)]
pub enum Part {
    /// It coordinates: give it to `coordinator::run`.
    Coordinate(Host),
    /// It joins.
    Work(Guest),
}

/// Process 0: listens, and takes away at the end what it wrote.
#[derive(Debug)]
pub struct Host {
    pub(crate) listener: TcpListener,
    pub(crate) token: Token,
    pub(crate) world: usize,
    pub(crate) own: worker::Options,
    _meeting: Option<Meeting>,
    _token_file: Option<Created>,
}

/// Any other process.
#[derive(Debug)]
pub struct Guest {
    way: Way,
    options: worker::Options,
}

/// How a guest finds the coordinator.
#[derive(Debug)]
enum Way {
    Meeting { folder: Folder, name: String },
    Address { address: String, token: TokenSource },
}

/// Where a token comes from.
#[derive(Debug)]
enum TokenSource {
    Given(Token),
    File(PathBuf),
}

/// A token file that this process made.
#[derive(Debug)]
struct Created(PathBuf);

impl Drop for Created {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Seat {
    /// Takes the seat: process 0 listens, the others learn where.
    pub fn take(&self, environment: &Environment, offer: Offer) -> Result<Part, LaunchError> {
        let options = worker::Options {
            index: Some(self.index),
            world: Some(self.world),
            name: offer.name,
            ranks: 1,
            patience: offer.patience,
            rank_program: offer.rank_program,
        };
        let source = token_source(environment)?;
        match source {
            None if self.spread == Spread::OneHost => self.meet(environment, options),
            None => Err(LaunchError::NoToken { world: self.world, line: self.line(TOKEN_FILE) }),
            Some(source) if self.index == 0 => {
                let address = self.listen_on(environment);
                let (token, made) = source.have_or_create()?;
                Ok(Part::Coordinate(Host {
                    listener: listen(&address)?,
                    token,
                    world: self.world,
                    own: options,
                    _meeting: None,
                    _token_file: made,
                }))
            }
            Some(token) => {
                let address = self.coordinator(environment)?;
                Ok(Part::Work(Guest { way: Way::Address { address, token }, options }))
            }
        }
    }

    fn meet(
        &self,
        environment: &Environment,
        options: worker::Options,
    ) -> Result<Part, LaunchError> {
        let folder = Folder::open(environment)?;
        let name = format!("job-{}", self.digest());
        if self.index > 0 {
            return Ok(Part::Work(Guest { way: Way::Meeting { folder, name }, options }));
        }
        // any free port will do: the file says which
        let listener = listen("127.0.0.1:0")?;
        let address = listener
            .local_addr()
            .map_err(|source| LaunchError::Listen { address: "127.0.0.1".to_owned(), source })?;
        let token = Token::new()?;
        let meeting = folder.write(&name, &address.to_string(), &token)?;
        Ok(Part::Coordinate(Host {
            listener,
            token,
            world: self.world,
            own: options,
            _meeting: Some(meeting),
            _token_file: None,
        }))
    }

    /// Names the job without showing what a launcher uses as a secret.
    fn digest(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, self.job.as_bytes());
        digest.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Port that all processes of the job derive from its id.
    fn port(&self) -> u16 {
        let digest = ring::digest::digest(&ring::digest::SHA256, self.job.as_bytes());
        let number = digest.as_ref().iter().take(2).fold(0, |n, byte| n << 8 | u16::from(*byte));
        PORTS_FROM + number % PORTS
    }

    fn listen_on(&self, environment: &Environment) -> String {
        let port = match environment.get(COORDINATOR).map(|given| host_and_port(given)) {
            Some((_, Some(port))) => port,
            _ => self.port(),
        };
        format!("[::]:{port}")
    }

    /// Address of process 0, as the others reach it.
    pub fn coordinator(&self, environment: &Environment) -> Result<String, LaunchError> {
        let given = environment.get(COORDINATOR).map(|given| host_and_port(given));
        let (host, port) = match (given, &self.first_host, self.spread) {
            (Some((host, port)), ..) => (host, port),
            (None, Some(host), _) => (host.clone(), None),
            (None, None, Spread::OneHost) => ("127.0.0.1".to_owned(), None),
            (None, None, Spread::Several) => {
                return Err(LaunchError::NoCoordinator { line: self.line(COORDINATOR) });
            }
        };
        let port = port.unwrap_or_else(|| self.port());
        Ok(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
    }

    /// The command that was probably typed, with one more variable.
    fn line(&self, variable: &str) -> String {
        let value = match variable {
            COORDINATOR => "HOST",
            _ => "$HOME/.ncclctl-token",
        };
        let world = self.world;
        match self.launcher {
            Launcher::Slurm => format!("{variable}={value} srun -n {world} ncclctl bench"),
            Launcher::OpenMpi => {
                format!("mpirun -x {variable}={value} -np {world} ncclctl bench")
            }
            Launcher::Pmi => format!("mpirun -genv {variable} {value} -n {world} ncclctl bench"),
            Launcher::Torchrun => {
                format!("{variable}={value} torchrun … --no-python ncclctl bench")
            }
        }
    }
}

impl Guest {
    /// Joins and serves until the trial is over. Blocking.
    pub fn join(self) -> Result<Ended, WorkerError> {
        match self.way {
            Way::Address { address, token } => {
                let token = token.wait(self.options.patience)?;
                worker::join(&address, &token, self.options)
            }
            Way::Meeting { folder, name } => by_meeting(&folder, &name, self.options),
        }
    }
}

/// Reads the file until the coordinator that it names answers: it may be an older job's, left behind.
fn by_meeting(folder: &Folder, name: &str, options: worker::Options) -> Result<Ended, WorkerError> {
    let started = Instant::now();
    let once = worker::Options { patience: Duration::from_secs(1), ..options };
    loop {
        let mut last = None;
        if let Some((address, token)) = folder.read(name).map_err(LaunchError::from)? {
            match worker::join(&address, &token, once.clone()) {
                Err(error @ (WorkerError::Unreachable { .. } | WorkerError::OtherToken { .. })) => {
                    last = Some(error);
                }
                result => {
                    if matches!(result, Err(WorkerError::Gone { .. })) {
                        // a coordinator that was killed could not take its file away
                        let _ = folder.sweep(name);
                    }
                    return result;
                }
            }
        }
        if started.elapsed() >= options.patience {
            let path = folder.shown(name);
            let waited = started.elapsed();
            return Err(match last {
                Some(error) => error,
                None => LaunchError::NobodyCame { path, waited }.into(),
            });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl TokenSource {
    fn have_or_create(self) -> Result<(Token, Option<Created>), LaunchError> {
        match self {
            Self::Given(token) => Ok((token, None)),
            Self::File(path) if path.exists() => Ok((Token::read(&path)?, None)),
            Self::File(path) => {
                let token = Token::new()?;
                token.create(&path)?;
                Ok((token, Some(Created(path))))
            }
        }
    }

    /// Reads the token; a file may still have to appear.
    fn wait(self, patience: Duration) -> Result<Token, LaunchError> {
        let path = match self {
            Self::Given(token) => return Ok(token),
            Self::File(path) => path,
        };
        let started = Instant::now();
        while !path.exists() {
            if started.elapsed() >= patience {
                return Err(LaunchError::NoTokenFile { path, waited: started.elapsed() });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(Token::read(&path)?)
    }
}

/// Token as the environment gives it: the text itself, or a file.
fn token_source(environment: &Environment) -> Result<Option<TokenSource>, LaunchError> {
    if let Some(text) = environment.get(TOKEN).filter(|text| !text.is_empty()) {
        return Ok(Some(TokenSource::Given(Token::parse(text, TOKEN)?)));
    }
    let file = environment.get(TOKEN_FILE).filter(|path| !path.is_empty());
    Ok(file.map(|path| TokenSource::File(PathBuf::from(path))))
}

/// Splits `HOST`, `HOST:PORT`, `[ADDRESS]:PORT` or a bare IPv6 address.
fn host_and_port(text: &str) -> (String, Option<u16>) {
    if let Some((host, port)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (host.to_owned(), port.strip_prefix(':').and_then(|port| port.parse().ok()));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => (host.to_owned(), port.parse().ok()),
        _ => (text.to_owned(), None),
    }
}

/// Listens, on IPv4 alone where the kernel has no IPv6.
fn listen(address: &str) -> Result<TcpListener, LaunchError> {
    TcpListener::bind(address)
        .or_else(|error| match address.strip_prefix("[::]") {
            Some(port) if error.kind() != io::ErrorKind::AddrInUse => {
                TcpListener::bind(format!("0.0.0.0{port}"))
            }
            _ => Err(error),
        })
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|source| LaunchError::Listen { address: address.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat_of(index: usize, spread: Spread) -> Seat {
        Seat {
            launcher: Launcher::Slurm,
            index,
            world: 4,
            spread,
            job: "slurm-77-0".to_owned(),
            first_host: Some("n1".to_owned()),
        }
    }

    fn offer() -> Offer {
        Offer {
            rank_program: ("/bin/false".into(), Vec::new()),
            name: None,
            patience: Duration::from_millis(200),
        }
    }

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn several_hosts_without_a_token_are_refused_with_the_line_to_run() {
        let error = seat_of(0, Spread::Several).take(&environment(&[]), offer()).unwrap_err();
        insta::assert_snapshot!(error, @r"
        4 processes on several hosts need one token; name a file that all hosts see (process 0 creates it, and removes it at the end):
          NCCLCTL_TOKEN_FILE=$HOME/.ncclctl-token srun -n 4 ncclctl bench
        ");
        let seat =
            Seat { launcher: Launcher::OpenMpi, first_host: None, ..seat_of(1, Spread::Several) };
        let error = seat.coordinator(&environment(&[])).unwrap_err();
        insta::assert_snapshot!(error, @r"
        where process 0 runs is not known; say it:
          mpirun -x NCCLCTL_COORDINATOR=HOST -np 4 ncclctl bench
        ");
    }

    #[test]
    fn address_of_the_coordinator() {
        let seat = seat_of(1, Spread::Several);
        let address = |given: &[(&str, &str)]| seat.coordinator(&environment(given)).unwrap();
        assert_eq!(address(&[]), format!("n1:{}", seat.port()));
        assert_eq!(address(&[(COORDINATOR, "h9:7000")]), "h9:7000");
        assert_eq!(address(&[(COORDINATOR, "[fd00::2]:7000")]), "[fd00::2]:7000");
        assert_eq!(address(&[(COORDINATOR, "fd00::2")]), format!("[fd00::2]:{}", seat.port()));
        assert!((PORTS_FROM..PORTS_FROM + PORTS).contains(&seat.port()));
    }

    #[test]
    fn process_zero_makes_the_token_file_and_takes_it_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let environment =
            environment(&[(TOKEN_FILE, path.to_str().unwrap()), (COORDINATOR, "127.0.0.1:0")]);
        let part = seat_of(0, Spread::Several).take(&environment, offer()).unwrap();
        assert!(path.exists());
        let Part::Work(guest) = seat_of(2, Spread::Several).take(&environment, offer()).unwrap()
        else {
            panic!("process 2 does not coordinate")
        };
        let Way::Address { token, .. } = guest.way else { panic!("several hosts have no folder") };
        assert!(token.wait(Duration::ZERO).is_ok());
        drop(part);
        assert!(!path.exists());
    }

    #[test]
    fn nobody_came_says_where_it_was_waited() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let environment = environment(&[("XDG_RUNTIME_DIR", folder.path().to_str().unwrap())]);
        let Part::Work(guest) = seat_of(1, Spread::OneHost).take(&environment, offer()).unwrap()
        else {
            panic!("process 1 does not coordinate")
        };
        let error = guest.join().unwrap_err().to_string();
        assert!(error.starts_with("process 0 did not write"), "{error}");
        assert!(error.contains(folder.path().to_str().unwrap()), "{error}");
    }
}
