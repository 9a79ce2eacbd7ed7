//! What a trial tells while it runs. Progress, JSON lines, the saved record and the table are
//! equal consumers.

use ncclctl_findings::evidence::{Failure, PathRate, Point};
use serde::Serialize;

/// One event of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The coordinator listens; `join` is the exact line that starts a worker elsewhere.
    Listening {
        /// Address and port.
        address: String,
        /// Command line for a worker, without the token itself.
        join: String,
        /// Workers waited for.
        workers: usize,
    },
    /// A worker has joined.
    WorkerJoined {
        /// Its name.
        worker: String,
        /// How many have joined.
        joined: usize,
        /// How many are waited for.
        wanted: usize,
    },
    /// The trial starts.
    TrialStarted {
        /// Engine.
        engine: String,
        /// Number of ranks.
        ranks: usize,
    },
    /// A rank is connected to its peers.
    RankReady {
        /// Rank.
        rank: usize,
        /// Host name.
        host: String,
        /// Interfaces and rules, in words.
        interfaces: String,
    },
    /// Raw paths were measured.
    PathsMeasured {
        /// The rates.
        paths: Vec<PathRate>,
    },
    /// A size is being measured: figures so far.
    SizeProgress {
        /// Index of the case among all cases.
        case: usize,
        /// Number of cases.
        cases: usize,
        /// Collective and size in words, like `all_reduce 64K`.
        what: String,
        /// Bus bandwidth so far, GB/s.
        busbw: f64,
        /// Half width of the confidence interval over the mean.
        precision: f64,
        /// The rank that others wait for, if one stands out.
        slowest_rank: Option<usize>,
    },
    /// A size is done.
    SizeDone {
        /// The result.
        point: Box<Point>,
    },
    /// A rank's process wrote a line to its standard output or error.
    RankSaid {
        /// Rank.
        rank: usize,
        /// Host name.
        host: String,
        /// The line, cut to a sensible length.
        line: String,
    },
    /// Something was lost.
    Failed {
        /// Who and what.
        failure: Failure,
    },
    /// A remark for the user that is no finding.
    Note {
        /// The text.
        text: String,
    },
    /// The trial is over; evidence and verdict follow.
    TrialFinished,
}
