//! Who the peers are, and connections to them, made when a step first needs them.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, SocketAddrV6, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use serde::{Deserialize, Serialize};

use super::error;
use super::hello::{Key, WELCOME};
use super::link::Link;
use super::listener::Listener;
use super::settings::Settings;
use super::wires::{Edges, Wires};
use crate::engine::{EngineError, ErrorKind};

/// Congestion control on a path that never leaves the machine: there is no network to be fair to,
/// and pacing (as BBR does it) only costs timers. Every Linux has and allows reno.
const LOCAL_CONGESTION: &str = "reno";

/// What peers are told of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Card {
    /// Boot id: equal for ranks on one machine.
    pub(super) machine: String,
    /// Where it listens, one entry an interface.
    pub(super) listens: Vec<Listens>,
    /// Sockets of an edge over one interface; both sides must agree.
    pub(super) threads: usize,
    pub(super) sockets: usize,
}

/// Where a rank listens on one interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Listens {
    pub(super) interface: String,
    pub(super) address: SocketAddr,
}

/// This rank's side of all connections.
#[derive(Debug)]
pub(super) struct Mesh {
    pub(super) rank: usize,
    pub(super) nonce: [u8; 16],
    pub(super) deadline: Duration,
    pub(super) settings: Settings,
    pub(super) listener: Listener,
    /// Index of each own chosen interface, in order: the scope of link-local peers.
    pub(super) scopes: Vec<u32>,
    /// Own addresses of any interface: traffic to them runs over the loopback.
    pub(super) own: Vec<IpAddr>,
    pub(super) cards: Vec<Card>,
}

impl Mesh {
    /// Sockets of one thread to one peer: the same number over each interface that both have.
    fn streams(&self, peer: usize) -> usize {
        let (me, it) = (&self.cards[self.rank], &self.cards[peer]);
        me.listens.len().max(it.listens.len()).max(1) * self.settings.sockets
    }

    /// Makes the links that are not there yet. Every rank of the step calls this with its own side.
    pub(super) fn ensure(&self, threads: &mut [Wires], edges: &Edges) -> Result<(), EngineError> {
        for (thread, wires) in threads.iter_mut().enumerate() {
            for &peer in &edges.out {
                if wires.out[peer].is_none() {
                    let sockets = (0..self.streams(peer))
                        .map(|socket| self.connect(peer, thread, socket))
                        .collect::<Result<Vec<_>, _>>()?;
                    wires.out[peer] = Some(Link::new(peer, sockets));
                }
            }
        }
        for (thread, wires) in threads.iter_mut().enumerate() {
            for &peer in &edges.input {
                if wires.input[peer].is_none() {
                    let sockets = (0..self.streams(peer))
                        .map(|socket| self.accept(peer, thread, socket))
                        .collect::<Result<Vec<_>, _>>()?;
                    wires.input[peer] = Some(Link::new(peer, sockets));
                }
            }
        }
        Ok(())
    }

    fn accept(&self, peer: usize, thread: usize, socket: usize) -> Result<TcpStream, EngineError> {
        let key = Key { from: peer as u32, thread: thread as u16, socket: socket as u16 };
        let stream = self.listener.inbox.take(key, self.deadline).map_err(|refused| {
            error::unreachable(
                peer,
                format_args!(
                    "no connection from it within {:.0} s{refused}",
                    self.deadline.as_secs_f64()
                ),
            )
        })?;
        let failed = |e| error::own(ErrorKind::Resource, format!("can not set up a socket: {e}"));
        self.shape(&stream).map_err(|e| failed(e.into()))?;
        stream.set_nodelay(true).map_err(failed)?;
        Ok(stream)
    }

