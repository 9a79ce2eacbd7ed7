//! A communicator: NCCL's calls as safe functions. Buffers are device addresses that the caller
//! keeps alive; everything is put into one stream.
#![allow(unsafe_code, reason = "calls NCCL")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

use ncclctl_nccl::{Collective, DataType, Version};

use super::config::Config;
use super::ffi::{Comm, DevicePointer, Nccl, Stream, UniqueId};
use crate::engine::Case;

/// Blocks of a send/recv group: address and the other rank.
type Parts = Vec<(u64, usize)>;

/// `ncclInProgress`.
const IN_PROGRESS: c_int = 7;

/// An NCCL call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {text}{last}", last = if last.is_empty() { String::new() } else { format!(" ({last})") })]
pub(super) struct NcclError {
    /// Function called.
    pub(super) call: &'static str,
    /// `ncclResult_t`.
    pub(super) code: c_int,
    /// NCCL's name for it.
    pub(super) text: String,
    /// Text of NCCL's last warning in this process, empty before 2.13 or where there is none.
    pub(super) last: String,
}

/// `ncclUnhandledCudaError`.
pub(super) const CUDA_ERROR: c_int = 1;
/// `ncclInvalidUsage`.
pub(super) const INVALID_USAGE: c_int = 5;
/// `ncclRemoteError`.
pub(super) const REMOTE_ERROR: c_int = 6;

/// One rank's handle of the job's communicator.
pub(super) struct Communicator {
    nccl: Nccl,
    comm: Comm,
    rank: usize,
    ranks: usize,
}

/// Where a case's data lies on this rank, and in which stream it runs.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) send: DevicePointer,
    pub(super) recv: DevicePointer,
    /// Elements of the count argument.
    pub(super) count: usize,
    pub(super) stream: Stream,
}

fn check(nccl: &Nccl, call: &'static str, code: c_int) -> Result<(), NcclError> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: gives a static string for every value
    let text = unsafe { text_of((nccl.get_error_string)(code)) };
    let last = match nccl.get_last_error {
        // SAFETY: the communicator is ignored and may be null; the text is NCCL's own buffer
        Some(get) => unsafe { text_of(get(null_mut())) },
        None => String::new(),
    };
    Err(NcclError { call, code, text, last: last.trim().replace('\n', " ") })
}

