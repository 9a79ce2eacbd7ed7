//! The `tcp` engine: collectives over CPU buffers and plain sockets, by NCCL's own socket rules.
//!
//! Every thread of a rank (`NCCL_SOCKET_NTHREADS`) owns sockets to its peers and a share of each
//! buffer, and runs the collective on that share by itself: threads never wait for each other
//! inside an operation.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use ncclctl_facts::net::{self, Interface};
use ncclctl_facts::{Root, identity};
use ncclctl_findings::evidence::{ChosenInterface, Edge, Transport};
use ncclctl_nccl::ifname;

use crate::engine::{
    Batch, BatchTimes, Case, Checked, Connected, Contact, Engine, EngineError, ErrorKind, Probe,
    Received, Setup,
};

mod barrier;
mod block;
mod buffers;
mod chain;
pub(crate) mod check;
mod collective;
mod doubling;
mod error;
#[cfg(any(test, feature = "fault-injection"))]
mod fault;
mod flow;
mod hello;
mod job;
pub(crate) mod kernel;
mod link;
mod listener;
mod memory;
mod mesh;
mod pairwise;
mod probe;
mod ring;
mod settings;
mod tree;
mod verify;
mod wait;
mod wires;

use job::{Algorithm, Job, part};
use kernel::{Left, Reduction};
use listener::Listener;
use memory::Memory;
use mesh::{Card, Listens, Mesh};
use settings::Settings;
use wait::Patience;
use wires::{Edges, Wires};

/// Bytes that a raw stream runs through, so that it is not all cache.
const STREAM: usize = 8 << 20;
/// Looks at the sockets before a rank sleeps, where it has a processor of its own.
const LOOKS_ALONE: u32 = 4000;
/// The same where ranks share processors.
const LOOKS_SHARED: u32 = 200;
/// Looks inside a long stream, alone and shared: a rank that looks too long uses up its share of
/// the processor before the data is there.
const LOOKS_STREAMING: (u32, u32) = (500, 10);

/// Engine of one rank.
#[derive(Debug, Default)]
pub struct Tcp {
    /// Interfaces to choose from; `None` asks the kernel.
    interfaces: Option<Vec<Interface>>,
    open: Option<Open>,
    /// Rank whose results get a flipped bit.
    #[cfg(any(test, feature = "fault-injection"))]
    flips: Option<usize>,
}

#[derive(Debug)]
struct Open {
    rank: usize,
    ranks: usize,
    deadline: Duration,
    chosen: Vec<ifname::Choice>,
    /// Index and name of every interface.
    devices: Vec<(u32, String)>,
    mesh: Mesh,
    /// Bytes of a ring's block.
    block: usize,
    wires: Vec<Wires>,
    memories: Vec<Memory>,
}

impl Tcp {
    /// An engine that chooses among the interfaces of its network namespace.
    pub fn new() -> Self {
        Self::default()
    }

    /// An engine that chooses among the given interfaces.
    pub fn with_interfaces(interfaces: Vec<Interface>) -> Self {
        Self { interfaces: Some(interfaces), ..Self::default() }
    }

    fn opened(&mut self) -> Result<&mut Open, EngineError> {
        self.open.as_mut().ok_or_else(|| error::own(ErrorKind::Other, "the engine is not open"))
    }
}

/// Lets this process open as many sockets as it may: an all-to-all needs two a peer and more.
fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // where it is refused the old limit stays, and a socket too many says so
    let _ = setrlimit(Resource::Nofile, limit);
}

fn candidates(interfaces: &[Interface]) -> Vec<ifname::Candidate> {
    interfaces
        .iter()
        .map(|i| ifname::Candidate {
            name: i.name.clone(),
            running: i.running,
            addresses: i.addresses.iter().map(|a| (a.ip, a.prefix)).collect(),
        })
        .collect()
}

