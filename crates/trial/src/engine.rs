//! The seam between a trial and what moves its bytes.
//!
//! An engine lives in one rank's process and is driven step by step by the coordinator:
//! [`Engine::open`] → every rank's [`Contact`] goes to every other → [`Engine::connect`] → any
//! number of [`Engine::probe`], [`Engine::reduce_rate`], [`Engine::run`], [`Engine::verify`].
//! Each step is entered by all ranks (probes: by those named) and may block on peers; a rank that
//! must be given up is killed with its process, so an engine needs no cancellation of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use ncclctl_findings::evidence::{ChosenInterface, Edge, GpuRecord, NcclRecord};
use ncclctl_nccl::{Collective, DataType, RedOp};
use serde::{Deserialize, Serialize};

/// What a rank must know before it can open its engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// This rank.
    pub rank: usize,
    /// Ranks in the trial.
    pub ranks: usize,
    /// Secret of this trial: a data connection that does not carry it is refused.
    pub nonce: [u8; 16],
    /// NCCL settings in force for this rank, by name (also set in the process environment).
    pub settings: BTreeMap<String, String>,
    /// Largest buffer that any step will use, bytes.
    pub largest: u64,
    /// Index of the GPU, for engines that use one.
    pub gpu: Option<u32>,
    /// How long any single wait on a peer may take.
    pub deadline: Duration,
    /// What the `nccl` engine is to do; the others do not look at it.
    #[serde(default)]
    pub nccl: crate::nccl::Options,
}

/// What peers must know to reach a rank. Opaque to everyone but the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    /// The engine's own bytes.
    #[serde(with = "crate::frame::hex")]
    pub body: Vec<u8>,
    /// For messages: where this rank listens or what it is, like `10.0.0.3:40123 (eth0)`.
    pub shown: String,
}

/// What a rank knows once it is connected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connected {
    /// Interfaces chosen, in order of use, each with the rule that chose it.
    pub interfaces: Vec<ChosenInterface>,
    /// Edges on which this rank sends.
    pub edges: Vec<Edge>,
    /// Library version, where there is a library.
    pub version: Option<String>,
    /// GPU, where there is one.
    pub gpu: Option<String>,
}

/// One collective at one size: a line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Collective.
    pub collective: Collective,
    /// Element type.
    pub dtype: DataType,
    /// Reduction; ignored where the collective does not reduce.
    pub op: RedOp,
    /// Root; ignored where the collective has none.
    pub root: usize,
    /// Requested size in bytes (see `Collective::layout`).
    pub bytes: u64,
    /// Send and receive buffer are one.
    pub in_place: bool,
}

/// A run of one case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// What to run.
    pub case: Case,
    /// Samples to take.
    pub samples: u32,
    /// Operations per sample, timed together.
    pub operations: u32,
}

/// What a rank measured in a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchTimes {
    /// Microseconds per operation, one figure a sample. All ranks start a batch together (the
    /// engine's own barrier, not counted).
    pub samples_us: Vec<f64>,
    /// Algorithm used, like `ring`.
    pub algorithm: String,
    /// Protocol used, where the engine has such a thing.
    pub protocol: Option<String>,
}

/// Result of a checked operation on one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Elements of this rank's result that are outside the tolerance.
    pub wrong: u64,
}

/// Raw streams, no collective involved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Directed pairs that stream at the same time. A rank may stand in several.
    pub pairs: Vec<(usize, usize)>,
    /// How long to stream.
    pub duration: Duration,
}

/// What one rank received in a probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// Sender.
    pub from: usize,
    /// Payload bytes per second, counted over the part in which all streams were running.
    pub rate_bps: f64,
    /// Seconds counted.
    pub seconds: f64,
    /// Round trip of 8 bytes on the idle connection just before, microseconds.
    pub round_trip_us: Option<f64>,
}

/// What a rank tells when everything is measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Remains {
    /// Edges on which this rank sends, where more is known than at the start; else empty.
    pub edges: Vec<Edge>,
    /// What NCCL itself said.
    pub nccl: Option<NcclRecord>,
    /// What was seen of the GPU.
    pub gpu: Option<GpuRecord>,
}

/// Why a step failed. `peer` names who is to blame as far as this rank can tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct EngineError {
    /// What failed and what was seen, as a fragment that fits after `rank 3: `.
    pub message: String,
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// The other rank concerned.
    pub peer: Option<usize>,
}

/// Kinds of engine failure that the coordinator and the rules tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A setting can not be followed: bad input by the user.
    Setting,
    /// No interface matches; the message says what would.
    NoInterface,
    /// A peer could not be reached: refused, no route, timed out.
    Unreachable,
    /// A connected peer went away or stopped answering.
    PeerLost,
    /// A library, device or driver is missing or failed.
    Device,
    /// Memory, descriptors or another resource ran out.
    Resource,
    /// Everything else.
    Other,
}

/// Moves bytes between ranks.
pub trait Engine {
    /// Name as in `--engine`.
    fn name(&self) -> &'static str;

    /// Opens what this rank needs and says how peers reach it.
    fn open(&mut self, setup: &Setup) -> Result<Contact, EngineError>;

    /// Connects to every peer; `contacts[r]` is rank r's.
    fn connect(&mut self, contacts: &[Contact]) -> Result<Connected, EngineError>;

    /// Runs a batch and times it.
    fn run(&mut self, batch: &Batch) -> Result<BatchTimes, EngineError>;

    /// Runs the case once on seeded data and counts wrong elements.
    fn verify(&mut self, case: &Case) -> Result<Checked, EngineError>;

    /// Streams raw data over the named pairs. Ranks that are in no pair return at once.
    fn probe(&mut self, probe: &Probe) -> Result<Vec<Received>, EngineError>;

    /// Reduces buffers of the case's type for about `duration` without any network and returns
    /// bytes of result per second; `None` where the engine's reduction can not be told apart.
    fn reduce_rate(&mut self, case: &Case, duration: Duration) -> Result<Option<f64>, EngineError>;

    /// Tells what is left to tell once everything is measured.
    fn finish(&mut self) -> Result<Remains, EngineError> {
        Ok(Remains::default())
    }
}

/// An engine's name as in `--engine`, and how to make one.
pub type Named = (&'static str, fn() -> Box<dyn Engine>);

/// Every engine, in the order in which `auto` tries them.
pub const ENGINES: &[Named] = &[
    ("nccl", || Box::new(crate::nccl::Nccl::new())),
    ("tcp", || Box::new(crate::tcp::Tcp::new())),
];

/// A fresh engine of that name.
pub fn by_name(name: &str) -> Result<Box<dyn Engine>, EngineError> {
    ENGINES.iter().find(|(known, _)| *known == name).map(|(_, make)| make()).ok_or_else(|| {
        let known: Vec<&str> = ENGINES.iter().map(|(name, _)| *name).collect();
        EngineError {
            message: format!("no engine `{name}`; there are: {}", known.join(", ")),
            kind: ErrorKind::Setting,
            peer: None,
        }
    })
}