/// # Safety
/// `text` is null or a terminated string that lives during the call.
unsafe fn text_of(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A fresh id. This process then holds the root of the rendezvous and must live until all have joined.
pub(super) fn unique_id(nccl: &Nccl) -> Result<[u8; 128], NcclError> {
    let mut id = UniqueId([0; 128]);
    // SAFETY: writes 128 bytes
    check(nccl, "ncclGetUniqueId", unsafe { (nccl.get_unique_id)(&raw mut id) })?;
    Ok(id.0.map(|c| c as u8))
}

impl Communicator {
    /// Joins the communicator. Blocks until every rank has come, without any limit of its own: the
    /// caller watches the time from another thread.
    pub(super) fn join(
        nccl: Nccl,
        version: Version,
        id: &[u8; 128],
        rank: usize,
        ranks: usize,
    ) -> Result<Self, NcclError> {
        let id = UniqueId(id.map(|b| b as std::ffi::c_char));
        let mut comm: Comm = null_mut();
        match (nccl.comm_init_rank_config, Config::new(version)) {
            (Some(init), Some(mut config)) => {
                let code =
                    // SAFETY: the struct has the size that it states and lives during the call
                    unsafe { init(&raw mut comm, ranks as c_int, id, rank as c_int, config.as_mut_ptr()) };
                check(&nccl, "ncclCommInitRankConfig", code)?;
            }
            _ => {
                let code =
                    // SAFETY: writes one handle; the id is passed by value
                    unsafe { (nccl.comm_init_rank)(&raw mut comm, ranks as c_int, id, rank as c_int) };
                check(&nccl, "ncclCommInitRank", code)?;
            }
        }
        Ok(Self { nccl, comm, rank, ranks })
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), NcclError> {
        check(&self.nccl, call, code)
    }

    /// What went wrong behind our back: the network's errors never come through the stream.
    pub(super) fn async_error(&self) -> Result<(), NcclError> {
        let mut state: c_int = 0;
        // SAFETY: a live communicator; writes one int
        let code = unsafe { (self.nccl.comm_get_async_error)(self.comm, &raw mut state) };
        self.check("ncclCommGetAsyncError", code)?;
        if state == IN_PROGRESS { Ok(()) } else { self.check("the collective", state) }
    }

    /// Gives the communicator up: running kernels end, nobody is waited for.
    pub(super) fn abort(&mut self) {
        let comm = std::mem::replace(&mut self.comm, null_mut());
        if !comm.is_null() {
            // SAFETY: a live communicator that is not used again
            unsafe { (self.nccl.comm_abort)(comm) };
        }
    }

    /// Puts one collective into the stream.
    pub(super) fn issue(&self, case: &Case, at: &Place) -> Result<(), NcclError> {
        let (n, c, s) = (&self.nccl, self.comm, at.stream);
        let (send, recv) = (at.send as *const c_void, at.recv as *mut c_void);
        let (count, dtype, op) = (at.count, case.dtype as c_int, case.op as c_int);
        let root = case.root as c_int;
        // SAFETY: the buffers have room for what the collective moves, as the caller laid them out
        // by `Collective::layout`; communicator and stream are live
        unsafe {
            match case.collective {
                Collective::AllReduce => {
                    let code = (n.all_reduce)(send, recv, count, dtype, op, c, s);
                    self.check("ncclAllReduce", code)
                }
                Collective::Reduce => {
                    let code = (n.reduce)(send, recv, count, dtype, op, root, c, s);
                    self.check("ncclReduce", code)
                }
                Collective::Broadcast => {
                    let code = (n.broadcast)(send, recv, count, dtype, root, c, s);
                    self.check("ncclBroadcast", code)
                }
                Collective::AllGather => {
                    self.check("ncclAllGather", (n.all_gather)(send, recv, count, dtype, c, s))
                }
                Collective::ReduceScatter => {
                    let code = (n.reduce_scatter)(send, recv, count, dtype, op, c, s);
                    self.check("ncclReduceScatter", code)
                }
                Collective::AllToAll => match n.all_to_all {
                    Some(call) => self.check("ncclAlltoAll", call(send, recv, count, dtype, c, s)),
                    None => self.exchange(case, at),
                },
                Collective::Gather => match n.gather {
                    Some(call) => {
                        self.check("ncclGather", call(send, recv, count, dtype, root, c, s))
                    }
                    None => self.exchange(case, at),
                },
                Collective::Scatter => match n.scatter {
                    Some(call) => {
                        self.check("ncclScatter", call(send, recv, count, dtype, root, c, s))
                    }
                    None => self.exchange(case, at),
                },
                Collective::SendRecv => self.exchange(case, at),
            }
        }
    }

    /// What a collective without a function of its own is made of.
    fn exchange(&self, case: &Case, at: &Place) -> Result<(), NcclError> {
        let block = (at.count * case.dtype.size()) as u64;
        let all = 0..self.ranks;
        let is_root = self.rank == case.root;
        let (sends, receives): (Parts, Parts) = match case.collective {
            Collective::AllToAll => {
                let each = |base: u64| all.clone().map(move |r| (base + r as u64 * block, r));
                (each(at.send).collect(), each(at.recv).collect())
            }
            Collective::Gather => {
                let from = |r| (at.recv + r as u64 * block, r);
                let receives = if is_root { all.map(from).collect() } else { Vec::new() };
                (vec![(at.send, case.root)], receives)
            }
            Collective::Scatter => {
                let to = |r| (at.send + r as u64 * block, r);
                let sends = if is_root { all.map(to).collect() } else { Vec::new() };
                (sends, vec![(at.recv, case.root)])
            }
            _ => {
                let next = (self.rank + 1) % self.ranks;
                let previous = (self.rank + self.ranks - 1) % self.ranks;
                (vec![(at.send, next)], vec![(at.recv, previous)])
            }
        };
        let count = at.count;
        self.group(|| {
            for (address, peer) in sends {
                self.send(address, count, case.dtype, peer, at.stream)?;
            }
            for (address, peer) in receives {
                self.receive(address, count, case.dtype, peer, at.stream)?;
            }
            Ok(())
        })
    }

    /// Runs `work`'s sends and receives as one operation.
    pub(super) fn group(
        &self,
        work: impl FnOnce() -> Result<(), NcclError>,
    ) -> Result<(), NcclError> {
        // SAFETY: begins a group of this thread, which is ended below in any case
        self.check("ncclGroupStart", unsafe { (self.nccl.group_start)() })?;
        let worked = work();
        // SAFETY: as above
        let ended = self.check("ncclGroupEnd", unsafe { (self.nccl.group_end)() });
        worked.and(ended)
    }

    /// Sends to a peer.
    pub(super) fn send(
        &self,
        from: DevicePointer,
        count: usize,
        dtype: DataType,
        peer: usize,
        stream: Stream,
    ) -> Result<(), NcclError> {
        let buffer = from as *const c_void;
        let (dtype, peer) = (dtype as c_int, peer as c_int);
        // SAFETY: the buffer holds `count` elements; communicator and stream are live
        let code = unsafe { (self.nccl.send)(buffer, count, dtype, peer, self.comm, stream) };
        self.check("ncclSend", code)
    }

    /// Receives from a peer.
    pub(super) fn receive(
        &self,
        to: DevicePointer,
        count: usize,
        dtype: DataType,
        peer: usize,
        stream: Stream,
    ) -> Result<(), NcclError> {
        let buffer = to as *mut c_void;
        let (dtype, peer) = (dtype as c_int, peer as c_int);
        // SAFETY: the buffer has room for `count` elements; communicator and stream are live
        let code = unsafe { (self.nccl.recv)(buffer, count, dtype, peer, self.comm, stream) };
        self.check("ncclRecv", code)
    }

    /// Registers a buffer for zero-copy use; `false` where this version can not.
    pub(super) fn register(&self, at: DevicePointer, bytes: usize) -> Result<bool, NcclError> {
        let Some(register) = self.nccl.comm_register else { return Ok(false) };
        let mut handle: *mut c_void = null_mut();
        // SAFETY: the buffer has that many bytes and lives as long as the communicator
        let code = unsafe { register(self.comm, at as *mut c_void, bytes, &raw mut handle) };
        self.check("ncclCommRegister", code)?;
        Ok(true)
    }
}

/// Memory from NCCL's own allocator, which can be registered; `None` where this version has none.
pub(super) fn allocate(nccl: &Nccl, bytes: usize) -> Option<Result<DevicePointer, NcclError>> {
    let alloc = nccl.mem_alloc?;
    let mut pointer: *mut c_void = null_mut();
    // SAFETY: writes one pointer
    let code = unsafe { alloc(&raw mut pointer, bytes.max(16)) };
    Some(check(nccl, "ncclMemAlloc", code).map(|()| pointer as DevicePointer))
}

/// Why this version can not move a type.
pub(super) fn lacks(version: Version, dtype: DataType) -> Option<String> {
    let since = match dtype {
        DataType::Float8E4m3 | DataType::Float8E5m2 => Version::new(2, 24, 3),
        DataType::Bfloat16 => Version::new(2, 10, 3),
        _ => return None,
    };
    (version < since).then(|| format!("{dtype} needs NCCL {since}, this is {version}"))
}