impl Engine for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn open(&mut self, setup: &Setup) -> Result<Contact, EngineError> {
        let root = Root::live();
        #[cfg(feature = "fault-injection")]
        {
            self.flips = fault::flipping_rank(root.variable("NCCLCTL_FAULT"));
        }
        let interfaces = match &self.interfaces {
            Some(given) => given.clone(),
            None => net::interfaces(&root).map_err(|e| {
                error::own(ErrorKind::Resource, format!("can not list interfaces: {e}"))
            })?,
        };
        let setting = |name: &str| setup.settings.get(name).map(String::as_str);
        let request = ifname::Request {
            ifname: setting("NCCL_SOCKET_IFNAME"),
            family: setting("NCCL_SOCKET_FAMILY"),
            comm_id: setting("NCCL_COMM_ID"),
        };
        let chosen = ifname::choose(request, &candidates(&interfaces))
            .map_err(|e| error::own(ErrorKind::NoInterface, e.to_string()))?;
        let find = |name: &str| interfaces.iter().find(|i| i.name == name);
        let drivers: Vec<&str> =
            chosen.iter().filter_map(|c| find(&c.name).and_then(|i| i.driver.as_deref())).collect();
        let settings = Settings::read(&setup.settings, &drivers);
        raise_descriptors();
        let scopes: Vec<u32> =
            chosen.iter().map(|c| find(&c.name).map_or(0, |i| i.index)).collect();
        let addresses: Vec<(IpAddr, u32)> =
            chosen.iter().zip(&scopes).map(|(c, scope)| (c.address, *scope)).collect();
        let listener = Listener::start(&addresses, setup.nonce, setup.rank as u32)
            .map_err(|e| error::own(ErrorKind::Resource, format!("can not listen: {e}")))?;
        let listens: Vec<Listens> = chosen
            .iter()
            .zip(&listener.addresses)
            .map(|(c, address)| Listens { interface: c.name.clone(), address: *address })
            .collect();
        let shown: Vec<String> =
            listens.iter().map(|l| format!("{} ({})", l.address, l.interface)).collect();
        let card = Card {
            machine: identity::boot_id(&root),
            listens,
            threads: settings.threads,
            sockets: settings.sockets,
        };
        let body = serde_json::to_vec(&card).map_err(|e| {
            error::own(ErrorKind::Other, format!("contact can not be written: {e}"))
        })?;
        let mut own: Vec<IpAddr> =
            interfaces.iter().flat_map(|i| i.addresses.iter().map(|a| a.ip)).collect();
        own.push(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
        let mesh = Mesh {
            rank: setup.rank,
            nonce: setup.nonce,
            deadline: setup.deadline,
            settings,
            listener,
            scopes,
            own,
            cards: Vec::new(),
        };
        self.open = Some(Open {
            rank: setup.rank,
            ranks: setup.ranks,
            deadline: setup.deadline,
            chosen,
            devices: interfaces.iter().map(|i| (i.index, i.name.clone())).collect(),
            mesh,
            block: block::LOOPBACK,
            wires: Vec::new(),
            memories: Vec::new(),
        });
        Ok(Contact { body, shown: shown.join(", ") })
    }

    fn connect(&mut self, contacts: &[Contact]) -> Result<Connected, EngineError> {
        self.opened()?.connect(contacts)
    }

    fn run(&mut self, batch: &Batch) -> Result<BatchTimes, EngineError> {
        self.opened()?.run(batch)
    }

    fn verify(&mut self, case: &Case) -> Result<Checked, EngineError> {
        #[cfg(any(test, feature = "fault-injection"))]
        let flips = self.flips;
        let open = self.opened()?;
        let algorithm = open.prepare(case)?;
        let wrong = open.each_thread(case, |job, wires, memory| {
            verify::run(job, case.in_place, algorithm, wires, memory)?;
            #[cfg(any(test, feature = "fault-injection"))]
            if flips == Some(job.rank) {
                fault::flip(job, case.in_place, &mut memory.recv);
            }
            Ok(verify::count_wrong(job, case.in_place, memory))
        })?;
        Ok(Checked { wrong: wrong.into_iter().sum() })
    }

    fn probe(&mut self, probe: &Probe) -> Result<Vec<Received>, EngineError> {
        let open = self.opened()?;
        let bad = probe.pairs.iter().find(|(a, b)| *a.max(b) >= open.ranks);
        if let Some((from, to)) = bad {
            let message = format!("a probe names ranks {from} and {to} of {}", open.ranks);
            return Err(error::own(ErrorKind::Other, message));
        }
        let edges = probe::edges(open.rank, probe);
        if edges == Edges::default() {
            return Ok(Vec::new());
        }
        open.mesh.ensure(&mut open.wires, &edges)?;
        let rank = open.rank;
        let streams = run_threads(&mut open.wires, &mut open.memories, |_, wires, memory| {
            let (send, recv) = memory.streams(STREAM);
            probe::run(rank, probe, wires, send, recv)
        })?;
        Ok(merge(streams))
    }

