//! The state of the issuing thread: the GPU, NCCL, the communicator, buffers; and the waiting.

use std::time::{Duration, Instant};

use ncclctl_facts::{Root, identity};
use ncclctl_nccl::{Collective, RedOp};

use super::card::Card;
use super::comm::{self, Communicator, NcclError, Place};
use super::device::{self, CudaError, Description, Device};
use super::ffi::{DevicePointer, Event};
use super::issuer::Pulse;
use super::library::{self, Loaded};
use crate::engine::{Batch, Case, EngineError, ErrorKind, Setup};

/// Operations that may be queued before the first of them is waited for. The driver's own queue
/// holds about a thousand launches, and a full one blocks inside the call, where nothing can be seen.
const QUEUED: u32 = 256;
/// How often the network is asked for errors while waiting.
const ASK: Duration = Duration::from_millis(5);
/// Least size of a buffer: what a raw stream runs through in one message.
const STREAM: usize = 32 << 20;
/// Most operations of one graph; more are launches of the same graph.
const GRAPH_OPERATIONS: u32 = 64;

/// An error of either library, or of the engine itself.
#[derive(Debug)]
pub(super) enum WorkError {
    Cuda(CudaError),
    Nccl(NcclError),
    Engine(EngineError),
}

impl From<CudaError> for WorkError {
    fn from(error: CudaError) -> Self {
        Self::Cuda(error)
    }
}

impl From<NcclError> for WorkError {
    fn from(error: NcclError) -> Self {
        Self::Nccl(error)
    }
}

impl From<EngineError> for WorkError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<WorkError> for EngineError {
    fn from(error: WorkError) -> Self {
        let (message, kind) = match error {
            WorkError::Engine(error) => return error,
            WorkError::Cuda(error) => {
                let kind = if error.code == device::OUT_OF_MEMORY {
                    ErrorKind::Resource
                } else {
                    ErrorKind::Device
                };
                (error.to_string(), kind)
            }
            WorkError::Nccl(error) => (explain(&error), kind_of(&error)),
        };
        Self { message, kind, peer: None }
    }
}

fn kind_of(error: &NcclError) -> ErrorKind {
    let last = error.last.to_ascii_lowercase();
    match error.code {
        comm::REMOTE_ERROR => ErrorKind::PeerLost,
        _ if last.contains("no socket interface") || last.contains("no usable interface") => {
            ErrorKind::NoInterface
        }
        _ if last.contains("out of memory") || last.contains("no space left") => {
            ErrorKind::Resource
        }
        _ if last.contains("connection closed by remote peer") => ErrorKind::PeerLost,
        comm::CUDA_ERROR => ErrorKind::Device,
        comm::INVALID_USAGE => ErrorKind::Setting,
        _ => ErrorKind::Other,
    }
}

/// The error with what it means, where NCCL's own text does not say.
fn explain(error: &NcclError) -> String {
    let hint = if error.last.contains("Duplicate GPU detected") {
        "; NCCL takes one rank a GPU: fewer ranks, or --share-gpu, a test mode over sockets"
    } else if error.last.to_ascii_lowercase().contains("no space left")
        || error.last.contains("/dev/shm")
    {
        "; /dev/shm is too small: raise it (docker --shm-size=1g, an emptyDir of medium Memory)"
    } else {
        ""
    };
    format!("{error}{hint}")
}

fn own(kind: ErrorKind, message: impl Into<String>) -> EngineError {
    EngineError { message: message.into(), kind, peer: None }
}

/// Everything that lives on the issuing thread.
pub(super) struct Work {
    pub(super) pulse: Pulse,
    pub(super) device: Device,
    pub(super) nccl: Loaded,
    pub(super) comm: Option<Communicator>,
    pub(super) rank: usize,
    pub(super) ranks: usize,
    send: DevicePointer,
    recv: DevicePointer,
    /// Bytes of each buffer.
    room: usize,
    registered: bool,
    graph: bool,
    events: Vec<Event>,
}

