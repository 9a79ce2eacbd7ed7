//! What coordinator, worker and rank say to each other.

use std::time::Duration;

use ncclctl_findings::evidence::Host;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::counters::HostCounters;
use crate::engine::{
    Batch, BatchTimes, Case, Checked, Connected, Contact, EngineError, Probe, Received, Remains,
    Setup,
};

/// Version of this protocol; both ends must have the same.
pub(crate) const PROTOCOL: u32 = 1;

/// A worker's first frame, before it is trusted.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Join {
    pub(crate) protocol: u32,
    /// Keyed hash over the TLS session's exported value.
    pub(crate) proof: [u8; 32],
}

/// A worker's second frame: who it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// Place in the order of workers that a launcher gave; `None` to take the next.
    pub(crate) index: Option<usize>,
    /// How many workers its launcher started, where it knows.
    pub(crate) world: Option<usize>,
    /// Name to show.
    pub(crate) name: String,
    /// Ranks that it offers to run.
    pub(crate) ranks: usize,
    pub(crate) host: Host,
    pub(crate) version: String,
}

/// Coordinator to worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToWorker {
    /// You are in; say every so often that you are alive.
    Welcome { beat: Duration },
    /// You are not, and why.
    Refused { reason: String },
    /// Start these ranks, each in a fresh process.
    Start { engine: String, setups: Vec<Setup> },
    /// Pass on to every rank of this worker. The step is not read on the way: the contacts of a
    /// thousand ranks would be read a thousand times.
    Ranks { step: Box<RawValue> },
    /// Read the counters of the NICs and processors now.
    Count,
    /// End all ranks.
    Stop,
    /// The trial is over.
    Leave,
    /// The trial was given up.
    Abort { reason: String },
    /// I am alive.
    Beat,
}

/// Worker to coordinator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromWorker {
    /// A rank answered.
    Rank { rank: usize, answer: Answer },
    /// A rank is gone or shows no sign of life.
    Lost { rank: usize, seen: String },
    /// A rank's process wrote a line to its standard output or error.
    Said { rank: usize, line: String },
    /// Counters as of now.
    Counted { counters: Box<HostCounters> },
    /// All ranks have ended.
    Stopped,
    /// This worker was told to end by its own machine.
    Leaving { reason: String },
    /// I am alive.
    Beat,
}

/// One step of an engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    Open {
        engine: String,
        setup: Box<Setup>,
        beat: Duration,
    },
    /// The worker is alive.
    Beat,
    Connect {
        contacts: Vec<Contact>,
    },
    Run {
        batch: Batch,
    },
    Verify {
        case: Case,
    },
    Probe {
        probe: Probe,
    },
    ReduceRate {
        case: Case,
        duration: Duration,
    },
    Finish,
}

/// What a rank answers to a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Open, and what the process takes its world to be.
    Opened {
        contact: Contact,
        pid: u32,
        rank: usize,
        ranks: usize,
        nonce: [u8; 16],
    },
    Connected {
        connected: Connected,
    },
    Ran {
        times: BatchTimes,
    },
    Verified {
        checked: Checked,
    },
    Probed {
        received: Vec<Received>,
    },
    Reduced {
        rate_bps: Option<f64>,
    },
    Finished {
        remains: Box<Remains>,
    },
    Failed {
        error: EngineError,
    },
    /// I am alive.
    Beat,
}
