//! Plans that send one block to one peer while another comes from a second peer.

use super::buffers::Place;
use super::flow::{In, Out, Plan};

/// One block out, one block in, independent of each other.
pub(super) struct Exchange {
    /// Where the outgoing block stands in the input.
    pub(super) out_at: usize,
    /// Bytes of it; `None`: nothing leaves.
    pub(super) out: Option<usize>,
    /// Where the incoming block goes in the output.
    pub(super) in_at: usize,
    /// Bytes of it; `None`: nothing comes.
    pub(super) input: Option<usize>,
}

impl Plan for Exchange {
    fn out(&self, item: usize) -> Option<Out> {
        let bytes = self.out.filter(|_| item == 0)?;
        Some(Out { place: Place::Send, at: self.out_at, bytes, after: None })
    }

    fn input(&self, item: usize) -> Option<In> {
        let bytes = self.input.filter(|_| item == 0)?;
        Some(In { place: Place::Recv, at: self.in_at, bytes, reduce: None, after_sent: 0 })
    }
}
