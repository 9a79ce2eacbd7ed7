//! The memory of one operation on one thread.

use std::ops::Range;

use super::kernel::{Left, Reduction};

/// Which buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The caller's input.
    Send,
    /// The caller's output.
    Recv,
    /// Partial results on their way.
    Temp,
}

/// The buffers of one operation. In place there is one buffer, and `Send` and `Recv` are views of it.
pub(super) struct Buffers<'a> {
    /// Input; `None` in place.
    pub(super) send: Option<&'a [u8]>,
    /// Output; in place the only buffer.
    pub(super) recv: &'a mut [u8],
    /// In place: where the input starts in `recv`.
    pub(super) send_base: usize,
    /// In place: where the output starts in `recv`.
    pub(super) recv_base: usize,
    /// Partial results on their way.
    pub(super) temp: &'a mut [u8],
    /// What was just read, before it is combined.
    pub(super) scratch: &'a mut [u8],
}

impl Buffers<'_> {
    /// Bytes to send.
    #[inline]
    pub(super) fn read(&self, place: Place, range: Range<usize>) -> &[u8] {
        match (place, self.send) {
            (Place::Send, Some(send)) => &send[range],
            (Place::Send, None) => {
                &self.recv[self.send_base + range.start..self.send_base + range.end]
            }
            (Place::Recv, _) => {
                &self.recv[self.recv_base + range.start..self.recv_base + range.end]
            }
            (Place::Temp, _) => &self.temp[range],
        }
    }

    /// Bytes to receive into.
    #[inline]
    pub(super) fn write(&mut self, place: Place, range: Range<usize>) -> &mut [u8] {
        match place {
            Place::Temp => &mut self.temp[range],
            Place::Send | Place::Recv => {
                &mut self.recv[self.recv_base + range.start..self.recv_base + range.end]
            }
        }
    }

    /// Combines the own input at `own` with the first `bytes` of the scratch into `place` at `at`.
    #[inline]
    pub(super) fn reduce(
        &mut self,
        reduction: Reduction,
        place: Place,
        at: usize,
        own: usize,
        bytes: usize,
        last: bool,
    ) {
        let right = &self.scratch[..bytes];
        match (place, self.send) {
            (Place::Temp, Some(send)) => {
                let left = Left::Buffer(&send[own..own + bytes]);
                reduction.apply(&mut self.temp[at..at + bytes], &left, right, last);
            }
            (Place::Temp, None) => {
                let own = self.send_base + own;
                let left = Left::Buffer(&self.recv[own..own + bytes]);
                reduction.apply(&mut self.temp[at..at + bytes], &left, right, last);
            }
            (_, Some(send)) => {
                let at = self.recv_base + at;
                let left = Left::Buffer(&send[own..own + bytes]);
                reduction.apply(&mut self.recv[at..at + bytes], &left, right, last);
            }
            // in place, an output is always combined where its own operand stands
            (_, None) => {
                let at = self.recv_base + at;
                reduction.apply(&mut self.recv[at..at + bytes], &Left::Destination, right, last);
            }
        }
    }

    /// Combines what stands in `place` with the first `bytes` of the scratch.
    pub(super) fn accumulate(
        &mut self,
        reduction: Reduction,
        place: Place,
        at: usize,
        bytes: usize,
        last: bool,
    ) {
        let right = &self.scratch[..bytes];
        let dst = match place {
            Place::Temp => &mut self.temp[at..at + bytes],
            Place::Send | Place::Recv => {
                &mut self.recv[self.recv_base + at..self.recv_base + at + bytes]
            }
        };
        reduction.apply(dst, &Left::Destination, right, last);
    }

    /// Copies own input into temporary memory.
    pub(super) fn load_temp(&mut self, from: usize, to: usize, bytes: usize) {
        let own = match self.send {
            Some(send) => &send[from..from + bytes],
            None => &self.recv[self.send_base + from..self.send_base + from + bytes],
        };
        self.temp[to..to + bytes].copy_from_slice(own);
    }

    /// Copies temporary memory to the output.
    pub(super) fn store_temp(&mut self, from: usize, to: usize, bytes: usize) {
        let to = self.recv_base + to;
        self.recv[to..to + bytes].copy_from_slice(&self.temp[from..from + bytes]);
    }

    /// Copies own input to the output where they are not the same memory.
    pub(super) fn copy_own(&mut self, from: usize, to: usize, bytes: usize) {
        if let Some(send) = self.send {
            let to = self.recv_base + to;
            self.recv[to..to + bytes].copy_from_slice(&send[from..from + bytes]);
        } else {
            let (from, to) = (self.send_base + from, self.recv_base + to);
            if from != to {
                self.recv.copy_within(from..from + bytes, to);
            }
        }
    }
}
