//! A worker: one per machine, container or pod. Joins the coordinator, starts ranks, passes messages
//! on, reads counters. It keeps nothing: whatever ends it ends its ranks.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc;

use crate::engine::Setup;
use crate::frame;
use crate::host;
use crate::message::{Answer, FromWorker, Hello, Join, PROTOCOL, Step, ToWorker};
use crate::tls;
use crate::token::Token;

/// How a worker takes part.
#[derive(Clone, Debug)]
pub struct Options {
    /// Place among the workers, where a launcher gave one.
    pub index: Option<usize>,
    /// How many workers the launcher started, where it says.
    pub world: Option<usize>,
    /// Name to show; the host name where `None`.
    pub name: Option<String>,
    /// Ranks to offer.
    pub ranks: usize,
    /// How long to try to reach the coordinator.
    pub patience: Duration,
    /// Program and arguments that become a rank.
    pub rank_program: (PathBuf, Vec<String>),
}

/// How a worker ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The coordinator said that the trial is over.
    Finished,
}

/// Why a worker ended.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The coordinator can not be reached.
    #[error("coordinator {address}: {seen} after {tries} tries in {waited:.0?}")]
    Unreachable {
        /// Address as given.
        address: String,
        /// The last thing seen.
        seen: String,
        /// Tries made.
        tries: u32,
        /// Time spent.
        waited: Duration,
    },
    /// Its key is not the one that the token gives.
    #[error("coordinator {address} has another token: copy the token file of this very run")]
    OtherToken {
        /// Address as given.
        address: String,
    },
    /// It closed the connection before the trial was over.
    #[error("coordinator {address} is gone: {seen}")]
    Gone {
        /// Address as given.
        address: String,
        /// What was seen.
        seen: String,
    },
    /// It gave the trial up.
    #[error("the coordinator gave the trial up: {reason}")]
    Aborted {
        /// Its reason.
        reason: String,
    },
    /// This worker was told to end.
    #[error("ended by {signal}")]
    Signalled {
        /// Signal name.
        signal: &'static str,
    },
    /// Started by a launcher, and the others can not be found.
    #[error(transparent)]
    Launch(#[from] crate::launch::LaunchError),
    /// The runtime or TLS can not be set up.
    #[error("can not start")]
    Setup(#[source] io::Error),
}

/// Joins and serves until the trial is over. Blocking; owns its runtime.
pub fn join(address: &str, token: &Token, options: Options) -> Result<Ended, WorkerError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(WorkerError::Setup)?;
    let result = runtime.block_on(serve(address, token, options));
    // a look-up that hangs in the resolver must not keep the process
    runtime.shutdown_background();
    result
}

