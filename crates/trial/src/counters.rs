//! Counters of one host at one moment, as a worker reads them.

use ncclctl_facts::{counters, cpu};
use serde::{Deserialize, Serialize};

/// NICs, TCP and processors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct HostCounters {
    /// Seconds since the worker started, by its own clock: only differences mean something.
    pub(crate) at: f64,
    pub(crate) network: counters::Snapshot,
    pub(crate) processors: cpu::Snapshot,
}
