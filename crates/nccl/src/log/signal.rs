//! Lines that are not NCCL's own and still tell why a run failed: PyTorch, libfabric, MPI and ssh,
//! the CUDA runtime, vGPU libraries, service meshes, the kernel.
//!
//! One automaton looks for all of them at once; a rule asks for the signals that it knows.

use std::sync::LazyLock;

use aho_corasick::packed::{self, Config, Searcher};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde::Serialize;

/// What a foreign line tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the table below is the documentation")]
pub enum Signal {
    WatchdogTimeout,
    WatchdogState,
    WatchdogStuck,
    AddressFamily,
    TorchNcclError,
    StoreUnreachable,
    StoreClosed,
    GlooInterface,
    HamiPresent,
    HamiError,
    EfaProviderEmpty,
    FabricProviderTcp,
    NameResolution,
    HostKnown,
    FabricNotReady,
    FabricManagerDown,
    FabricManagerRestart,
    NoKernelImage,
    DriverTooOld,
    MemlockLimit,
    Crash,
    HostMemory,
    GpuMemory,
    Xid,
    MlxHealth,
    LinkDown,
    IommuFault,
    Mesh,
    SharedMemory,
    Launcher,
    Mig,
    MigUnsupported,
    Vgpu,
    AcsRedirect,
    PeerAccess,
    DuplicateGpu,
    TcpxoConfig,
    NvlsMulticast,
    RegistrationFailed,
    EcsTimeout,
    PluginMissing,
    Pod,
    PodStarted,
}

