//! The machine under every large collective: one stream out, one stream in, and what ties them.
//!
//! A [`Plan`] lists what leaves and what arrives as items in order. Bytes leave as soon as the item
//! they depend on has got that far, and arriving bytes are reduced while they are in the cache, so
//! that both directions and the reduction overlap without threads.

use super::buffers::{Buffers, Place};
use super::error;
use super::kernel::Reduction;
use super::link::Link;
use super::wait::{Patience, Waiting};
use crate::engine::EngineError;

/// Most bytes that one read takes: small enough that what was read is still in the L2 cache when
/// it is reduced and sent on.
pub(super) const READ: usize = 128 * 1024;
/// Bytes worth a system call of their own while more are to come.
const WORTH: usize = 32 * 1024;

/// Something that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Out {
    pub(super) place: Place,
    pub(super) at: usize,
    pub(super) bytes: usize,
    /// Item of the incoming stream that must have got as far, byte for byte.
    pub(super) after: Option<usize>,
}

/// Something that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct In {
    /// Where it ends up.
    pub(super) place: Place,
    pub(super) at: usize,
    pub(super) bytes: usize,
    /// Combine with the own input at this offset; `None` stores it as it is.
    pub(super) reduce: Option<Reduce>,
    /// Items that must have left before this one may overwrite its place.
    pub(super) after_sent: usize,
}

/// How an arriving item is combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reduce {
    /// Offset of the own operand in the send buffer.
    pub(super) own_at: usize,
    /// It is the last operand.
    pub(super) last: bool,
}

/// What leaves and what arrives, in order. `None` ends a stream.
pub(super) trait Plan {
    fn out(&self, item: usize) -> Option<Out>;
    fn input(&self, item: usize) -> Option<In>;
}

/// How far a stream is.
struct Cursor<T> {
    index: usize,
    item: Option<T>,
    done: usize,
}

impl<T> Cursor<T> {
    fn new(first: Option<T>) -> Self {
        Self { index: 0, item: first, done: 0 }
    }

    fn next(&mut self, item: impl FnOnce(usize) -> Option<T>) {
        self.index += 1;
        self.item = item(self.index);
        self.done = 0;
    }
}

/// Runs a plan to its end.
pub(super) fn run(
    plan: &impl Plan,
    mut out_link: Option<&mut Link>,
    mut in_link: Option<&mut Link>,
    buffers: &mut Buffers<'_>,
    reduction: Reduction,
    patience: Patience,
) -> Result<(), EngineError> {
    let mut out = Cursor::new(plan.out(0));
    let mut input = Cursor::new(plan.input(0));
    // bytes of an element that is not complete yet, at the start of the scratch
    let mut carried = 0;
    let mut waiting = Waiting::streaming(patience);
    loop {
        let mut moved = false;
        let mut out_open = false;
        let mut in_open = false;
        if let Some(item) = out.item {
            let there = match item.after {
                Some(index) if input.index < index => 0,
                Some(index) if input.index == index => input.done,
                _ => item.bytes,
            };
            if out.done == item.bytes {
                out.next(|i| plan.out(i));
                continue;
            }
            let ready = there.min(item.bytes) - out.done;
            if ready >= WORTH.min(item.bytes - out.done)
                && let Some(link) = out_link.as_deref_mut()
            {
                let bytes =
                    buffers.read(item.place, item.at + out.done..item.at + out.done + ready);
                match link.send(bytes) {
                    Ok(Some(n)) => {
                        out.done += n;
                        moved = true;
                    }
                    Ok(None) => out_open = true,
                    Err(e) => return Err(error::lost(link.peer, error::seen(&e))),
                }
            }
        }
        if let Some(item) = input.item {
            if input.done == item.bytes {
                input.next(|i| plan.input(i));
                continue;
            }
            let free = out.item.is_none() || out.index >= item.after_sent;
            if let Some(link) = in_link.as_deref_mut().filter(|_| free) {
                let got = arrive(item, input.done, &mut carried, link, buffers, reduction)
                    .map_err(|e| error::lost(link.peer, error::seen(&e)))?;
                match got {
                    Some(n) => {
                        input.done += n;
                        moved = true;
                    }
                    None => in_open = true,
                }
            }
        }
        if moved {
            waiting.moved();
        } else if out.item.is_none() && input.item.is_none() {
            return Ok(());
        } else {
            let out_link = out_link.as_deref().filter(|_| out_open);
            let in_link = in_link.as_deref().filter(|_| in_open);
            waiting.pause(out_link, in_link)?;
        }
    }
}

/// Receives what is there for an item of which `done` bytes have come. Returns how many bytes are
/// finished (whole elements, where they are combined); `None` when nothing was there.
#[inline]
fn arrive(
    item: In,
    done: usize,
    carried: &mut usize,
    link: &mut Link,
    buffers: &mut Buffers<'_>,
    reduction: Reduction,
) -> std::io::Result<Option<usize>> {
    let at = item.at + done;
    let Some(reduce) = item.reduce else {
        let left = (item.bytes - done).min(READ);
        return link.receive(buffers.write(item.place, at..at + left));
    };
    let upto = (item.bytes - done).min(READ);
    let Some(n) = link.receive(&mut buffers.scratch[*carried..upto])? else {
        return Ok(None);
    };
    let width = reduction.dtype.size();
    let whole = (*carried + n) / width * width;
    buffers.reduce(reduction, item.place, at, reduce.own_at + done, whole, reduce.last);
    let rest = *carried + n - whole;
    buffers.scratch.copy_within(whole..whole + rest, 0);
    *carried = rest;
    Ok(Some(whole))
}
