//! One GPU through the driver: memory, a stream, events, the check kernels. Safe wrappers; every
//! handle belongs to the one thread that made it.
#![allow(unsafe_code, reason = "calls the CUDA driver")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;

use super::ffi::{Context, DevicePointer, Driver, Event, Function, GraphExec, Module, Stream};
use super::kernels;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`.
const CAPABILITY_MAJOR: c_int = 75;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`.
const CAPABILITY_MINOR: c_int = 76;
/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`.
const MULTIPROCESSORS: c_int = 16;
/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;
/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: other threads (NVML, the watch) do not disturb a capture.
const CAPTURE_THREAD_LOCAL: c_int = 1;
/// `CUDA_ERROR_NOT_READY`.
const NOT_READY: c_int = 600;

/// A driver call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {name}{hint}", hint = hint(*code))]
pub(super) struct CudaError {
    /// Function called.
    pub(super) call: &'static str,
    /// `CUresult`.
    pub(super) code: c_int,
    /// Its name, like `CUDA_ERROR_OUT_OF_MEMORY`.
    pub(super) name: String,
}

/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub(super) const OUT_OF_MEMORY: c_int = 2;
/// `CUDA_ERROR_NO_DEVICE`.
pub(super) const NO_DEVICE: c_int = 100;

/// What a code means for the one who has to act.
fn hint(code: c_int) -> &'static str {
    match code {
        2 => " (the GPU's memory is full)",
        3 | 100 => {
            " (no GPU is visible: look at CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES and the \
             container's devices)"
        }
        214 => " (the GPU reports an uncorrectable memory error)",
        220 => " (the GPU reports an uncorrectable NVLink error)",
        802 => " (the system is not ready: on NVSwitch machines the fabric manager must run)",
        803 => " (driver and its library in the container are of different versions)",
        999 => " (the driver says no more; look at dmesg for Xid)",
        _ => "",
    }
}

/// What is known of a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Description {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) bus_id: String,
    pub(super) capability: (i32, i32),
}

/// One GPU with its primary context current on this thread.
pub(super) struct Device {
    cuda: Driver,
    ordinal: c_int,
    pub(super) description: Description,
    pub(super) stream: Stream,
    blocks: u32,
    fill: [Function; 4],
    wrong: [Function; 4],
}

/// Checks a result.
fn check(cuda: &Driver, call: &'static str, code: c_int) -> Result<(), CudaError> {
    if code == 0 {
        return Ok(());
    }
    let mut text: *const c_char = std::ptr::null();
    // SAFETY: writes a pointer to a static string, or leaves null for an unknown code
    unsafe { (cuda.get_error_name)(code, &raw mut text) };
    let name = if text.is_null() {
        format!("error {code}")
    } else {
        // SAFETY: the driver's own static, terminated string
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    };
    Err(CudaError { call, code, name })
}

/// Number of GPUs that this process may use.
pub(super) fn count(cuda: &Driver) -> Result<u32, CudaError> {
    // SAFETY: cuInit takes flags of 0 and may be called again
    let code = unsafe { (cuda.init)(0) };
    if code == NO_DEVICE {
        return Ok(0);
    }
    check(cuda, "cuInit", code)?;
    let mut n: c_int = 0;
    // SAFETY: writes one int
    check(cuda, "cuDeviceGetCount", unsafe { (cuda.device_get_count)(&raw mut n) })?;
    Ok(n.max(0) as u32)
}

impl Device {
    /// Takes a GPU: makes its primary context current on this thread, a stream, and loads the kernels.
    /// [`count`] must have succeeded before.
    pub(super) fn open(cuda: Driver, index: u32) -> Result<Self, CudaError> {
        let mut ordinal: c_int = 0;
        let mut context: Context = null_mut();
        let mut stream: Stream = null_mut();
        let mut text = [0 as c_char; 256];
        let mut bus = [0 as c_char; 32];
        // SAFETY: every pointer is to a local of the type that the call writes, and the lengths given
        // are those of the arrays
        unsafe {
            let get = (cuda.device_get)(&raw mut ordinal, index as c_int);
            check(&cuda, "cuDeviceGet", get)?;
            let name = (cuda.device_get_name)(text.as_mut_ptr(), 256, ordinal);
            check(&cuda, "cuDeviceGetName", name)?;
            let id = (cuda.device_get_pci_bus_id)(bus.as_mut_ptr(), 32, ordinal);
            check(&cuda, "cuDeviceGetPCIBusId", id)?;
            let retain = (cuda.primary_ctx_retain)(&raw mut context, ordinal);
            check(&cuda, "cuDevicePrimaryCtxRetain", retain)?;
            check(&cuda, "cuCtxSetCurrent", (cuda.ctx_set_current)(context))?;
            let create = (cuda.stream_create)(&raw mut stream, NON_BLOCKING);
            check(&cuda, "cuStreamCreate", create)?;
        }
        let attribute = |attribute| {
            let mut value: c_int = 0;
            // SAFETY: writes one int
            let code = unsafe { (cuda.device_get_attribute)(&raw mut value, attribute, ordinal) };
            check(&cuda, "cuDeviceGetAttribute", code).map(|()| value)
        };
        let capability = (attribute(CAPABILITY_MAJOR)?, attribute(CAPABILITY_MINOR)?);
        let blocks = attribute(MULTIPROCESSORS)?.clamp(1, 1024) as u32 * 8;
        let description = Description {
            index,
            name: text_of(&text),
            bus_id: text_of(&bus).to_ascii_lowercase(),
            capability,
        };
        let mut device = Self {
            cuda,
            ordinal,
            description,
            stream,
            blocks,
            fill: [null_mut(); 4],
            wrong: [null_mut(); 4],
        };
        device.load_kernels()?;
        Ok(device)
    }

    fn load_kernels(&mut self) -> Result<(), CudaError> {
        let text = CString::new(kernels::module()).unwrap_or_default();
        let mut module: Module = null_mut();
        // SAFETY: the text is terminated and outlives the call; the driver compiles a copy
        let code = unsafe { (self.cuda.module_load_data)(&raw mut module, text.as_ptr().cast()) };
        self.check("cuModuleLoadData", code)?;
        for (slot, width) in kernels::WIDTHS.into_iter().enumerate() {
            self.fill[slot] = self.function(module, &format!("fill_{width}"))?;
            self.wrong[slot] = self.function(module, &format!("wrong_{width}"))?;
        }
        Ok(())
    }

    fn function(&self, module: Module, name: &str) -> Result<Function, CudaError> {
        let name = CString::new(name).unwrap_or_default();
        let mut function: Function = null_mut();
        // SAFETY: a live module and a terminated name
        let code =
            unsafe { (self.cuda.module_get_function)(&raw mut function, module, name.as_ptr()) };
        self.check("cuModuleGetFunction", code)?;
        Ok(function)
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), CudaError> {
        check(&self.cuda, call, code)
    }

    /// Free and total memory, bytes.
    pub(super) fn memory(&self) -> Result<(u64, u64), CudaError> {
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: writes two sizes
        let code = unsafe { (self.cuda.mem_get_info)(&raw mut free, &raw mut total) };
        self.check("cuMemGetInfo", code)?;
        Ok((free as u64, total as u64))
    }

    /// Device memory; given back by [`Device::free`] or with the process.
    pub(super) fn allocate(&self, bytes: usize) -> Result<DevicePointer, CudaError> {
        let mut pointer: DevicePointer = 0;
        // SAFETY: writes one pointer; the size is not 0
        let code = unsafe { (self.cuda.mem_alloc)(&raw mut pointer, bytes.max(16)) };
        self.check("cuMemAlloc", code)?;
        Ok(pointer)
    }

    /// Gives memory back that [`Device::allocate`] gave.
    pub(super) fn free(&self, pointer: DevicePointer) {
        if pointer != 0 {
            // SAFETY: a pointer of cuMemAlloc that nobody uses any more; a failure changes nothing
            unsafe { (self.cuda.mem_free)(pointer) };
        }
    }

    /// Copies to the device, in stream order. `to` has room for all bytes.
    pub(super) fn write(&self, to: DevicePointer, bytes: &[u8]) -> Result<(), CudaError> {
        let (from, length) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: the slice is readable for its length and is plain memory, which the driver has
        // copied when the call returns; the destination was allocated for it
        let code = unsafe { (self.cuda.memcpy_to_device)(to, from, length, self.stream) };
        self.check("cuMemcpyHtoDAsync", code)
    }

    /// Copies from the device and waits for it. `from` has that many bytes.
    pub(super) fn read(&self, from: DevicePointer, bytes: &mut [u8]) -> Result<(), CudaError> {
        let code =
            // SAFETY: the slice is writable for its length; the source has that many bytes
            unsafe { (self.cuda.memcpy_to_host)(bytes.as_mut_ptr().cast(), from, bytes.len()) };
        self.check("cuMemcpyDtoH", code)
    }

    /// Sets whole 4-byte words, in stream order.
    pub(super) fn set(&self, to: DevicePointer, value: u32, words: usize) -> Result<(), CudaError> {
        if words == 0 {
            return Ok(());
        }
        // SAFETY: the memory at `to` is at least `words` long
        let code = unsafe { (self.cuda.memset_d32_async)(to, value, words, self.stream) };
        self.check("cuMemsetD32Async", code)
    }

    /// Fills elements with the table's data: position `first` on, in stream order.
    pub(super) fn fill(
        &self,
        to: DevicePointer,
        table: DevicePointer,
        width: usize,
        count: usize,
        first: usize,
    ) -> Result<(), CudaError> {
        let mut values = [to, table, count as u64, first as u64];
        self.launch(self.fill[width.trailing_zeros() as usize % 4], &mut values, count)
    }

    /// Adds the number of elements that differ from the table by more than `tolerance` units in the
    /// last place to the counter at `counter`, in stream order.
    #[expect(clippy::too_many_arguments, reason = "they are the kernel's parameters")]
    pub(super) fn count_wrong(
        &self,
        from: DevicePointer,
        table: DevicePointer,
        width: usize,
        count: usize,
        first: usize,
        tolerance: u64,
        counter: DevicePointer,
    ) -> Result<(), CudaError> {
        let mut values = [from, table, count as u64, first as u64, tolerance, counter];
        self.launch(self.wrong[width.trailing_zeros() as usize % 4], &mut values, count)
    }

    fn launch(
        &self,
        function: Function,
        values: &mut [u64],
        count: usize,
    ) -> Result<(), CudaError> {
        if count == 0 {
            return Ok(());
        }
        let mut pointers: Vec<*mut c_void> =
            values.iter_mut().map(|value| (&raw mut *value).cast()).collect();
        let blocks = (count.div_ceil(kernels::THREADS as usize) as u64)
            .clamp(1, u64::from(self.blocks)) as u32;
        // SAFETY: every parameter of the kernel is a 64-bit value and the driver copies them before
        // the call returns
        let code = unsafe {
            (self.cuda.launch_kernel)(
                function,
                blocks,
                1,
                1,
                kernels::THREADS,
                1,
                1,
                0,
                self.stream,
                pointers.as_mut_ptr(),
                null_mut(),
            )
        };
        self.check("cuLaunchKernel", code)
    }

    /// Whether all work in the stream is done.
    pub(super) fn is_idle(&self) -> Result<bool, CudaError> {
        // SAFETY: this device's own stream
        self.ready("cuStreamQuery", unsafe { (self.cuda.stream_query)(self.stream) })
    }

    fn ready(&self, call: &'static str, code: c_int) -> Result<bool, CudaError> {
        if code == NOT_READY { Ok(false) } else { self.check(call, code).map(|()| true) }
    }

    /// An event with a time stamp.
    pub(super) fn event(&self) -> Result<Event, CudaError> {
        let mut event: Event = null_mut();
        // SAFETY: writes one handle
        let code = unsafe { (self.cuda.event_create)(&raw mut event, 0) };
        self.check("cuEventCreate", code)?;
        Ok(event)
    }

    /// Records an event in the stream.
    pub(super) fn record(&self, event: Event) -> Result<(), CudaError> {
        // SAFETY: an event of this context and its stream
        self.check("cuEventRecord", unsafe { (self.cuda.event_record)(event, self.stream) })
    }

    /// Whether everything before an event is done.
    pub(super) fn is_past(&self, event: Event) -> Result<bool, CudaError> {
        // SAFETY: an event of this context
        self.ready("cuEventQuery", unsafe { (self.cuda.event_query)(event) })
    }

    /// Microseconds between two events that are past.
    pub(super) fn elapsed_us(&self, begin: Event, end: Event) -> Result<f64, CudaError> {
        let mut ms = 0f32;
        // SAFETY: writes one float; both events are recorded and past
        let code = unsafe { (self.cuda.event_elapsed_time)(&raw mut ms, begin, end) };
        self.check("cuEventElapsedTime", code)?;
        Ok(f64::from(ms) * 1e3)
    }

    /// Captures what `work` puts into the stream into a graph that can be launched again.
    pub(super) fn capture<E: From<CudaError>>(
        &self,
        work: impl FnOnce() -> Result<(), E>,
    ) -> Result<GraphExec, E> {
        let missing =
            || CudaError { call: "cuStreamBeginCapture", code: 801, name: "no CUDA graphs".into() };
        let (Some(begin), Some(end), Some(instantiate), Some(destroy)) = (
            self.cuda.stream_begin_capture,
            self.cuda.stream_end_capture,
            self.cuda.graph_instantiate,
            self.cuda.graph_destroy,
        ) else {
            return Err(missing().into());
        };
        // SAFETY: this device's own stream, not in a capture
        let code = unsafe { begin(self.stream, CAPTURE_THREAD_LOCAL) };
        self.check("cuStreamBeginCapture", code)?;
        let worked = work();
        let mut graph = null_mut();
        // SAFETY: ends the capture begun above, also after a failure inside it
        let code = unsafe { end(self.stream, &raw mut graph) };
        worked?;
        self.check("cuStreamEndCapture", code)?;
        let mut exec: GraphExec = null_mut();
        // SAFETY: the graph of the capture; it is copied, so it can be destroyed at once
        let code = unsafe { instantiate(&raw mut exec, graph, 0) };
        // SAFETY: as above
        unsafe { destroy(graph) };
        self.check("cuGraphInstantiate", code)?;
        Ok(exec)
    }

    /// Launches a captured graph into the stream.
    pub(super) fn launch_graph(&self, graph: GraphExec) -> Result<(), CudaError> {
        let Some(launch) = self.cuda.graph_launch else { return Ok(()) };
        // SAFETY: a live graph of this context
        self.check("cuGraphLaunch", unsafe { launch(graph, self.stream) })
    }

    /// Gives a captured graph back; nothing of it may be running.
    pub(super) fn drop_graph(&self, graph: GraphExec) {
        if let Some(destroy) = self.cuda.graph_exec_destroy {
            // SAFETY: a graph of `capture` that is not running
            unsafe { destroy(graph) };
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: gives back the one reference that `open` took
        unsafe { (self.cuda.primary_ctx_release)(self.ordinal) };
    }
}

/// Text of a C array, up to its terminator.
fn text_of(array: &[c_char]) -> String {
    let bytes: Vec<u8> = array.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