    fn reduce_rate(&mut self, case: &Case, duration: Duration) -> Result<Option<f64>, EngineError> {
        let open = self.opened()?;
        let reduction = Reduction { dtype: case.dtype, op: case.op, ranks: open.ranks };
        let bytes = (case.bytes as usize).clamp(1 << 16, 64 << 20) / open.wires.len().max(1);
        let rates = run_threads(&mut open.wires, &mut open.memories, |_, _, memory| {
            Ok(memory.reduce_rate(reduction, bytes, duration))
        })?;
        Ok(Some(rates.into_iter().sum()))
    }
}

/// One figure a sender: the threads' streams together.
fn merge(streams: Vec<Vec<Received>>) -> Vec<Received> {
    let mut merged: Vec<Received> = Vec::new();
    for received in streams.into_iter().flatten() {
        match merged.iter_mut().find(|m| m.from == received.from) {
            Some(m) => {
                m.rate_bps += received.rate_bps;
                m.seconds = m.seconds.min(received.seconds);
                m.round_trip_us = match (m.round_trip_us, received.round_trip_us) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
            None => merged.push(received),
        }
    }
    merged
}

/// Runs `work` once for each thread's links and memory, and collects what they return.
fn run_threads<T: Send>(
    wires: &mut [Wires],
    memories: &mut [Memory],
    work: impl Fn(usize, &mut Wires, &mut Memory) -> Result<T, EngineError> + Sync,
) -> Result<Vec<T>, EngineError> {
    if let ([wires], [memory]) = (&mut *wires, &mut *memories) {
        return Ok(vec![work(0, wires, memory)?]);
    }
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = wires
            .iter_mut()
            .zip(memories)
            .enumerate()
            .map(|(i, (wires, memory))| scope.spawn(move || work(i, wires, memory)))
            .collect();
        threads
            .into_iter()
            .map(|t| {
                t.join().unwrap_or_else(|_| {
                    Err(error::own(ErrorKind::Other, "a thread of the engine panicked"))
                })
            })
            .collect()
    })
}

impl Open {
    fn connect(&mut self, contacts: &[Contact]) -> Result<Connected, EngineError> {
        if contacts.len() != self.ranks {
            let message = format!("{} contacts for {} ranks", contacts.len(), self.ranks);
            return Err(error::own(ErrorKind::Other, message));
        }
        let mut cards = Vec::with_capacity(contacts.len());
        for (rank, contact) in contacts.iter().enumerate() {
            let card: Card = serde_json::from_slice(&contact.body).map_err(|e| EngineError {
                message: format!("contact of rank {rank} can not be read: {e}"),
                kind: ErrorKind::Other,
                peer: Some(rank),
            })?;
            cards.push(card);
        }
        let settings = self.mesh.settings;
        let differs = cards
            .iter()
            .position(|c| (c.threads, c.sockets) != (settings.threads, settings.sockets));
        if let Some(rank) = differs {
            let c = &cards[rank];
            return Err(EngineError {
                message: format!(
                    "rank {rank} has {} threads × {} sockets, this rank {} × {}: \
                     NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD must be equal on all ranks",
                    c.threads, c.sockets, settings.threads, settings.sockets
                ),
                kind: ErrorKind::Setting,
                peer: Some(rank),
            });
        }
        let here = cards.iter().filter(|c| c.machine == cards[self.rank].machine).count();
        let loopback =
            cards.iter().all(|c| c.listens.iter().all(|l| self.mesh.own.contains(&l.address.ip())));
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let alone = here * settings.threads <= cpus;
        let patience = Patience {
            looks: if alone { LOOKS_ALONE } else { LOOKS_SHARED },
            looks_streaming: if alone { LOOKS_STREAMING.0 } else { LOOKS_STREAMING.1 },
            deadline: self.deadline,
        };
        self.mesh.cards = cards;
        self.wires = (0..settings.threads).map(|_| Wires::new(self.ranks, patience)).collect();
        self.memories = (0..settings.threads).map(|_| Memory::default()).collect();

        let mut edges = barrier::edges(self.rank, self.ranks);
        if self.ranks > 1 {
            edges.out.push((self.rank + 1) % self.ranks);
            edges.input.push((self.rank + self.ranks - 1) % self.ranks);
        }
        self.mesh.ensure(&mut self.wires, &edges)?;
        if !loopback && self.ranks > 1 {
            self.block = block::agree(self.rank, self.ranks, &mut self.wires[0])?;
        }
        Ok(Connected {
            interfaces: self
                .chosen
                .iter()
                .map(|c| ChosenInterface {
                    name: c.name.clone(),
                    address: c.address.to_string(),
                    rule: c.rule.clone(),
                })
                .collect(),
            edges: self.ring_edge().into_iter().collect(),
            version: None,
            gpu: None,
        })
    }

