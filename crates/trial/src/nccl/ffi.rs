//! NCCL's and the CUDA driver's C functions as they are: types, signatures, nothing else.
//!
//! Source of the signatures: `nccl.h` of NCCL 2.3.5 to 2.32, `cuda.h` of CUDA 11 to 13. Handles are
//! opaque pointers that are only passed back to the library that gave them.
#![allow(unsafe_code, reason = "function tables of foreign libraries")]

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::symbols::functions;

/// `ncclComm_t`; null is no communicator.
pub(super) type Comm = *mut c_void;
/// `CUcontext`.
pub(super) type Context = *mut c_void;
/// `CUstream`, the same as `cudaStream_t`.
pub(super) type Stream = *mut c_void;
/// `CUevent`.
pub(super) type Event = *mut c_void;
/// `CUmodule`.
pub(super) type Module = *mut c_void;
/// `CUfunction`.
pub(super) type Function = *mut c_void;
/// `CUgraph`.
pub(super) type Graph = *mut c_void;
/// `CUgraphExec`.
pub(super) type GraphExec = *mut c_void;
/// `CUdeviceptr`.
pub(super) type DevicePointer = u64;

/// `ncclUniqueId`: 128 bytes, passed by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct UniqueId(pub(super) [c_char; 128]);

functions! {
    /// What is used of `libnccl.so.2`. Every function returns `ncclResult_t` (a C enum, 4 bytes)
    /// but for the two that return text.
    Nccl;
    required {
        get_version = "ncclGetVersion" (*mut c_int) -> c_int;
        get_unique_id = "ncclGetUniqueId" (*mut UniqueId) -> c_int;
        comm_init_rank = "ncclCommInitRank" (*mut Comm, c_int, UniqueId, c_int) -> c_int;
        comm_abort = "ncclCommAbort" (Comm) -> c_int;
        comm_get_async_error = "ncclCommGetAsyncError" (Comm, *mut c_int) -> c_int;
        get_error_string = "ncclGetErrorString" (c_int) -> *const c_char;
        all_reduce = "ncclAllReduce" (*const c_void, *mut c_void, usize, c_int, c_int, Comm, Stream) -> c_int;
        reduce = "ncclReduce" (*const c_void, *mut c_void, usize, c_int, c_int, c_int, Comm, Stream) -> c_int;
        broadcast = "ncclBroadcast" (*const c_void, *mut c_void, usize, c_int, c_int, Comm, Stream) -> c_int;
        all_gather = "ncclAllGather" (*const c_void, *mut c_void, usize, c_int, Comm, Stream) -> c_int;
        reduce_scatter = "ncclReduceScatter" (*const c_void, *mut c_void, usize, c_int, c_int, Comm, Stream) -> c_int;
        send = "ncclSend" (*const c_void, usize, c_int, c_int, Comm, Stream) -> c_int;
        recv = "ncclRecv" (*mut c_void, usize, c_int, c_int, Comm, Stream) -> c_int;
        group_start = "ncclGroupStart" () -> c_int;
        group_end = "ncclGroupEnd" () -> c_int;
    }
    optional {
        comm_init_rank_config = "ncclCommInitRankConfig" (*mut Comm, c_int, UniqueId, c_int, *mut c_void) -> c_int;
        get_last_error = "ncclGetLastError" (Comm) -> *const c_char;
        all_to_all = "ncclAlltoAll" (*const c_void, *mut c_void, usize, c_int, Comm, Stream) -> c_int;
        gather = "ncclGather" (*const c_void, *mut c_void, usize, c_int, c_int, Comm, Stream) -> c_int;
        scatter = "ncclScatter" (*const c_void, *mut c_void, usize, c_int, c_int, Comm, Stream) -> c_int;
        mem_alloc = "ncclMemAlloc" (*mut *mut c_void, usize) -> c_int;
        comm_register = "ncclCommRegister" (Comm, *mut c_void, usize, *mut *mut c_void) -> c_int;
    }
}

functions! {
    /// What is used of `libcuda.so.1`. Every function returns `CUresult` (a C enum, 4 bytes).
    Driver;
    required {
        init = "cuInit" (c_uint) -> c_int;
        device_get_count = "cuDeviceGetCount" (*mut c_int) -> c_int;
        device_get = "cuDeviceGet" (*mut c_int, c_int) -> c_int;
        device_get_name = "cuDeviceGetName" (*mut c_char, c_int, c_int) -> c_int;
        device_get_pci_bus_id = "cuDeviceGetPCIBusId" (*mut c_char, c_int, c_int) -> c_int;
        device_get_attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, c_int) -> c_int;
        primary_ctx_retain = "cuDevicePrimaryCtxRetain" (*mut Context, c_int) -> c_int;
        primary_ctx_release = "cuDevicePrimaryCtxRelease_v2" (c_int) -> c_int;
        ctx_set_current = "cuCtxSetCurrent" (Context) -> c_int;
        mem_get_info = "cuMemGetInfo_v2" (*mut usize, *mut usize) -> c_int;
        mem_alloc = "cuMemAlloc_v2" (*mut DevicePointer, usize) -> c_int;
        mem_free = "cuMemFree_v2" (DevicePointer) -> c_int;
        memcpy_to_device = "cuMemcpyHtoDAsync_v2" (DevicePointer, *const c_void, usize, Stream) -> c_int;
        memcpy_to_host = "cuMemcpyDtoH_v2" (*mut c_void, DevicePointer, usize) -> c_int;
        memset_d32_async = "cuMemsetD32Async" (DevicePointer, c_uint, usize, Stream) -> c_int;
        stream_create = "cuStreamCreate" (*mut Stream, c_uint) -> c_int;
        stream_query = "cuStreamQuery" (Stream) -> c_int;
        event_create = "cuEventCreate" (*mut Event, c_uint) -> c_int;
        event_record = "cuEventRecord" (Event, Stream) -> c_int;
        event_query = "cuEventQuery" (Event) -> c_int;
        event_elapsed_time = "cuEventElapsedTime" (*mut f32, Event, Event) -> c_int;
        module_load_data = "cuModuleLoadData" (*mut Module, *const c_void) -> c_int;
        module_get_function = "cuModuleGetFunction" (*mut Function, Module, *const c_char) -> c_int;
        launch_kernel = "cuLaunchKernel" (Function, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Stream, *mut *mut c_void, *mut *mut c_void) -> c_int;
        get_error_name = "cuGetErrorName" (c_int, *mut *const c_char) -> c_int;
    }
    optional {
        stream_begin_capture = "cuStreamBeginCapture_v2" (Stream, c_int) -> c_int;
        stream_end_capture = "cuStreamEndCapture" (Stream, *mut Graph) -> c_int;
        graph_instantiate = "cuGraphInstantiateWithFlags" (*mut GraphExec, Graph, u64) -> c_int;
        graph_launch = "cuGraphLaunch" (GraphExec, Stream) -> c_int;
        graph_exec_destroy = "cuGraphExecDestroy" (GraphExec) -> c_int;
        graph_destroy = "cuGraphDestroy" (Graph) -> c_int;
    }
}