/// Loads the libraries, takes the GPU, makes the buffers.
pub(super) fn open(
    pulse: Pulse,
    setup: &Setup,
    root: &Root,
) -> Result<(Work, Card, Description), EngineError> {
    let options = &setup.nccl;
    let missing = |error: library::NotFound| own(ErrorKind::Device, error.to_string());
    let driver = library::driver(root).map_err(missing)?;
    let gpus = device::count(&driver).map_err(WorkError::from)?;
    let wanted = setup.gpu.unwrap_or(0);
    if gpus == 0 {
        return Err(own(
            ErrorKind::Device,
            "no GPU is visible: look at CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES and the \
             container's devices",
        ));
    }
    if wanted >= gpus && !options.share_gpu {
        return Err(own(
            ErrorKind::Setting,
            format!(
                "needs a GPU of its own, and this host shows {gpus}: fewer ranks, or --share-gpu, \
                 a test mode in which ranks on one GPU talk over sockets"
            ),
        ));
    }
    let nccl = library::nccl(options.library.as_deref(), root).map_err(missing)?;
    pulse.beat();
    let device = Device::open(driver, wanted % gpus).map_err(WorkError::from)?;
    pulse.beat();
    let id = if setup.rank == 0 {
        Some(comm::unique_id(&nccl.functions).map_err(WorkError::from)?.to_vec())
    } else {
        None
    };
    let description = device.description.clone();
    let card = Card {
        machine: identity::boot_id(root),
        netns: identity::network_namespace(root),
        version: nccl.version,
        library: nccl.path.clone(),
        bus_id: description.bus_id.clone(),
        gpu: description.name.clone(),
        shared: options.share_gpu,
        id,
    };
    let mut work = Work {
        pulse,
        device,
        nccl,
        comm: None,
        rank: setup.rank,
        ranks: setup.ranks,
        send: 0,
        recv: 0,
        room: 0,
        registered: options.registered,
        graph: options.graph,
        events: Vec::new(),
    };
    work.make_room(setup.largest as usize)?;
    Ok((work, card, description))
}

impl Work {
    /// Makes both buffers, and names what is missing where they do not fit.
    fn make_room(&mut self, largest: usize) -> Result<(), EngineError> {
        // whole words for the poison, and a block more for what does not divide by the ranks
        let room = (largest.max(STREAM) + 4096).next_multiple_of(256);
        let (free, total) = self.device.memory().map_err(WorkError::from)?;
        let mut made = [0; 2];
        for slot in &mut made {
            let got = match (self.registered, comm::allocate) {
                (true, allocate) => match allocate(&self.nccl.functions, room) {
                    Some(got) => got.map_err(WorkError::from),
                    None => self.device.allocate(room).map_err(WorkError::from),
                },
                (false, _) => self.device.allocate(room).map_err(WorkError::from),
            };
            *slot = got.map_err(|error| {
                let short = ncclctl_nccl::size::Short;
                let error = EngineError::from(error);
                own(
                    ErrorKind::Resource,
                    format!(
                        "two buffers of {} do not fit: {} of {} MiB of GPU memory are free \
                         ({error}); smaller sizes (-e), or end what else uses the GPU",
                        short(largest as u64),
                        free >> 20,
                        total >> 20
                    ),
                )
            })?;
        }
        [self.send, self.recv] = made;
        self.room = room;
        self.device.set(self.send, 0, room / 4).map_err(WorkError::from)?;
        self.device.set(self.recv, 0, room / 4).map_err(WorkError::from)?;
        Ok(())
    }

    /// Joins the communicator and moves the first bytes, so that connections are made.
    pub(super) fn join(&mut self, id: &[u8; 128]) -> Result<(), EngineError> {
        let joined =
            Communicator::join(self.nccl.functions, self.nccl.version, id, self.rank, self.ranks);
        self.comm = Some(joined.map_err(WorkError::from)?);
        self.pulse.beat();
        if self.registered {
            let comm = self.comm()?;
            for buffer in [self.send, self.recv] {
                comm.register(buffer, self.room).map_err(WorkError::from)?;
            }
        }
        self.barrier()?;
        self.wait()?;
        Ok(())
    }