/// What is looked for. Case counts.
pub const SIGNALS: &[(Signal, &str)] = &[
    (Signal::WatchdogTimeout, "Watchdog caught collective operation timeout"),
    (Signal::WatchdogState, "last enqueued NCCL work"),
    (Signal::WatchdogStuck, "ProcessGroupNCCL's watchdog got stuck"),
    (Signal::WatchdogStuck, "Received a dump signal"),
    (Signal::WatchdogStuck, "Timeout at NCCL work"),
    (Signal::AddressFamily, "is neither AF_INET"),
    (Signal::TorchNcclError, "NCCL error in:"),
    (Signal::TorchNcclError, "NCCL error: "),
    (Signal::TorchNcclError, "ncclUnhandledCudaError"),
    (Signal::TorchNcclError, "ncclSystemError"),
    (Signal::TorchNcclError, "ncclInternalError"),
    (Signal::TorchNcclError, "ncclInvalidUsage"),
    (Signal::TorchNcclError, "ncclRemoteError"),
    (Signal::StoreUnreachable, "The client socket has timed out"),
    (Signal::StoreUnreachable, "The client socket has failed to connect"),
    (Signal::StoreUnreachable, "client socket has failed to connect to any network address"),
    (Signal::StoreUnreachable, "connect() timed out"),
    (Signal::StoreClosed, "recvValue failed on"),
    (Signal::StoreClosed, "recvValueWithTimeout failed"),
    (Signal::StoreClosed, "store->get("),
    (Signal::GlooInterface, "Unable to find address for:"),
    (Signal::GlooInterface, "Unable to find interface for:"),
    (Signal::HamiError, "[HAMI-core ERROR"),
    (Signal::HamiPresent, "[HAMI-core"),
    (Signal::HamiPresent, "libvgpu.so"),
    (Signal::EfaProviderEmpty, "provider efa output empty list"),
    (Signal::EfaProviderEmpty, "No eligible providers were found"),
    (Signal::NameResolution, "Could not resolve hostname"),
    (Signal::NameResolution, "Name or service not known"),
    (Signal::NameResolution, "Temporary failure in name resolution"),
    (Signal::NameResolution, "nodename nor servname provided"),
    (Signal::NameResolution, "No address associated with hostname"),
    (Signal::NameResolution, "unable to resolve host"),
    (Signal::HostKnown, "to the list of known hosts"),
    (Signal::FabricNotReady, "system not yet initialized"),
    (Signal::FabricNotReady, "cudaErrorSystemNotReady"),
    (Signal::FabricNotReady, "Error 802"),
    (Signal::FabricNotReady, "CUDA_ERROR_SYSTEM_NOT_READY"),
    (Signal::FabricManagerDown, "nvidia-fabricmanager.service: Failed"),
    (Signal::FabricManagerDown, "Failed to start NVIDIA fabric manager"),
    (Signal::FabricManagerDown, "Failed to start nvidia-fabricmanager"),
    (Signal::FabricManagerDown, "nvidia-fabricmanager.service: Main process exited"),
    (Signal::FabricManagerDown, "fabric manager NVIDIA GPU driver interface version"),
    (Signal::FabricManagerRestart, "Started NVIDIA fabric manager"),
    (Signal::FabricManagerRestart, "Started nvidia-fabricmanager"),
    (Signal::FabricManagerRestart, "systemctl restart nvidia-fabricmanager"),
    (Signal::NoKernelImage, "no kernel image is available"),
    (Signal::NoKernelImage, "is not compatible with the current PyTorch installation"),
    (Signal::DriverTooOld, "CUDA driver version is insufficient"),
    (Signal::DriverTooOld, "driver on your system is too old"),
    (Signal::DriverTooOld, "unsupported display driver / cuda driver combination"),
    (Signal::DriverTooOld, "compiled with an unsupported toolchain"),
    (Signal::DriverTooOld, "forward compatibility was attempted on non supported HW"),
    (Signal::MemlockLimit, "RLIMIT_MEMLOCK"),
    (Signal::MemlockLimit, "max locked memory"),
    (Signal::Crash, "Segmentation fault"),
    (Signal::Crash, "Segfault encountered"),
    (Signal::Crash, "Caught signal 11"),
    (Signal::Crash, "exited on signal 11"),
    (Signal::Crash, "exitcode  : -11"),
    (Signal::Crash, "exit code -11"),
    (Signal::Crash, "SIGSEGV"),
    (Signal::Crash, "SIGABRT"),
    (Signal::HostMemory, "Out of memory: Killed process"),
    (Signal::HostMemory, "oom-kill:"),
    (Signal::HostMemory, "OOMKilled"),
    (Signal::HostMemory, "Memory cgroup out of memory"),
    (Signal::HostMemory, "exitcode  : -9"),
    (Signal::HostMemory, "exitCode: 137"),
    (Signal::HostMemory, "\"exitCode\": 137"),
    (Signal::HostMemory, "Exit Code:    137"),
    (Signal::GpuMemory, "CUDA out of memory"),
    (Signal::GpuMemory, "torch.OutOfMemoryError"),
    (Signal::Xid, "NVRM: Xid"),
    (Signal::MlxHealth, "health compromised"),
    (Signal::MlxHealth, "assert_exit_ptr"),
    (Signal::MlxHealth, "firmware fatal error"),
    (Signal::MlxHealth, "Fatal error detected"),
    (Signal::MlxHealth, "poll_health"),
    (Signal::LinkDown, ": Link down"),
    (Signal::LinkDown, "NIC Link is Down"),
    (Signal::IommuFault, "DMAR: [DMA"),
    (Signal::IommuFault, "IO_PAGE_FAULT"),
    (Signal::Mesh, "istio-proxy"),
    (Signal::Mesh, "linkerd-proxy"),
    (Signal::Mesh, "istio-init"),
    (Signal::Mesh, "envoy "),
    (Signal::Mesh, "Envoy proxy is ready"),
    (Signal::Mesh, "127.0.0.6"),
    (Signal::SharedMemory, "insufficient shared memory"),
    (Signal::SharedMemory, "out of shared memory"),
    (Signal::SharedMemory, "unable to open shared memory object"),
    (Signal::SharedMemory, "/dev/shm: No space left"),
    (Signal::Launcher, "ORTE was unable to reliably start"),
    (Signal::Launcher, "PRTE has lost communication"),
    (Signal::Mig, " MIG "),
    (Signal::MigUnsupported, "MIG is not supported"),
    (Signal::Vgpu, "NVIDIA GRID"),
    (Signal::Vgpu, "vGPU"),
    (Signal::AcsRedirect, "ReqRedir+"),
    (Signal::PeerAccess, "peer access is not supported"),
    (Signal::PeerAccess, "peer mapping resources exhausted"),
    (Signal::DuplicateGpu, "Duplicate GPU detected"),
    (Signal::TcpxoConfig, "GuestConfigChecker"),
    (Signal::TcpxoConfig, "Guest Config Checker"),
    (Signal::NvlsMulticast, "NVLink SHARP (NVLS) Multicast"),
    (Signal::RegistrationFailed, "ibv_reg_mr failed"),
    (Signal::RegistrationFailed, "Couldn't register memory"),
    (Signal::RegistrationFailed, "fi_mr_regattr failed"),
    (Signal::PluginMissing, "libnccl-net.so: cannot open shared object file"),
    (Signal::PodStarted, "Started container"),
    (Signal::Pod, "FailedScheduling"),
    (Signal::Pod, "nodes are available: "),
    (Signal::Pod, "FailedMount"),
    (Signal::Pod, "FailedCreatePodSandBox"),
    (Signal::Pod, "ErrImagePull"),
    (Signal::Pod, "ImagePullBackOff"),
    (Signal::Pod, "Failed to pull image"),
    (Signal::Pod, "UnexpectedAdmissionError"),
    (Signal::Pod, "CreateContainerConfigError"),
    (Signal::Pod, "RunContainerError"),
    (Signal::Pod, "The node was low on resource"),
];

