//! The `nccl` engine: real collectives on real GPUs, through whatever `libnccl.so.2` and driver are
//! there. No MPI, no CUDA runtime, no Python; nothing is opened before the engine is.
//!
//! One thread talks to CUDA and NCCL and may block in them; the rank's main thread waits with a
//! deadline (see [`issuer`]). NCCL's log goes to a file of the worker's, which passes it on
//! ([`follow`]) while this process reads it for evidence ([`journal`]).

use std::time::Duration;

use ncclctl_facts::Root;
use ncclctl_findings::evidence::{GpuRecord, NcclRecord};
use ncclctl_nccl::{Collective, Version};

use crate::engine::{
    Batch, BatchTimes, Case, Checked, Connected, Contact, Engine, EngineError, ErrorKind, Probe,
    Received, Remains, Setup,
};

mod card;
mod comm;
mod config;
mod device;
mod ffi;
pub(crate) mod follow;
mod issuer;
mod journal;
mod kernels;
mod library;
mod nvml;
mod options;
mod probe;
mod sample;
mod symbols;
mod verify;
mod work;

pub(crate) use options::environment;
pub use options::{LogTo, Options, gpus_here};

use card::Card;
use device::Description;
use issuer::{Issuer, Trouble};
use journal::Journal;
use sample::Sampler;
use work::Work;

/// Joining may take this many times as long as any later wait: NCCL loads its kernels, looks at the
/// machine and meets every rank.
const JOINING: u32 = 3;

/// The engine of one rank.
#[derive(Default)]
pub struct Nccl {
    open: Option<Open>,
}

type State = Option<Work>;

struct Open {
    setup: Setup,
    issuer: Issuer<State>,
    journal: Journal,
    sampler: Sampler,
    card: Card,
    description: Description,
    version: Version,
    cards: Vec<Card>,
}

fn own(kind: ErrorKind, message: impl Into<String>) -> EngineError {
    EngineError { message: message.into(), kind, peer: None }
}

impl Nccl {
    /// An engine that has opened nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn opened(&mut self) -> Result<&mut Open, EngineError> {
        self.open.as_mut().ok_or_else(|| own(ErrorKind::Other, "the engine is not open"))
    }
}

impl Open {
    /// Runs a job on the issuing thread; a hang or a failure is told with NCCL's last words.
    fn call<T: Send + 'static>(
        &mut self,
        phase: &str,
        limit: Duration,
        job: impl FnOnce(&mut Work) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let result = self.issuer.call(limit, move |state| match state {
            Some(work) => {
                let done = job(work);
                if done.is_err() {
                    // peers must not wait for a rank that has given up
                    work.abort();
                }
                done
            }
            None => Err(own(ErrorKind::Other, "the GPU was given back")),
        });
        match result {
            Ok(value) => Ok(value),
            Err(Trouble::Failed(mut error)) => {
                let words = self.journal.last_words();
                if error.kind == ErrorKind::NoInterface
                    && let Some(better) = interface_error(&self.setup)
                {
                    error.message = better;
                } else if !error.message.contains("(") || error.kind == ErrorKind::PeerLost {
                    error.message.push_str(&words);
                }
                Err(EngineError { message: format!("{phase}: {}", error.message), ..error })
            }
            Err(Trouble::Hung(age)) => {
                let message = format!(
                    "{phase}: nothing has moved for {:.0} s{}",
                    age.as_secs_f64(),
                    self.journal.last_words()
                );
                Err(own(ErrorKind::Unreachable, message))
            }
        }
    }
}

/// What is wrong with the interface setting, in the words of the `tcp` engine's rules, which are
/// NCCL's own.
fn interface_error(setup: &Setup) -> Option<String> {
    use ncclctl_nccl::ifname;
    let root = Root::live();
    let interfaces = ncclctl_facts::net::interfaces(&root).ok()?;
    let candidates: Vec<ifname::Candidate> = interfaces
        .iter()
        .map(|i| ifname::Candidate {
            name: i.name.clone(),
            running: i.running,
            addresses: i.addresses.iter().map(|a| (a.ip, a.prefix)).collect(),
        })
        .collect();
    let value =
        |name: &str| setup.settings.get(name).map(String::as_str).or_else(|| root.variable(name));
    let request = ifname::Request {
        ifname: value("NCCL_SOCKET_IFNAME"),
        family: value("NCCL_SOCKET_FAMILY"),
        comm_id: value("NCCL_COMM_ID"),
    };
    ifname::choose(request, &candidates).err().map(|error| error.to_string())
}

