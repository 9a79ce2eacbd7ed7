//! The buffers that one thread keeps for all its operations.

use ncclctl_nccl::Collective;

use super::buffers::Buffers;
use super::flow::READ;
use super::job::Job;
use super::ring;

/// Scratch of one thread: holds one read, or one whole small buffer.
const SCRATCH: usize = READ;

/// Grown to what was needed so far, never shrunk.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) send: Vec<u8>,
    pub(super) recv: Vec<u8>,
    temp: Vec<u8>,
    scratch: Vec<u8>,
}

/// Bytes that a job puts in and gets out on one rank.
pub(super) fn extent(job: &Job) -> (usize, usize) {
    let (one, all) = (job.bytes(), job.bytes() * job.ranks);
    match job.collective {
        Collective::AllReduce
        | Collective::Broadcast
        | Collective::Reduce
        | Collective::SendRecv => (one, one),
        Collective::AllGather | Collective::Gather => (one, all),
        Collective::ReduceScatter | Collective::Scatter => (all, one),
        Collective::AllToAll => (all, all),
    }
}

/// In place: where input and output start in the one buffer.
pub(super) fn in_place(job: &Job) -> (usize, usize) {
    let own = job.rank * job.bytes();
    match job.collective {
        Collective::AllGather | Collective::Gather => (own, 0),
        Collective::ReduceScatter | Collective::Scatter => (0, own),
        _ => (0, 0),
    }
}

pub(super) fn grow(buffer: &mut Vec<u8>, bytes: usize) {
    if buffer.len() < bytes {
        // written, not just reserved: pages that were never touched would all be the zero page
        buffer.clear();
        buffer.resize(bytes, 1);
    }
}

impl Memory {
    /// Makes room for a job.
    pub(super) fn prepare(&mut self, job: &Job, in_place: bool) {
        let (send, recv) = extent(job);
        if in_place {
            grow(&mut self.recv, send.max(recv));
        } else {
            grow(&mut self.send, send);
            grow(&mut self.recv, recv);
        }
        grow(&mut self.temp, ring::temp_bytes(job).max(SCRATCH));
        grow(&mut self.scratch, SCRATCH);
    }

    /// The buffers of a job that room was made for.
    pub(super) fn buffers(&mut self, job: &Job, in_place: bool) -> Buffers<'_> {
        let (send_base, recv_base) = if in_place { self::in_place(job) } else { (0, 0) };
        Buffers {
            send: (!in_place).then_some(&self.send),
            recv: &mut self.recv,
            send_base,
            recv_base,
            temp: &mut self.temp,
            scratch: &mut self.scratch,
        }
    }
}