    pub(super) fn comm(&self) -> Result<&Communicator, EngineError> {
        self.comm.as_ref().ok_or_else(|| own(ErrorKind::Other, "not connected"))
    }

    /// Puts a barrier into the stream: nobody's later work begins before everybody has come.
    fn barrier(&self) -> Result<(), EngineError> {
        let case = Case {
            collective: Collective::AllReduce,
            dtype: ncclctl_nccl::DataType::Float32,
            op: RedOp::Sum,
            root: 0,
            bytes: 4,
            in_place: true,
        };
        let end = self.recv + self.room as u64 - 256;
        let place = Place { send: end, recv: end, count: 1, stream: self.device.stream };
        self.comm()?.issue(&case, &place).map_err(WorkError::from)?;
        Ok(())
    }

    /// Where a case's data lies.
    pub(super) fn place(&self, case: &Case) -> Result<(Place, usize, usize), EngineError> {
        if case.collective.has_root() && case.root >= self.ranks {
            let message = format!("root {} of {} ranks", case.root, self.ranks);
            return Err(own(ErrorKind::Setting, message));
        }
        if let Some(lacks) = comm::lacks(self.nccl.version, case.dtype) {
            return Err(own(ErrorKind::Setting, lacks));
        }
        let layout = case.collective.layout(case.bytes, case.dtype, self.ranks);
        let width = case.dtype.size();
        let (send, recv) = (layout.send * width, layout.recv * width);
        if send.max(recv) + 256 > self.room {
            let message = format!("{} bytes are more than was planned for", send.max(recv));
            return Err(own(ErrorKind::Other, message));
        }
        let block = (self.rank * layout.count * width) as u64;
        let (send_at, recv_at) = match (case.in_place, case.collective) {
            (false, _) => (self.send, self.recv),
            (true, Collective::AllGather | Collective::Gather) => (self.recv + block, self.recv),
            (true, Collective::ReduceScatter | Collective::Scatter) => {
                (self.recv, self.recv + block)
            }
            (true, _) => (self.recv, self.recv),
        };
        let stream = self.device.stream;
        Ok((Place { send: send_at, recv: recv_at, count: layout.count, stream }, send, recv))
    }

    /// Both buffers whole, for work that lays them out itself: send, receive, bytes of each.
    pub(super) fn buffers(&self) -> (DevicePointer, DevicePointer, usize) {
        (self.send, self.recv, self.room - 256)
    }

    /// The receive buffer and its bytes.
    pub(super) fn poison(&self) -> Result<(), EngineError> {
        self.device.set(self.recv, 0xa5a5_a5a5, (self.room - 256) / 4).map_err(WorkError::from)?;
        Ok(())
    }

    /// Waits until everything in the stream is done.
    pub(super) fn wait(&self) -> Result<(), EngineError> {
        self.wait_for(|device| device.is_idle())
    }

    fn wait_for(
        &self,
        done: impl Fn(&Device) -> Result<bool, CudaError>,
    ) -> Result<(), EngineError> {
        let mut asked = Instant::now();
        while !done(&self.device).map_err(WorkError::from)? {
            if asked.elapsed() >= ASK {
                asked = Instant::now();
                if let Some(comm) = &self.comm {
                    comm.async_error().map_err(WorkError::from)?;
                }
            }
            std::thread::yield_now();
        }
        self.pulse.beat();
        Ok(())
    }

    fn event(&mut self, index: usize) -> Result<Event, EngineError> {
        while self.events.len() <= index {
            self.events.push(self.device.event().map_err(WorkError::from)?);
        }
        Ok(self.events[index])
    }

