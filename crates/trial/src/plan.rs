//! What a trial is to do.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::engine::Case;

/// One trial (or, with [`TrialPlan::sweep_workers`], one over each subset of workers).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialPlan {
    /// Engine by name.
    pub engine: String,
    /// What to measure, in order.
    pub cases: Vec<Case>,
    /// NCCL settings for the ranks; they win over each worker's own environment.
    pub settings: BTreeMap<String, String>,
    /// Operations a case; `None` repeats until the precision is reached.
    pub iterations: Option<u32>,
    /// Warm-up operations; `None` warms up until the time is steady.
    pub warmup: Option<u32>,
    /// How often everything is measured.
    pub cycles: u32,
    /// Whether results are checked.
    pub check: bool,
    /// Wanted half width of the 95% confidence interval over the mean, 0.02 for 2%.
    pub precision: f64,
    /// Time for all cases together.
    pub time_limit: Duration,
    /// How long a silent worker, rank or peer is waited for.
    pub deadline: Duration,
    /// How long the rendezvous may take.
    pub rendezvous: Duration,
    /// Whether raw paths are measured before and after.
    pub paths: bool,
    /// Line rate that the user states for every NIC, bits per second.
    pub line_rate_bits: Option<u64>,
    /// What the `nccl` engine is to do.
    #[serde(default)]
    pub nccl: crate::nccl::Options,
    /// Worker counts to run on, least first; empty for all workers alone.
    pub sweep_workers: Vec<usize>,
}

impl TrialPlan {
    /// A plan with the defaults of the command line and nothing to measure yet.
    pub fn new(engine: &str) -> Self {
        Self {
            engine: engine.to_owned(),
            cases: Vec::new(),
            settings: BTreeMap::new(),
            iterations: None,
            warmup: None,
            cycles: 1,
            check: true,
            precision: 0.02,
            time_limit: Duration::from_secs(10),
            deadline: Duration::from_secs(10),
            rendezvous: Duration::from_secs(60),
            paths: true,
            line_rate_bits: None,
            nccl: crate::nccl::Options::default(),
            sweep_workers: Vec::new(),
        }
    }

    /// Largest buffer that any case uses, bytes.
    pub fn largest(&self) -> u64 {
        self.cases.iter().map(|case| case.bytes).max().unwrap_or(0)
    }
}