/// Joins and serves, as a task.
pub(crate) async fn serve(
    address: &str,
    token: &Token,
    options: Options,
) -> Result<Ended, WorkerError> {
    let mut stream = connect(address, token, options.patience).await?;
    let gone = |error: io::Error| WorkerError::Gone {
        address: address.to_owned(),
        seen: error.to_string(),
    };
    let exported = tls::exported(stream.get_ref().1)
        .map_err(|error| WorkerError::Setup(io::Error::other(error)))?;
    let join = Join { protocol: PROTOCOL, proof: tls::proof(token, &exported) };
    let name = options.name.clone();
    let described = tokio::task::spawn_blocking(host::describe)
        .await
        .map_err(|error| WorkerError::Setup(io::Error::other(error)))?;
    let hello = Hello {
        index: options.index,
        world: options.world,
        name: name.unwrap_or_else(|| described.name.clone()),
        ranks: options.ranks,
        host: described,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let first = frame::encode(&join).map_err(gone)?;
    frame::write(&mut stream, &first).await.map_err(gone)?;
    let second = frame::encode(&hello).map_err(gone)?;
    frame::write(&mut stream, &second).await.map_err(gone)?;
    let (reader, writer) = tokio::io::split(stream);
    Serving::new(address, options).run(reader, writer).await
}

type Stream = tokio_rustls::client::TlsStream<TcpStream>;

/// Tries until the coordinator answers or patience ends: it may start after its workers.
async fn connect(address: &str, token: &Token, patience: Duration) -> Result<Stream, WorkerError> {
    let config = tls::client(token).map_err(|e| WorkerError::Setup(io::Error::other(e)))?;
    let connector = tokio_rustls::TlsConnector::from(config);
    let started = Instant::now();
    let mut tries = 0;
    let mut pause = Duration::from_millis(50);
    loop {
        tries += 1;
        let left = patience.saturating_sub(started.elapsed());
        let once = tokio::time::timeout(left.min(Duration::from_secs(5)), async {
            let tcp = TcpStream::connect(address).await.map_err(|e| describe(address, &e))?;
            let _ = tcp.set_nodelay(true);
            let name = rustls::pki_types::ServerName::from(std::net::IpAddr::from([127, 0, 0, 1]));
            connector.connect(name, tcp).await.map_err(|error| {
                if is_other_key(&error) { "other token".to_owned() } else { error.to_string() }
            })
        })
        .await
        .unwrap_or_else(|_| Err("no answer".to_owned()));
        match once {
            Ok(stream) => return Ok(stream),
            Err(seen) if seen == "other token" => {
                return Err(WorkerError::OtherToken { address: address.to_owned() });
            }
            Err(seen) if started.elapsed() + pause >= patience => {
                return Err(WorkerError::Unreachable {
                    address: address.to_owned(),
                    seen,
                    tries,
                    waited: started.elapsed(),
                });
            }
            Err(_) => {}
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

fn is_other_key(error: &io::Error) -> bool {
    error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>())
        .is_some_and(|inner| matches!(inner, rustls::Error::InvalidCertificate(_)))
}

/// What a failed connection means, in words.
fn describe(address: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "connection refused (nothing listens there, or a firewall rejects it)".to_owned()
        }
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            format!("{error} (no route)")
        }
        io::ErrorKind::InvalidInput => format!("`{address}` is no HOST:PORT"),
        _ if error.raw_os_error().is_none() => format!("the name does not resolve ({error})"),
        _ => error.to_string(),
    }
}

/// One rank's process and the socket to it.
struct RankProcess {
    rank: usize,
    pid: Option<u32>,
    steps: mpsc::UnboundedSender<Arc<Vec<u8>>>,
    last_sign: Instant,
    reported: bool,
}

/// What happens to a rank.
enum RankEvent {
    Answer(usize, Answer),
    Ended(usize, io::Result<ExitStatus>),
}

struct Serving<'a> {
    address: &'a str,
    options: Options,
    ranks: BTreeMap<usize, RankProcess>,
    events: mpsc::UnboundedSender<RankEvent>,
    inbox: mpsc::UnboundedReceiver<RankEvent>,
    /// How often everyone says that it is alive; four missed in a row are a loss.
    beat: Duration,
}

/// Missed signs of life that make a loss.
pub(crate) const MISSED: u32 = 6;

impl<'a> Serving<'a> {
    fn new(address: &'a str, options: Options) -> Self {
        let (events, inbox) = mpsc::unbounded_channel();
        Self {
            address,
            options,
            ranks: BTreeMap::new(),
            events,
            inbox,
            beat: Duration::from_secs(1),
        }
    }