    /// Runs a batch: all operations go into the stream back to back, events between the samples take
    /// the GPU's own time. Returns microseconds per operation of each sample.
    pub(super) fn run(&mut self, batch: &Batch) -> Result<Vec<f64>, EngineError> {
        let (place, ..) = self.place(&batch.case)?;
        let operations = batch.operations.max(1);
        let samples = batch.samples as usize;
        for index in 0..=samples {
            self.event(index)?;
        }
        let graph = if self.graph && place.count > 0 {
            let each = operations.min(GRAPH_OPERATIONS);
            Some((self.capture(&batch.case, &place, each)?, each))
        } else {
            None
        };
        let launches = match graph {
            Some((_, each)) => operations.div_ceil(each),
            None => operations,
        };
        // two marks, used in turn, keep the queue short without ever letting it run dry
        let marks = [self.event(samples + 1)?, self.event(samples + 2)?];
        let (mut queued, mut marked) = (0, 0usize);
        self.barrier()?;
        self.device.record(self.events[0]).map_err(WorkError::from)?;
        for sample in 0..samples {
            for _ in 0..launches {
                match &graph {
                    Some((exec, _)) => {
                        self.device.launch_graph(*exec).map_err(WorkError::from)?;
                    }
                    None if place.count > 0 => {
                        self.comm()?.issue(&batch.case, &place).map_err(WorkError::from)?;
                    }
                    None => {}
                }
                queued += 1;
                if queued % QUEUED == 0 {
                    let mark = marks[marked % 2];
                    if marked >= 1 {
                        let before = marks[(marked + 1) % 2];
                        self.wait_for(|device| device.is_past(before))?;
                    }
                    self.device.record(mark).map_err(WorkError::from)?;
                    marked += 1;
                }
            }
            self.device.record(self.events[sample + 1]).map_err(WorkError::from)?;
        }
        // one wait for each sample: each one is a sign that something moves
        for sample in 1..=samples {
            let event = self.events[sample];
            self.wait_for(|device| device.is_past(event))?;
        }
        let done = match graph {
            Some((exec, each)) => {
                self.device.drop_graph(exec);
                each * launches
            }
            None => operations,
        };
        let mut times = Vec::with_capacity(samples);
        for pair in self.events[..=samples].windows(2) {
            let time = self.device.elapsed_us(pair[0], pair[1]).map_err(WorkError::from)?;
            times.push(time / f64::from(done));
        }
        Ok(times)
    }

    fn capture(
        &self,
        case: &Case,
        place: &Place,
        operations: u32,
    ) -> Result<super::ffi::GraphExec, EngineError> {
        // connections that are made at first use can not be made inside a capture
        self.comm()?.issue(case, place).map_err(WorkError::from)?;
        self.wait()?;
        let captured = self.device.capture(|| {
            for _ in 0..operations {
                self.comm()?.issue(case, place)?;
            }
            Ok::<(), WorkError>(())
        });
        Ok(captured?)
    }

    /// Copies inside the GPU's memory for a moment: bytes read and written per second.
    pub(super) fn copy_rate(&mut self) -> Result<Option<f64>, EngineError> {
        let case = Case {
            collective: Collective::Broadcast,
            dtype: ncclctl_nccl::DataType::Uint8,
            op: RedOp::Sum,
            root: 0,
            bytes: (self.room - 4096).min(1 << 30) as u64,
            in_place: false,
        };
        if self.ranks != 1 || case.bytes < 1 << 20 {
            return Ok(None);
        }
        let times = self.run(&Batch { case, samples: 3, operations: 5 })?;
        let best = times.into_iter().fold(f64::INFINITY, f64::min);
        Ok((best > 0.0).then(|| 2.0 * case.bytes as f64 / (best * 1e-6)))
    }

    /// Gives the communicator up, so that nobody waits for this rank.
    pub(super) fn abort(&mut self) {
        if let Some(mut comm) = self.comm.take() {
            comm.abort();
        }
    }
}
