//! Takes in connections, for as long as the rank lives.
//!
//! One thread accepts on every chosen interface and reads hellos, so that a stranger's connection
//! (scan, garbage, silence) costs a slot for a moment and never the trial. Connections of this trial
//! are laid into the [`Inbox`], where the rank takes them when it needs the edge.

use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, SocketAddrV6, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use super::hello::{HELLO_BYTES, Key, Refusal, WELCOME};

/// Strangers that may be undecided at once; the oldest goes first.
const MAX_PENDING: usize = 256;
/// How long a connection may keep silent before it is dropped.
const PATIENCE: Duration = Duration::from_secs(3);

/// Connections of this trial that nobody has asked for yet, and what was refused.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ready: HashMap<Key, TcpStream>,
    refused: Refused,
}

/// Connections that were turned away, by what they did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) garbage: u64,
    pub(super) wrong_nonce: u64,
    pub(super) misdirected: u64,
    pub(super) silent: u64,
}

/// The accepting thread; ends when dropped.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) inbox: Arc<Inbox>,
    /// Where each interface is listened on.
    pub(super) addresses: Vec<SocketAddr>,
    stop: Option<OwnedFd>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Pending {
    stream: TcpStream,
    since: Instant,
    bytes: [u8; HELLO_BYTES],
    read: usize,
}

struct Accepting {
    listeners: Vec<TcpListener>,
    pending: VecDeque<Pending>,
    inbox: Arc<Inbox>,
    nonce: [u8; 16],
    me: u32,
    stop: OwnedFd,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the connection is there; gives up after `deadline`.
    pub(super) fn take(&self, key: Key, deadline: Duration) -> Result<TcpStream, Refused> {
        let until = Instant::now() + deadline;
        let mut state = self.lock();
        loop {
            if let Some(stream) = state.ready.remove(&key) {
                return Ok(stream);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(state.refused);
            }
            state = self
                .changed
                .wait_timeout(state, left)
                .map_or_else(|e| e.into_inner().0, |(guard, _)| guard);
        }
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = [
            (self.wrong_nonce, "with another trial's nonce"),
            (self.garbage, "that spoke another protocol"),
            (self.misdirected, "meant for another rank"),
            (self.silent, "that said nothing"),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "; turned away {count} {what}")?;
        }
        Ok(())
    }
}

impl Listener {
    /// Listens on an ephemeral port (`ip_local_port_range`) of each address.
    pub(super) fn start(
        addresses: &[(IpAddr, u32)],
        nonce: [u8; 16],
        me: u32,
    ) -> std::io::Result<Self> {
        let listeners = addresses
            .iter()
            .map(|(ip, scope)| listen(*ip, *scope))
            .collect::<std::io::Result<Vec<_>>>()?;
        let addresses =
            listeners.iter().map(TcpListener::local_addr).collect::<std::io::Result<Vec<_>>>()?;
        let inbox = Arc::new(Inbox::default());
        let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let accepting = Accepting {
            listeners,
            pending: VecDeque::new(),
            inbox: Arc::clone(&inbox),
            nonce,
            me,
            stop: stopped,
        };
        let thread = std::thread::Builder::new()
            .name("accept".to_owned())
            .stack_size(256 * 1024)
            .spawn(move || accepting.run())?;
        Ok(Self { inbox, addresses, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen(ip: IpAddr, scope: u32) -> std::io::Result<TcpListener> {
    let (family, address) = match ip {
        IpAddr::V4(_) => (AddressFamily::INET, SocketAddr::new(ip, 0)),
        IpAddr::V6(six) => {
            (AddressFamily::INET6, SocketAddr::V6(SocketAddrV6::new(six, 0, 0, scope)))
        }
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    if family == AddressFamily::INET6 {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    rustix::net::bind(&socket, &address)?;
    // the kernel cuts this to net.core.somaxconn
    rustix::net::listen(&socket, 4096)?;
    Ok(TcpListener::from(socket))
}

impl Accepting {
    fn run(mut self) {
        loop {
            let ready = self.wait();
            let Some(ready) = ready else { return };
            let listeners = self.listeners.len();
            for (i, _) in ready.iter().enumerate().take(listeners).filter(|(_, r)| **r) {
                self.accept(i);
            }
            let now = Instant::now();
            let speaking: Vec<bool> = ready[listeners..].to_vec();
            let waiting = std::mem::take(&mut self.pending);
            for (i, pending) in waiting.into_iter().enumerate() {
                let spoke = speaking.get(i).copied().unwrap_or(true);
                let undecided = if spoke { self.hear(pending) } else { Some(pending) };
                match undecided {
                    Some(pending) if now.duration_since(pending.since) > PATIENCE => {
                        self.inbox.lock().refused.silent += 1;
                    }
                    Some(pending) => self.pending.push_back(pending),
                    None => {}
                }
            }
            while self.pending.len() > MAX_PENDING {
                self.pending.pop_front();
                self.inbox.lock().refused.silent += 1;
            }
        }
    }

    /// Waits for something to do; `None` to stop. Listeners come first, then the pending ones.
    fn wait(&self) -> Option<Vec<bool>> {
        let mut fds: Vec<PollFd<'_>> = self
            .listeners
            .iter()
            .map(|l| PollFd::from_borrowed_fd(l.as_fd(), PollFlags::IN))
            .chain(
                self.pending
                    .iter()
                    .map(|p| PollFd::from_borrowed_fd(p.stream.as_fd(), PollFlags::IN)),
            )
            .collect();
        fds.push(PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN));
        let timeout =
            (!self.pending.is_empty()).then_some(Timespec { tv_sec: 0, tv_nsec: 200_000_000 });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Some(vec![false; fds.len() - 1]),
            Err(_) => return None,
        }
        let mut ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready.pop() == Some(true) { None } else { Some(ready) }
    }

    fn accept(&mut self, index: usize) {
        // bounded, so that a flood of connections can not keep hellos from being read
        for _ in 0..MAX_PENDING {
            let Some(listener) = self.listeners.get(index) else { return };
            match listener.accept() {
                Ok((stream, _)) => {
                    if stream.set_nonblocking(true).is_err() {
                        continue;
                    }
                    let since = Instant::now();
                    let pending = Pending { stream, since, bytes: [0; HELLO_BYTES], read: 0 };
                    if let Some(undecided) = self.hear(pending) {
                        self.pending.push_back(undecided);
                    }
                }
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(e) => {
                    // out of descriptors: make room; else a connection that was gone again
                    if matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) {
                        if self.pending.pop_front().is_none() {
                            std::thread::sleep(Duration::from_millis(20));
                        }
                        return;
                    }
                }
            }
        }
    }

    /// Reads on and decides; gives the connection back while it is undecided.
    fn hear(&self, mut pending: Pending) -> Option<Pending> {
        while pending.read < HELLO_BYTES {
            match (&pending.stream).read(&mut pending.bytes[pending.read..]) {
                Ok(0) => {
                    self.inbox.lock().refused.silent += 1;
                    return None;
                }
                Ok(n) => pending.read += n,
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return Some(pending),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        let key = Key::decode(&pending.bytes, &self.nonce, self.me);
        let mut state = self.inbox.lock();
        match key {
            Ok(key) => {
                if (&pending.stream).write_all(&WELCOME).is_ok() {
                    state.ready.insert(key, pending.stream);
                    self.inbox.changed.notify_all();
                }
            }
            Err(Refusal::Garbage) => state.refused.garbage += 1,
            Err(Refusal::WrongNonce) => state.refused.wrong_nonce += 1,
            Err(Refusal::Misdirected) => state.refused.misdirected += 1,
        }
        None
    }
}