    async fn run(
        mut self,
        mut reader: impl AsyncRead + Unpin + Send + 'static,
        mut writer: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Ended, WorkerError> {
        let (orders, mut incoming) = mpsc::channel::<io::Result<Option<ToWorker>>>(64);
        tokio::spawn(async move {
            loop {
                let order = frame::read::<ToWorker>(&mut reader, frame::LARGEST).await;
                let last = !matches!(order, Ok(Some(_)));
                if orders.send(order).await.is_err() || last {
                    return;
                }
            }
        });
        let (out, mut outgoing) = mpsc::unbounded_channel::<Vec<u8>>();
        let writing = tokio::spawn(async move {
            while let Some(bytes) = outgoing.recv().await {
                frame::write(&mut writer, &bytes).await?;
            }
            tokio::io::AsyncWriteExt::shutdown(&mut writer).await
        });
        let result = self.serve(&mut incoming, &out).await;
        self.kill_all().await;
        drop(out);
        let _ = tokio::time::timeout(Duration::from_secs(1), writing).await;
        result
    }

    async fn serve(
        &mut self,
        incoming: &mut mpsc::Receiver<io::Result<Option<ToWorker>>>,
        out: &mpsc::UnboundedSender<Vec<u8>>,
    ) -> Result<Ended, WorkerError> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate()).map_err(WorkerError::Setup)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(WorkerError::Setup)?;
        let mut tick = tokio::time::interval(Duration::from_millis(500));
        let mut heard = Instant::now();
        let mut last_beat = Instant::now();
        let gone = |seen: String| WorkerError::Gone { address: self.address.to_owned(), seen };
        let send = |message: &FromWorker| {
            if let Ok(bytes) = frame::encode(message) {
                let _ = out.send(bytes);
            }
        };
        loop {
            tokio::select! {
                order = incoming.recv() => {
                    heard = Instant::now();
                    match order {
                        Some(Ok(Some(ToWorker::Leave))) => return Ok(Ended::Finished),
                        Some(Ok(Some(ToWorker::Abort { reason }))) => {
                            return Err(WorkerError::Aborted { reason });
                        }
                        Some(Ok(Some(order))) => self.obey(order, &send).await,
                        Some(Ok(None)) | None => {
                            return Err(gone("it closed the connection".to_owned()));
                        }
                        Some(Err(error)) => return Err(gone(error.to_string())),
                    }
                }
                Some(event) = self.inbox.recv() => self.note(event, &send),
                _ = tick.tick() => {
                    // a worker that was stopped itself finds all its clocks late: listen before judging
                    if heard.elapsed() > self.beat * (MISSED + 2) && incoming.is_empty() {
                        let silent = heard.elapsed().as_secs_f64();
                        return Err(gone(format!("no sign of life for {silent:.0} s")));
                    }
                    if last_beat.elapsed() >= self.beat {
                        last_beat = Instant::now();
                        send(&FromWorker::Beat);
                    }
                    self.look_for_silent(&send);
                }
                _ = terminate.recv() => {
                    send(&FromWorker::Leaving { reason: "SIGTERM".to_owned() });
                    return Err(WorkerError::Signalled { signal: "SIGTERM" });
                }
                _ = interrupt.recv() => {
                    send(&FromWorker::Leaving { reason: "SIGINT".to_owned() });
                    return Err(WorkerError::Signalled { signal: "SIGINT" });
                }
            }
        }
    }

    async fn obey(&mut self, order: ToWorker, send: &impl Fn(&FromWorker)) {
        match order {
            ToWorker::Start { engine, setups, beat } => {
                self.beat = beat;
                for setup in setups {
                    let rank = setup.rank;
                    if let Err(error) = self.start(&engine, setup) {
                        let seen = format!("could not be started: {error}");
                        send(&FromWorker::Lost { rank, seen });
                    }
                }
            }
            ToWorker::Rank { rank, step } => {
                if let (Some(process), Ok(bytes)) = (self.ranks.get(&rank), frame::encode(&step)) {
                    let _ = process.steps.send(Arc::new(bytes));
                }
            }
            ToWorker::Ranks { step } => {
                if let Ok(bytes) = frame::encode(&step) {
                    let bytes = Arc::new(bytes);
                    for process in self.ranks.values() {
                        let _ = process.steps.send(Arc::clone(&bytes));
                    }
                }
            }
            ToWorker::Count => {
                let pids: Vec<u32> = self.ranks.values().filter_map(|r| r.pid).collect();
                let counters = Box::new(host::count(&pids));
                send(&FromWorker::Counted { counters });
            }
            ToWorker::Stop => {
                self.kill_all().await;
                send(&FromWorker::Stopped);
            }
            ToWorker::Beat | ToWorker::Leave | ToWorker::Abort { .. } => {}
        }
    }

    fn note(&mut self, event: RankEvent, send: &impl Fn(&FromWorker)) {
        match event {
            RankEvent::Answer(rank, answer) => {
                if let Some(process) = self.ranks.get_mut(&rank) {
                    process.last_sign = Instant::now();
                    if !matches!(answer, Answer::Beat) {
                        send(&FromWorker::Rank { rank, answer });
                    }
                }
            }
            RankEvent::Ended(rank, status) => {
                // a rank that was told to end has been taken off the list before
                if self.ranks.remove(&rank).is_some_and(|process| !process.reported) {
                    send(&FromWorker::Lost { rank, seen: ended(&status) });
                }
            }
        }
    }

    fn look_for_silent(&mut self, send: &impl Fn(&FromWorker)) {
        let limit = self.beat * MISSED;
        for process in self.ranks.values_mut() {
            let silent = process.last_sign.elapsed();
            if silent > limit && !process.reported {
                process.reported = true;
                let state = process.pid.and_then(host::process_state);
                let seen = match state {
                    Some(state) => format!(
                        "no sign of life for {:.0} s, process is {state}",
                        silent.as_secs_f64()
                    ),
                    None => format!("no sign of life for {:.0} s", silent.as_secs_f64()),
                };
                send(&FromWorker::Lost { rank: process.rank, seen });
            }
        }
    }

    fn start(&mut self, engine: &str, setup: Setup) -> io::Result<()> {
        let rank = setup.rank;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let socket = UnixStream::from_std(ours)?;
        let (program, arguments) = &self.options.rank_program;
        let mut command = tokio::process::Command::new(program);
        command
            .args(arguments)
            .envs(&setup.settings)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            // a group of its own: Ctrl-C at a terminal reaches the worker, which then ends its ranks
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        drop(command);
        let pid = child.id();
        let (steps, mut queue) = mpsc::unbounded_channel::<Arc<Vec<u8>>>();
        let open =
            Step::Open { engine: engine.to_owned(), setup: Box::new(setup), beat: self.beat / 2 };
        let _ = steps.send(Arc::new(frame::encode(&open)?));
        let (mut reader, mut writer) = socket.into_split();
        let events = self.events.clone();
        tokio::spawn(async move {
            while let Some(bytes) = queue.recv().await {
                if frame::write(&mut writer, &bytes).await.is_err() {
                    return;
                }
            }
        });
        tokio::spawn(async move {
            while let Ok(Some(answer)) = frame::read(&mut reader, frame::LARGEST).await {
                let _ = events.send(RankEvent::Answer(rank, answer));
            }
            let status = child.wait().await;
            let _ = events.send(RankEvent::Ended(rank, status));
        });
        let process = RankProcess { rank, pid, steps, last_sign: Instant::now(), reported: false };
        self.ranks.insert(rank, process);
        Ok(())
    }

    /// Ends every rank and waits until the kernel has taken them.
    async fn kill_all(&mut self) {
        let mut waiting = 0;
        for process in std::mem::take(&mut self.ranks).into_values() {
            if let Some(pid) =
                process.pid.and_then(|pid| rustix::process::Pid::from_raw(pid as i32))
            {
                let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
                waiting += 1;
            }
        }
        while waiting > 0 {
            let event = tokio::time::timeout(Duration::from_secs(2), self.inbox.recv()).await;
            match event {
                Ok(Some(RankEvent::Ended(..))) => waiting -= 1,
                Ok(Some(RankEvent::Answer(..))) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }
}

/// How a process ended, in words.
fn ended(status: &io::Result<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("exited with code {code}"),
            (None, Some(9)) => {
                format!("exited with signal 9 (killed{})", host::oom_kill().unwrap_or_default())
            }
            (None, Some(signal)) => format!("exited with signal {signal}"),
            (None, None) => "ended".to_owned(),
        },
        Err(error) => format!("could not be waited for: {error}"),
    }
}
