//! The links of one thread to its peers, and the small exchanges over them.

use super::buffers::Buffers;
use super::error;
use super::flow::{self, Plan};
use super::kernel::Reduction;
use super::link::Link;
use super::wait::{Patience, Waiting};
use crate::engine::{EngineError, ErrorKind};

/// All links of one thread, by peer.
#[derive(Debug)]
pub(super) struct Wires {
    /// Links on which this rank sends.
    pub(super) out: Vec<Option<Link>>,
    /// Links on which it receives.
    pub(super) input: Vec<Option<Link>>,
    /// How to wait.
    pub(super) patience: Patience,
}

/// Peers that a step needs links to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Edges {
    /// Ranks that this one sends to.
    pub(super) out: Vec<usize>,
    /// Ranks that this one receives from.
    pub(super) input: Vec<usize>,
}

impl Wires {
    pub(super) fn new(ranks: usize, patience: Patience) -> Self {
        let none = || std::iter::repeat_with(|| None).take(ranks).collect();
        Self { out: none(), input: none(), patience }
    }

    fn out(&mut self, peer: usize) -> Result<&mut Link, EngineError> {
        self.out.get_mut(peer).and_then(Option::as_mut).ok_or_else(|| no_link(peer))
    }

    fn input(&mut self, peer: usize) -> Result<&mut Link, EngineError> {
        self.input.get_mut(peer).and_then(Option::as_mut).ok_or_else(|| no_link(peer))
    }

    /// Sends all of it.
    pub(super) fn send(&mut self, peer: usize, bytes: &[u8]) -> Result<(), EngineError> {
        let mut waiting = Waiting::new(self.patience);
        let link = self.out(peer)?;
        let mut done = 0;
        while done < bytes.len() {
            match link.send(&bytes[done..]) {
                Ok(Some(n)) => {
                    done += n;
                    waiting.moved();
                }
                Ok(None) => waiting.pause(Some(&*link), None)?,
                Err(e) => return Err(error::lost(peer, error::seen(&e))),
            }
        }
        Ok(())
    }

    /// Receives until `bytes` is full.
    pub(super) fn receive(&mut self, peer: usize, bytes: &mut [u8]) -> Result<(), EngineError> {
        let mut waiting = Waiting::new(self.patience);
        let link = self.input(peer)?;
        let mut done = 0;
        while done < bytes.len() {
            match link.receive(&mut bytes[done..]) {
                Ok(Some(n)) => {
                    done += n;
                    waiting.moved();
                }
                Ok(None) => waiting.pause(None, Some(&*link))?,
                Err(e) => return Err(error::lost(peer, error::seen(&e))),
            }
        }
        Ok(())
    }

    /// Runs a plan over the link to `to` and the link from `from`.
    pub(super) fn flow(
        &mut self,
        plan: &impl Plan,
        to: Option<usize>,
        from: Option<usize>,
        buffers: &mut Buffers<'_>,
        reduction: Reduction,
    ) -> Result<(), EngineError> {
        let patience = self.patience;
        let out = match to {
            Some(peer) => {
                Some(self.out.get_mut(peer).and_then(Option::as_mut).ok_or_else(|| no_link(peer))?)
            }
            None => None,
        };
        let input = match from {
            Some(peer) => Some(
                self.input.get_mut(peer).and_then(Option::as_mut).ok_or_else(|| no_link(peer))?,
            ),
            None => None,
        };
        flow::run(plan, out, input, buffers, reduction, patience)
    }
}

fn no_link(peer: usize) -> EngineError {
    EngineError {
        message: format!("no connection to rank {peer} was made for this step"),
        kind: ErrorKind::Other,
        peer: Some(peer),
    }
}