impl Engine for Nccl {
    fn name(&self) -> &'static str {
        "nccl"
    }

    fn open(&mut self, setup: &Setup) -> Result<Contact, EngineError> {
        let log = setup.settings.get("NCCL_DEBUG_FILE").map(String::as_str);
        // the diagnostics of rank 0 and the version line of old versions go to standard output
        let mut journal = Journal::open(log.into_iter().chain(log.map(|_| "/proc/self/fd/1")));
        let issuer = Issuer::start(|_| None::<Work>);
        let pulse = issuer.pulse();
        let wanted = setup.clone();
        let opened = issuer.call(setup.deadline * JOINING, move |state| {
            let (work, card, description) = work::open(pulse, &wanted, &Root::live())?;
            *state = Some(work);
            Ok((card, description))
        });
        let (card, description) = match opened {
            Ok(opened) => opened,
            Err(Trouble::Failed(mut error)) => {
                if error.kind == ErrorKind::NoInterface
                    && let Some(better) = interface_error(setup)
                {
                    error.message = better;
                }
                return Err(error);
            }
            Err(Trouble::Hung(age)) => {
                let message = format!(
                    "the GPU or its driver does not answer: nothing has moved for {:.0} s{}; look \
                     at dmesg for Xid, and at nvidia-smi",
                    age.as_secs_f64(),
                    journal.last_words()
                );
                return Err(own(ErrorKind::Device, message));
            }
        };
        let bus_id = description.bus_id.clone();
        let sampler = Sampler::start(move || nvml::meter(&bus_id));
        let body = serde_json::to_vec(&card)
            .map_err(|e| own(ErrorKind::Other, format!("contact can not be written: {e}")))?;
        let shown =
            format!("{} [{}], NCCL {} ({})", card.gpu, card.bus_id, card.version, card.library);
        self.open = Some(Open {
            setup: setup.clone(),
            issuer,
            journal,
            sampler,
            version: card.version,
            card,
            description,
            cards: Vec::new(),
        });
        Ok(Contact { body, shown })
    }

    fn connect(&mut self, contacts: &[Contact]) -> Result<Connected, EngineError> {
        let open = self.opened()?;
        let mut cards = Vec::with_capacity(contacts.len());
        for (rank, contact) in contacts.iter().enumerate() {
            let card: Card = serde_json::from_slice(&contact.body).map_err(|e| EngineError {
                message: format!("contact of rank {rank} can not be read: {e}"),
                kind: ErrorKind::Other,
                peer: Some(rank),
            })?;
            cards.push(card);
        }
        card::check(&cards)?;
        let id: [u8; 128] = cards
            .first()
            .and_then(|card| card.id.clone())
            .and_then(|id| id.try_into().ok())
            .ok_or_else(|| own(ErrorKind::Other, "rank 0 gave no communicator id"))?;
        let (limit, ranks) = (open.setup.deadline * JOINING, open.setup.ranks);
        open.call("joining the communicator", limit, move |work| work.join(&id)).map_err(
            |mut error| {
                if error.kind == ErrorKind::Unreachable {
                    error.message = format!(
                        "{}; all {ranks} ranks were started and reachable by the coordinator: look \
                         at the network between them (interface choice, firewall on high ports)",
                        error.message
                    );
                }
                error
            },
        )?;
        open.journal.read();
        open.cards = cards;
        let ifname = open.setup.settings.get("NCCL_SOCKET_IFNAME").map(String::as_str);
        let interfaces = if ranks > 1 { open.journal.interfaces(ifname) } else { Vec::new() };
        let Description { index, name, bus_id, .. } = &open.description;
        Ok(Connected {
            interfaces,
            edges: open.edges(),
            version: Some(open.version.to_string()),
            gpu: Some(format!("{index} [{bus_id}] {name}")),
        })
    }

    fn run(&mut self, batch: &Batch) -> Result<BatchTimes, EngineError> {
        let open = self.opened()?;
        let (batch, limit) = (*batch, open.setup.deadline);
        let what = format!(
            "running {} {}",
            batch.case.collective,
            ncclctl_nccl::size::Short(batch.case.bytes)
        );
        let samples_us = open.call(&what, limit, move |work| work.run(&batch))?;
        open.journal.read();
        let (algorithm, protocol) = open.choice(&batch.case);
        Ok(BatchTimes { samples_us, algorithm, protocol })
    }

    fn verify(&mut self, case: &Case) -> Result<Checked, EngineError> {
        let open = self.opened()?;
        let (case, limit) = (*case, open.setup.deadline);
        let what = format!("checking {}", case.collective);
        let wrong = open.call(&what, limit, move |work| verify::run(work, &case))?;
        Ok(Checked { wrong })
    }

    fn probe(&mut self, probe: &Probe) -> Result<Vec<Received>, EngineError> {
        let open = self.opened()?;
        let bad = probe.pairs.iter().find(|(a, b)| *a.max(b) >= open.setup.ranks);
        if let Some((from, to)) = bad {
            let message = format!("a probe names ranks {from} and {to} of {}", open.setup.ranks);
            return Err(own(ErrorKind::Other, message));
        }
        let (probe, limit) = (probe.clone(), open.setup.deadline);
        open.call("measuring paths", limit, move |work| probe::run(work, &probe))
    }

    fn reduce_rate(&mut self, _: &Case, _: Duration) -> Result<Option<f64>, EngineError> {
        // GPUs reduce many times faster than any wire between them carries
        Ok(None)
    }

    fn finish(&mut self) -> Result<Remains, EngineError> {
        let open = self.opened()?;
        let limit = open.setup.deadline;
        let (copy_bps, memory_bytes) = open.call("leaving", limit, |work| {
            let total = work.device.memory().map_or(0, |(_, total)| total);
            Ok((work.copy_rate()?, total))
        })?;
        open.journal.read();
        let rank = open.setup.rank;
        let said = open.journal.remains();
        let nccl = NcclRecord { rank, library: open.card.library.clone(), ..said };
        let gpu = GpuRecord {
            rank,
            gpu: open.description.bus_id.clone(),
            name: open.description.name.clone(),
            memory_bytes,
            copy_bps,
            shared: open.setup.nccl.share_gpu && open.shares_gpu(),
            ..open.sampler.record()
        };
        Ok(Remains { edges: open.edges(), nccl: Some(nccl), gpu: Some(gpu) })
    }
}

