//! One directed edge of one thread: one or more sockets that act as a single stream of bytes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes that go to one socket before the next one's turn, where an edge has several. Equal to the
/// least piece that NCCL gives to a socket (`NCCL_SOCKET_MIN_TASKSIZE`).
const STRIPE: usize = 64 * 1024;

/// A stream of bytes to or from one peer.
#[derive(Debug)]
pub(super) struct Link {
    /// The other rank.
    pub(super) peer: usize,
    sockets: Vec<TcpStream>,
    /// Socket whose turn it is.
    turn: usize,
    /// Bytes left until the next one's turn.
    left: usize,
}

impl Link {
    pub(super) fn new(peer: usize, sockets: Vec<TcpStream>) -> Self {
        let left = if sockets.len() > 1 { STRIPE } else { usize::MAX };
        Self { peer, sockets, turn: 0, left }
    }

    /// Sends what the kernel takes now; `None` when it takes nothing.
    #[inline]
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        let take = bytes.len().min(self.left);
        self.step(|mut socket| socket.write(&bytes[..take]))
    }

    /// Receives what is there; `None` when nothing is. An end of the stream is an error.
    #[inline]
    pub(super) fn receive(&mut self, bytes: &mut [u8]) -> io::Result<Option<usize>> {
        let take = bytes.len().min(self.left);
        self.step(|mut socket| socket.read(&mut bytes[..take]))
    }

    #[inline]
    fn step(
        &mut self,
        act: impl FnOnce(&TcpStream) -> io::Result<usize>,
    ) -> io::Result<Option<usize>> {
        match act(&self.sockets[self.turn]) {
            Ok(0) => Err(io::Error::new(ErrorKind::UnexpectedEof, "it closed the connection")),
            Ok(n) => {
                if self.sockets.len() > 1 {
                    self.left -= n;
                    if self.left == 0 {
                        self.left = STRIPE;
                        self.turn = (self.turn + 1) % self.sockets.len();
                    }
                }
                Ok(Some(n))
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// The socket whose turn it is, to wait on.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.sockets[self.turn].as_fd()
    }

    /// Number of sockets.
    pub(super) fn width(&self) -> usize {
        self.sockets.len()
    }

    /// Sockets, for what concerns them all.
    pub(super) fn sockets(&self) -> &[TcpStream] {
        &self.sockets
    }
}