/// Text that begins a table: lines near it are looked at one by one.
const TABLE_MARKS: [&str; 2] = ["# nThread", "# nccl-tests version"];

static AUTOMATON: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .match_kind(MatchKind::Standard)
        .build(SIGNALS.iter().map(|(_, text)| text))
        .ok()
});

/// The same texts for vector instructions, where the machine has them.
static PACKED: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    let mut config = Config::new();
    config.match_kind(packed::MatchKind::LeftmostFirst).heuristic_pattern_limits(false);
    let texts = SIGNALS.iter().map(|(_, text)| *text).chain(TABLE_MARKS);
    config.builder().extend(texts).build()
});

/// The same texts for every other machine.
static PLAIN: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let texts = SIGNALS.iter().map(|(_, text)| *text).chain(TABLE_MARKS);
    AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(texts).ok()
});

/// Signals in one line, each kind once, in the order of the text.
pub fn find(text: &[u8], mut found: impl FnMut(Signal)) {
    let Some(automaton) = AUTOMATON.as_ref() else { return };
    let mut seen = Vec::new();
    for hit in automaton.find_overlapping_iter(text) {
        let signal = SIGNALS[hit.pattern().as_usize()].0;
        if !seen.contains(&signal) {
            seen.push(signal);
            found(signal);
        }
    }
}

/// Where the first signal, or the beginning of a table, stands in the text.
pub fn first(text: &[u8]) -> Option<usize> {
    match PACKED.as_ref() {
        Some(packed) => packed.find(text).map(|hit| hit.start()),
        None => PLAIN.as_ref()?.find(text).map(|hit| hit.start()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_each_once() {
        let mut seen = Vec::new();
        find(b"[HAMI-core ERROR (x)]: y [HAMI-core ERROR", |s| seen.push(s));
        assert_eq!(seen, [Signal::HamiPresent, Signal::HamiError]);
        assert_eq!(first(b"[rank0] step 12 loss 2.31"), None);
        assert_eq!(first(b"x\n# nThread 1"), Some(2));
        for (_, text) in SIGNALS {
            let line = format!("some words before {text} and after");
            assert!(first(line.as_bytes()).is_some_and(|at| (17..=18).contains(&at)), "{text}");
        }
    }
}
