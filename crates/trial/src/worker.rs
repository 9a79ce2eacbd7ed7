//! A worker: one per machine, container or pod. Joins the coordinator, starts ranks, passes messages
//! on, reads counters. It keeps nothing: whatever ends it ends its ranks.

mod ranks;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use self::ranks::Ranks;
pub(crate) use self::ranks::Source;
use crate::frame;
use crate::host;
use crate::message::{FromWorker, Hello, Join, PROTOCOL, ToWorker};
use crate::tls;
use crate::token::Token;

/// How a worker takes part.
#[derive(Clone, Debug)]
pub struct Options {
    /// Place among the workers, where a launcher gave one.
    pub index: Option<usize>,
    /// How many workers the launcher started, where all of them and nobody else take part.
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
    /// It does not take this worker.
    #[error("coordinator {address} does not take this worker: {reason}")]
    Refused {
        /// Address as given.
        address: String,
        /// Its reason.
        reason: String,
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
    let source = Source::Process(options.rank_program.clone());
    serve_from(address, token, options, source).await
}

/// As [`serve`], with ranks from any source.
pub(crate) async fn serve_from(
    address: &str,
    token: &Token,
    options: Options,
    source: Source,
) -> Result<Ended, WorkerError> {
    let described = tokio::task::spawn_blocking(host::describe)
        .await
        .map_err(|error| WorkerError::Setup(io::Error::other(error)))?;
    let hello = Hello {
        index: options.index,
        world: options.world,
        name: options.name.clone().unwrap_or_else(|| described.name.clone()),
        ranks: options.ranks,
        host: described,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let (stream, beat) = connect(address, token, &hello, options.patience).await?;
    let _ = rustix::net::sockopt::set_tcp_user_timeout(
        stream.get_ref().0,
        u32::try_from((beat * (MISSED + 2)).as_millis()).unwrap_or(u32::MAX),
    );
    let (reader, writer) = tokio::io::split(stream);
    Serving::new(address, source, beat).run(reader, writer).await
}

type Stream = tokio_rustls::client::TlsStream<TcpStream>;

/// Why one try failed: worth another, or not.
enum Failed {
    ForNow(String),
    ForGood(WorkerError),
}

/// Tries until the coordinator takes this worker or patience ends: it may start after its workers, and
/// it may be busy with others.
async fn connect(
    address: &str,
    token: &Token,
    hello: &Hello,
    patience: Duration,
) -> Result<(Stream, Duration), WorkerError> {
    let config = tls::client(token).map_err(|e| WorkerError::Setup(io::Error::other(e)))?;
    let connector = tokio_rustls::TlsConnector::from(config);
    let started = Instant::now();
    let mut tries = 0;
    let mut pause = Duration::from_millis(50);
    loop {
        tries += 1;
        let left = patience.saturating_sub(started.elapsed());
        let once = once(address, token, hello, &connector);
        let seen = match tokio::time::timeout(left.min(TRY), once).await {
            Ok(Ok(joined)) => return Ok(joined),
            Ok(Err(Failed::ForGood(error))) => return Err(error),
            Ok(Err(Failed::ForNow(seen))) => seen,
            Err(_) => "no answer (dropped by a firewall, or no such host)".to_owned(),
        };
        if started.elapsed() + pause >= patience {
            return Err(WorkerError::Unreachable {
                address: address.to_owned(),
                seen,
                tries,
                waited: started.elapsed(),
            });
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

/// One try: TLS, proof, who this is, and the coordinator's word.
async fn once(
    address: &str,
    token: &Token,
    hello: &Hello,
    connector: &tokio_rustls::TlsConnector,
) -> Result<(Stream, Duration), Failed> {
    let broken = |error: io::Error| Failed::ForNow(error.to_string());
    let tcp = TcpStream::connect(address)
        .await
        .map_err(|error| Failed::ForNow(describe(address, &error)))?;
    let _ = tcp.set_nodelay(true);
    // never looked at: the key is pinned, not a name
    let name = rustls::pki_types::ServerName::from(std::net::IpAddr::from([127, 0, 0, 1]));
    let mut stream = connector.connect(name, tcp).await.map_err(|error| {
        if is_other_key(&error) {
            Failed::ForGood(WorkerError::OtherToken { address: address.to_owned() })
        } else {
            Failed::ForNow(format!("TLS: {error}"))
        }
    })?;
    let exported = tls::exported(stream.get_ref().1)
        .map_err(|error| Failed::ForGood(WorkerError::Setup(io::Error::other(error))))?;
    let join = Join { protocol: PROTOCOL, proof: tls::proof(token, &exported) };
    let mut bytes = frame::encode(&join).map_err(broken)?;
    bytes.extend(frame::encode(hello).map_err(broken)?);
    frame::write(&mut stream, &bytes).await.map_err(broken)?;
    match frame::read(&mut stream, frame::LARGEST).await {
        Ok(Some(ToWorker::Welcome { beat })) => Ok((stream, beat)),
        Ok(Some(ToWorker::Refused { reason })) => {
            Err(Failed::ForGood(WorkerError::Refused { address: address.to_owned(), reason }))
        }
        Ok(Some(_)) => Err(Failed::ForNow("it spoke out of turn".to_owned())),
        Ok(None) => Err(Failed::ForNow("it closed the connection".to_owned())),
        Err(error) => Err(broken(error)),
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

struct Serving<'a> {
    address: &'a str,
    ranks: Ranks,
    /// How often everyone says that it is alive.
    beat: Duration,
}

/// How often everyone says that it is alive until it is told otherwise; and missed signs of life that
/// make a loss.
pub(crate) const MISSED: u32 = 6;

/// How long one try to join may take.
const TRY: Duration = Duration::from_secs(5);

impl<'a> Serving<'a> {
    fn new(address: &'a str, source: Source, beat: Duration) -> Self {
        Self { address, ranks: Ranks::new(source, beat), beat }
    }

    async fn run(
        mut self,
        mut reader: impl AsyncRead + Unpin + Send + 'static,
        mut writer: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Ended, WorkerError> {
        let (orders, mut incoming) = mpsc::channel::<io::Result<Option<ToWorker>>>(64);
        let reading = tokio::spawn(async move {
            loop {
                let order = frame::read::<ToWorker>(&mut reader, frame::LARGEST).await;
                let last = !matches!(order, Ok(Some(_)));
                if orders.send(order).await.is_err() || last {
                    return;
                }
            }
        });
        let (out, mut outgoing) = mpsc::unbounded_channel::<Vec<u8>>();
        let mut writing = tokio::spawn(async move {
            while let Some(bytes) = outgoing.recv().await {
                frame::write(&mut writer, &bytes).await?;
            }
            tokio::io::AsyncWriteExt::shutdown(&mut writer).await
        });
        let result = self.serve(&mut incoming, &out).await;
        self.ranks.end_all().await;
        drop(out);
        if tokio::time::timeout(Duration::from_secs(1), &mut writing).await.is_err() {
            writing.abort();
        }
        reading.abort();
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
        let mut tick = tokio::time::interval(self.beat / 2);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        let mut last_tick = Instant::now();
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
                event = self.ranks.next() => {
                    if let Some(message) = self.ranks.note(event) {
                        send(&message);
                    }
                }
                _ = tick.tick() => {
                    // a worker that was stopped itself finds all its clocks late: listen before judging
                    let late = last_tick.elapsed() > self.beat * 2;
                    last_tick = Instant::now();
                    let silent = heard.elapsed();
                    if silent > self.beat * (MISSED + 2) && !late && incoming.is_empty() {
                        return Err(gone(format!("no sign of life for {:.0} s", silent.as_secs_f64())));
                    }
                    if last_beat.elapsed() >= self.beat {
                        last_beat = Instant::now();
                        send(&FromWorker::Beat);
                        self.ranks.beat();
                    }
                    if !late {
                        self.ranks.silent().iter().for_each(&send);
                    }
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
            ToWorker::Start { engine, setups } => {
                for setup in setups {
                    let rank = setup.rank;
                    if let Err(error) = self.ranks.start(&engine, setup) {
                        let seen = format!("could not be started: {error}");
                        send(&FromWorker::Lost { rank, seen });
                    }
                }
            }
            ToWorker::Ranks { step } => self.ranks.tell(step.get()),
            ToWorker::Count => {
                let counters = Box::new(host::count(&self.ranks.pids()));
                send(&FromWorker::Counted { counters });
            }
            ToWorker::Stop => {
                self.ranks.end_all().await;
                send(&FromWorker::Stopped);
            }
            ToWorker::Beat
            | ToWorker::Leave
            | ToWorker::Abort { .. }
            | ToWorker::Welcome { .. }
            | ToWorker::Refused { .. } => {}
        }
    }
}
