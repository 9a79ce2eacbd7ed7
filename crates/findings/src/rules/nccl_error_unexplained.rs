//! `nccl-error-unexplained`: a framework reports NCCL's error, and its reason is not in these logs.
//!
//! ## What
//!
//! PyTorch, vLLM or nccl-tests print only the class of the error; NCCL's own line is missing, mostly
//! because NCCL_DEBUG is not set or another rank's log is needed.
//!
//! ## Why
//!
//! The class narrows the search: a CUDA call, a system call, a wrong call of the program, or a peer.
//!
//! ## Example
//!
//! `NCCL error: unhandled cuda error; the line that says why is not here`
//!
//! ## Remedy
//!
//! Run again with NCCL_DEBUG=WARN on all ranks.
//!
//! ## Source
//!
//! NCCL src/init.cc `ncclGetErrorString`; PyTorch torch/csrc/distributed/c10d/NCCLUtils.cpp.

use ncclctl_nccl::log::{At, Signal};

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(crate) const RULE: Rule = Rule::new(
    "nccl-error-unexplained",
    Severity::Error,
    "an error of NCCL whose reason is not in these logs",
);

/// Name of the result, its text, what it is about, where to look.
const CLASSES: &[(&str, &str, &str, &str)] = &[
    (
        "ncclRemoteError",
        "remote process exited",
        "another rank went away, or the network to it broke: the reason is in that rank's log",
        "find the rank that ended first, `dmesg` of its host (OOM, Xid) and the scheduler's record",
    ),
    (
        "ncclUnhandledCudaError",
        "unhandled cuda error",
        "a CUDA call inside NCCL failed: driver older than the runtime, GPUs hidden or shared, a fault \
         of the program's own kernels before, /dev/shm too small, peer access or fabric manager",
        "`nvidia-smi`, `dmesg | grep -i xid`",
    ),
    (
        "ncclSystemError",
        "unhandled system error",
        "a system call inside NCCL failed: a socket, /dev/shm, locked memory, a device",
        "`df -h /dev/shm`, `ulimit -l`, `ip -br addr` in the container",
    ),
    (
        "ncclInvalidUsage",
        "invalid usage",
        "the program calls NCCL wrongly: mostly two ranks on one GPU, or ranks that disagree on the size",
        "CUDA_VISIBLE_DEVICES and LOCAL_RANK of every rank",
    ),
    (
        "ncclInternalError",
        "internal error",
        "NCCL met a state that it does not expect: mostly different versions, a broken topology or \
         another rank's failure",
        "the version of libnccl on every rank, `ncclctl facts` on every host",
    ),
];

/// The finding, where a framework reports an error and nothing else explains it.
pub(crate) fn explain(incident: &Incident) -> Option<Finding> {
    let lines = incident.log.signal(Signal::TorchNcclError);
    let has = |at: &At, class: &(&str, &str, &str, &str)| {
        at.text.contains(class.0) || at.text.to_ascii_lowercase().contains(class.1)
    };
    // the first line of the pair may be cut before the class
    let (class, at) =
        lines.iter().find_map(|at| Some((CLASSES.iter().find(|c| has(at, c))?, at)))?;
    Some(RULE.found(
        Confidence::Likely,
        format!("{} ({}); the line that says why is not here", class.0, class.1),
        class.2,
        format!(
            "run again with NCCL_DEBUG=WARN (or INFO) and hand in the logs of all ranks; look at {}",
            class.3
        ),
        incident.exhibits([at], 1),
    ))
}
