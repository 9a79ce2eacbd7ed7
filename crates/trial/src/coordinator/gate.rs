//! The gate: strangers are kept waiting cheaply, workers that prove the token come through.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::frame;
use crate::message::{Hello, Join, PROTOCOL, ToWorker};
use crate::tls;
use crate::token::Token;

/// Connections that may be unproved at the same time; one more pushes out the oldest. A worker needs
/// milliseconds, and tries again, so a flood of idle connections can not keep it out.
const UNPROVED: usize = 1024;

/// Connections that the kernel may keep until they are accepted (at most `net.core.somaxconn`, 4096).
const QUEUE: i32 = 4096;

/// How long a connection may take to prove itself.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes that a TLS session keeps of what it has to send.
const SESSION_BUFFER: usize = 16 << 10;

/// A worker that has proved the token.
pub(super) struct Joined {
    pub(super) hello: Hello,
    pub(super) stream: TlsStream<TcpStream>,
}

/// Who was turned away, for the message that nobody came.
#[derive(Default)]
pub(super) struct Refusals {
    count: AtomicUsize,
    last: Mutex<Option<String>>,
}

pub(super) struct Gate {
    pub(super) joined: mpsc::Receiver<Joined>,
    pub(super) refusals: Arc<Refusals>,
    full: Arc<AtomicBool>,
    accepting: JoinHandle<()>,
}

impl Refusals {
    fn add(&self, peer: SocketAddr, why: &str) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *last = Some(format!("{} ({why})", peer.ip()));
    }

    /// In words, where there were any.
    pub(super) fn describe(&self) -> Option<String> {
        let count = self.count.load(Ordering::Relaxed);
        let last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let last = last.as_ref()?;
        Some(format!(
            "{count} connection{} refused, the last from {last}",
            if count == 1 { "" } else { "s" }
        ))
    }
}

impl Gate {
    /// Opens the gate on a listener.
    pub(super) fn open(listener: TcpListener, token: &Token) -> Result<Self, rustls::Error> {
        // the library's queue holds 128; a worker that does not fit tries again after a whole second
        let _ = rustix::net::listen(&listener, QUEUE);
        let acceptor = TlsAcceptor::from(tls::server(token)?);
        let token = Arc::new(token.clone());
        let (sender, joined) = mpsc::channel(64);
        let refusals = Arc::new(Refusals::default());
        let noted = Arc::clone(&refusals);
        let full = Arc::new(AtomicBool::new(false));
        let is_full = Arc::clone(&full);
        let most = most_unproved();
        let accepting = tokio::spawn(async move {
            let mut unproved: VecDeque<AbortHandle> = VecDeque::new();
            loop {
                let (tcp, peer) = match listener.accept().await {
                    Ok(accepted) => accepted,
                    Err(_) => {
                        // out of descriptors: make room and go on
                        if let Some(oldest) = unproved.pop_front() {
                            oldest.abort();
                        }
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        continue;
                    }
                };
                if unproved.len() >= most {
                    unproved.retain(|task| !task.is_finished());
                }
                if unproved.len() >= most
                    && let Some(oldest) = unproved.pop_front()
                {
                    oldest.abort();
                    noted.add(peer, "too many that say nothing");
                }
                let (acceptor, token) = (acceptor.clone(), Arc::clone(&token));
                let (sender, noted) = (sender.clone(), Arc::clone(&noted));
                let is_full = Arc::clone(&is_full);
                let task = tokio::spawn(async move {
                    match tokio::time::timeout(PATIENCE, admit(tcp, &acceptor, &token)).await {
                        Ok(Ok(mut joined)) => {
                            if is_full.load(Ordering::Relaxed) {
                                let why = "the trial has all its workers already";
                                let _ = refuse(&mut joined.stream, why).await;
                            } else {
                                let _ = sender.send(joined).await;
                            }
                        }
                        Ok(Err(error)) => noted.add(peer, &refusal(&error)),
                        Err(_) => noted.add(peer, "said nothing in time"),
                    }
                });
                unproved.push_back(task.abort_handle());
            }
        });
        Ok(Self { joined, refusals, full, accepting })
    }

    /// From now on workers are told that nobody else is wanted.
    pub(super) fn fill(&self) {
        self.full.store(true, Ordering::Relaxed);
    }
}

/// A quarter of the descriptors at most: joined workers and ranks need them too.
fn most_unproved() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(UNPROVED, |limit| UNPROVED.min(limit as usize / 4)).max(16)
}

/// Tells a worker that has proved the token why it can not take part.
pub(super) async fn refuse(stream: &mut TlsStream<TcpStream>, why: &str) -> io::Result<()> {
    let bytes = frame::encode(&ToWorker::Refused { reason: why.to_owned() })?;
    frame::write(stream, &bytes).await?;
    tokio::io::AsyncWriteExt::shutdown(stream).await
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn refusal(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "closed before it proved the token".to_owned(),
        _ => error.to_string(),
    }
}

async fn admit(tcp: TcpStream, acceptor: &TlsAcceptor, token: &Token) -> io::Result<Joined> {
    let _ = tcp.set_nodelay(true);
    // what never speaks costs a socket and a timer, no TLS session
    tcp.readable().await?;
    let mut stream = acceptor.accept(tcp).await?;
    // what is sent waits in the kernel or not at all: a thousand sessions would keep 64 KiB each
    stream.get_mut().1.set_buffer_limit(Some(SESSION_BUFFER));
    let exported = tls::exported(stream.get_ref().1).map_err(io::Error::other)?;
    let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let join: Join = frame::read(&mut stream, frame::LARGEST_UNPROVED).await?.ok_or_else(ended)?;
    if !tls::proves(token, &exported, &join.proof) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "wrong token"));
    }
    if join.protocol != PROTOCOL {
        let text = format!(
            "it speaks protocol {}, the coordinator {PROTOCOL}: use the same ncclctl on both",
            join.protocol
        );
        let _ = refuse(&mut stream, &text).await;
        return Err(io::Error::new(io::ErrorKind::Unsupported, text));
    }
    let hello = frame::read(&mut stream, frame::LARGEST).await?.ok_or_else(ended)?;
    Ok(Joined { hello, stream })
}