    fn connect(&self, peer: usize, thread: usize, socket: usize) -> Result<TcpStream, EngineError> {
        let listens = &self.cards[peer].listens;
        let index = socket % listens.len().max(1);
        let target =
            listens.get(index).ok_or_else(|| error::unreachable(peer, "it listens nowhere"))?;
        let address = match target.address {
            SocketAddr::V6(a) if a.ip().is_unicast_link_local() => {
                let scope = self.scopes.get(index % self.scopes.len().max(1)).copied();
                SocketAddr::V6(SocketAddrV6::new(*a.ip(), a.port(), 0, scope.unwrap_or(0)))
            }
            other => other,
        };
        let key = Key { from: self.rank as u32, thread: thread as u16, socket: socket as u16 };
        let hello = key.encode(&self.nonce, peer as u32);
        let until = Instant::now() + self.deadline;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let left = until.saturating_duration_since(Instant::now());
            let seen = match self.dial(address, left).and_then(|s| introduce(s, &hello, until)) {
                Ok(stream) => return Ok(stream),
                Err(seen) => seen,
            };
            let pause = Duration::from_millis(u64::from(self.settings.retry_ms) * attempt);
            let retry = attempt <= u64::from(self.settings.retries)
                && retried(&seen)
                && Instant::now() + pause < until;
            if !retry {
                let plural = if attempt == 1 { "" } else { "s" };
                return Err(error::unreachable(
                    peer,
                    format_args!(
                        "{address} ({}): {}, {attempt} attempt{plural}",
                        target.interface,
                        error::seen(&seen)
                    ),
                ));
            }
            std::thread::sleep(pause);
        }
    }

    /// Sizes of the socket's buffers, where they were asked for.
    fn shape(&self, socket: &impl AsFd) -> rustix::io::Result<()> {
        if let Some(bytes) = self.settings.send_buffer {
            sockopt::set_socket_send_buffer_size(socket, bytes)?;
        }
        if let Some(bytes) = self.settings.receive_buffer {
            sockopt::set_socket_recv_buffer_size(socket, bytes)?;
        }
        Ok(())
    }

    fn dial(&self, address: SocketAddr, timeout: Duration) -> std::io::Result<TcpStream> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        self.shape(&socket)?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        if self.own.contains(&address.ip()) {
            // refused in odd sandboxes: then the system's own choice stays
            let _ = sockopt::set_tcp_congestion(&socket, LOCAL_CONGESTION);
        }
        match rustix::net::connect(&socket, &address) {
            Ok(()) => {}
            Err(rustix::io::Errno::INPROGRESS) => {
                if !ready(&socket, PollFlags::OUT, timeout)? {
                    return Err(std::io::Error::from_raw_os_error(libc::ETIMEDOUT));
                }
                sockopt::socket_error(&socket)??;
            }
            Err(e) => return Err(e.into()),
        }
        Ok(TcpStream::from(socket))
    }
}

/// Whether NCCL tries again after such an error.
fn retried(error: &std::io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ECONNREFUSED | libc::ETIMEDOUT | libc::EHOSTUNREACH | libc::ENETUNREACH)
    )
}

fn ready(socket: &impl AsFd, events: PollFlags, timeout: Duration) -> std::io::Result<bool> {
    let timeout = Timespec { tv_sec: timeout.as_secs() as _, tv_nsec: timeout.subsec_nanos() as _ };
    let mut fds = [PollFd::from_borrowed_fd(socket.as_fd(), events)];
    Ok(poll(&mut fds, Some(&timeout))? > 0)
}

/// Says who this is and waits to be let in.
fn introduce(stream: TcpStream, hello: &[u8], until: Instant) -> std::io::Result<TcpStream> {
    (&stream).write_all(hello)?;
    let mut welcome = [0; WELCOME.len()];
    let mut read = 0;
    while read < welcome.len() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || !ready(&stream, PollFlags::IN, left)? {
            return Err(std::io::Error::other("connected, but no answer to the handshake"));
        }
        match (&stream).read(&mut welcome[read..]) {
            Ok(0) => {
                return Err(std::io::Error::other(
                    "connected, but turned away (another trial or another program has the port)",
                ));
            }
            Ok(n) => read += n,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
    }
    if welcome == WELCOME {
        Ok(stream)
    } else {
        Err(std::io::Error::other("another program answers there"))
    }
}