impl Open {
    /// Edges on which this rank sends, by what the log says so far.
    fn edges(&self) -> Vec<ncclctl_findings::evidence::Edge> {
        let nvlinked = self.sampler.nvlinked();
        self.journal.edges(self.setup.rank, &self.cards, &nvlinked)
    }

    /// Whether another rank is on this one's GPU.
    fn shares_gpu(&self) -> bool {
        let mine =
            |card: &&Card| card.machine == self.card.machine && card.bus_id == self.card.bus_id;
        self.cards.iter().filter(mine).count() > 1
    }

    /// What NCCL used for a case.
    fn choice(&self, case: &Case) -> (String, Option<String>) {
        if self.setup.ranks == 1 {
            return ("copy".to_owned(), None);
        }
        let (function, factor) = match case.collective {
            Collective::AllReduce => ("AllReduce", 1),
            Collective::AllGather => ("AllGather", 1),
            Collective::ReduceScatter => ("ReduceScatter", 1),
            Collective::Broadcast => ("Broadcast", 1),
            Collective::Reduce => ("Reduce", 1),
            _ => return ("direct".to_owned(), None),
        };
        let layout = case.collective.layout(case.bytes, case.dtype, self.setup.ranks);
        let bytes = layout.size * factor;
        match self.journal.choice(function, bytes).or_else(|| self.journal.choice("", bytes)) {
            Some((algorithm, protocol)) => (algorithm, Some(protocol)),
            None => ("unknown".to_owned(), None),
        }
    }
}

#[cfg(test)]
mod tests;
