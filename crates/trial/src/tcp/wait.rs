//! How a thread waits for its sockets: look again for a while, then sleep in the kernel.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error;
use super::link::Link;
use crate::engine::{EngineError, ErrorKind};

/// How to wait, for all waits of one rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Looks before sleeping. Each gives the processor away if another thread wants it.
    pub(super) looks: u32,
    /// The same in the middle of a long stream, where the kernel's buffers bridge the wake-up.
    pub(super) looks_streaming: u32,
    /// How long a peer may do nothing.
    pub(super) deadline: Duration,
}

/// One wait: from the first look until something moved.
#[derive(Debug)]
pub(super) struct Waiting {
    patience: Patience,
    looked: u32,
    since: Option<Instant>,
}

impl Waiting {
    pub(super) fn new(patience: Patience) -> Self {
        Self { patience, looked: 0, since: None }
    }

    /// A wait inside a long stream.
    pub(super) fn streaming(patience: Patience) -> Self {
        Self::new(Patience { looks: patience.looks_streaming, ..patience })
    }

    /// Something moved: the next wait starts anew.
    #[inline]
    pub(super) fn moved(&mut self) {
        self.looked = 0;
        self.since = None;
    }

    /// Nothing moved: returns when it is time to look again. `outs` and `inputs` are the links
    /// that could move.
    pub(super) fn pause<'a>(
        &mut self,
        outs: impl IntoIterator<Item = &'a Link>,
        inputs: impl IntoIterator<Item = &'a Link>,
    ) -> Result<(), EngineError> {
        if self.looked < self.patience.looks {
            self.looked += 1;
            std::thread::yield_now();
            return Ok(());
        }
        let (mut sends_to, mut hears_from) = (None, None);
        let mut fds = Vec::with_capacity(2);
        for link in outs {
            sends_to.get_or_insert(link.peer);
            fds.push(PollFd::from_borrowed_fd(link.fd(), PollFlags::OUT));
        }
        for link in inputs {
            hears_from.get_or_insert(link.peer);
            fds.push(PollFd::from_borrowed_fd(link.fd(), PollFlags::IN));
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        let left = self.patience.deadline.saturating_sub(since.elapsed());
        if left.is_zero() {
            let waited = self.patience.deadline;
            return Err(match (hears_from, sends_to) {
                (Some(peer), _) => error::silent(peer, "nothing came from it", waited),
                (None, Some(peer)) => error::silent(peer, "it took no data", waited),
                (None, None) => error::own(ErrorKind::Other, "waiting for nothing"),
            });
        }
        let timeout = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ };
        // an interrupted wait looks again, like one that found something
        let _ = poll(&mut fds, Some(&timeout));
        Ok(())
    }
}