    /// The edge to the next rank, as it was made.
    fn ring_edge(&self) -> Option<Edge> {
        let next = (self.rank + 1) % self.ranks;
        let link = self.wires.first()?.out.get(next)?.as_ref()?;
        let socket = link.sockets().first()?;
        let device = net::route::to(socket.peer_addr().ok()?.ip()).ok().map(|r| r.device);
        let nic = device
            .and_then(|index| self.devices.iter().find(|(i, _)| *i == index))
            .map(|(_, name)| name.clone());
        Some(Edge {
            from: self.rank,
            to: next,
            transport: Transport::Socket,
            gdr: None,
            nic,
            connections: (link.width() * self.wires.len()) as u32,
        })
    }

    /// Thread `thread`'s share of a case.
    fn job(&self, case: &Case, thread: usize) -> Job {
        let layout = case.collective.layout(case.bytes, case.dtype, self.ranks);
        Job {
            rank: self.rank,
            ranks: self.ranks,
            collective: case.collective,
            dtype: case.dtype,
            op: case.op,
            root: case.root,
            count: part(layout.count, self.wires.len().max(1), thread).len(),
            size: layout.size,
            block: self.block,
        }
    }

    /// Chooses the algorithm and makes the links and the memory that it needs.
    fn prepare(&mut self, case: &Case) -> Result<&'static Algorithm, EngineError> {
        if case.collective.has_root() && case.root >= self.ranks {
            let message = format!("root {} of {} ranks", case.root, self.ranks);
            return Err(error::own(ErrorKind::Setting, message));
        }
        let job = self.job(case, 0);
        let algorithm = collective::choose(&job);
        self.mesh.ensure(&mut self.wires, &(algorithm.edges)(&job))?;
        for thread in 0..self.memories.len() {
            let job = self.job(case, thread);
            self.memories[thread].prepare(&job, case.in_place);
        }
        Ok(algorithm)
    }

    fn each_thread<T: Send>(
        &mut self,
        case: &Case,
        work: impl Fn(&Job, &mut Wires, &mut Memory) -> Result<T, EngineError> + Sync,
    ) -> Result<Vec<T>, EngineError> {
        let jobs: Vec<Job> = (0..self.wires.len()).map(|t| self.job(case, t)).collect();
        run_threads(&mut self.wires, &mut self.memories, |i, wires, memory| {
            work(&jobs[i], wires, memory)
        })
    }

    fn run(&mut self, batch: &Batch) -> Result<BatchTimes, EngineError> {
        let case = &batch.case;
        let algorithm = self.prepare(case)?;
        let operations = batch.operations.max(1);
        let mut samples_us = Vec::with_capacity(batch.samples as usize);
        if let Some(wires) = self.wires.first_mut() {
            barrier::wait(self.rank, self.ranks, wires)?;
        }
        for _ in 0..batch.samples {
            let begin = Instant::now();
            self.each_thread(case, |job, wires, memory| {
                let mut buffers = memory.buffers(job, case.in_place);
                for _ in 0..operations {
                    if job.count > 0 {
                        (algorithm.run)(job, wires, &mut buffers)?;
                    }
                }
                Ok(())
            })?;
            samples_us.push(begin.elapsed().as_secs_f64() * 1e6 / f64::from(operations));
        }
        Ok(BatchTimes { samples_us, algorithm: algorithm.name.to_owned(), protocol: None })
    }
}

impl Memory {
    /// Memory to stream from and into.
    fn streams(&mut self, bytes: usize) -> (&mut [u8], &mut [u8]) {
        memory::grow(&mut self.send, bytes);
        memory::grow(&mut self.recv, bytes);
        (&mut self.send[..bytes], &mut self.recv[..bytes])
    }

    /// Reduces as an operation does: what was just read with what is in memory.
    fn reduce_rate(&mut self, reduction: Reduction, bytes: usize, duration: Duration) -> f64 {
        let bytes = bytes / flow::READ.min(bytes) * flow::READ.min(bytes);
        let chunk = flow::READ.min(bytes);
        let scratch = vec![1u8; chunk];
        let (send, recv) = self.streams(bytes);
        let (mut done, begin) = (0u64, Instant::now());
        while begin.elapsed() < duration {
            for (dst, left) in recv.chunks_exact_mut(chunk).zip(send.chunks_exact(chunk)) {
                reduction.apply(dst, &Left::Buffer(left), &scratch, true);
                done += chunk as u64;
            }
        }
        done as f64 / begin.elapsed().as_secs_f64()
    }
}

#[cfg(test)]
mod tests;
