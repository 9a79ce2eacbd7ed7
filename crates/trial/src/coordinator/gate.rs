//! The gate: strangers are kept waiting cheaply, workers that prove the token come through.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::frame;
use crate::message::{Hello, Join, PROTOCOL};
use crate::tls;
use crate::token::Token;

/// Connections that may be unproved at the same time; one more pushes out the oldest. A worker needs
/// milliseconds, so a flood of idle connections can not keep it out.
const UNPROVED: usize = 512;

/// How long a connection may take to prove itself.
const PATIENCE: Duration = Duration::from_secs(5);

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
        let acceptor = TlsAcceptor::from(tls::server(token)?);
        let token = Arc::new(token.clone());
        let (sender, joined) = mpsc::channel(64);
        let refusals = Arc::new(Refusals::default());
        let noted = Arc::clone(&refusals);
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
                if unproved.len() >= UNPROVED {
                    unproved.retain(|task| !task.is_finished());
                }
                if unproved.len() >= UNPROVED
                    && let Some(oldest) = unproved.pop_front()
                {
                    oldest.abort();
                    noted.add(peer, "too many that say nothing");
                }
                let (acceptor, token) = (acceptor.clone(), Arc::clone(&token));
                let (sender, noted) = (sender.clone(), Arc::clone(&noted));
                let task = tokio::spawn(async move {
                    match tokio::time::timeout(PATIENCE, admit(tcp, &acceptor, &token)).await {
                        Ok(Ok(joined)) => {
                            let _ = sender.send(joined).await;
                        }
                        Ok(Err(error)) => noted.add(peer, &refusal(&error)),
                        Err(_) => noted.add(peer, "said nothing in time"),
                    }
                });
                unproved.push_back(task.abort_handle());
            }
        });
        Ok(Self { joined, refusals, accepting })
    }
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
    let mut stream = acceptor.accept(tcp).await?;
    let exported = tls::exported(stream.get_ref().1).map_err(io::Error::other)?;
    let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let join: Join = frame::read(&mut stream, frame::LARGEST_UNPROVED).await?.ok_or_else(ended)?;
    if !tls::proves(token, &exported, &join.proof) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "wrong token"));
    }
    if join.protocol != PROTOCOL {
        let text = format!(
            "speaks protocol {}, this coordinator {PROTOCOL}: use the same ncclctl on both",
            join.protocol
        );
        return Err(io::Error::new(io::ErrorKind::Unsupported, text));
    }
    let hello = frame::read(&mut stream, frame::LARGEST).await?.ok_or_else(ended)?;
    Ok(Joined { hello, stream })
}
