//! The control plane alone: workers whose ranks are stand-ins that move nothing. For its benchmark and
//! its tests.

use std::time::{Duration, Instant};

use crate::coordinator;
use crate::engine::{BatchTimes, Checked, Connected, Contact};
use crate::error::TrialError;
use crate::frame;
use crate::message::{Answer, Step};
use crate::token::Token;
use crate::worker::{self, Ended, Options, WorkerError};

/// How long each part took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Took {
    /// Until every worker had joined.
    pub joined: Duration,
    /// Until every rank had its settings and had answered.
    pub started: Duration,
    /// Until every rank had passed a barrier.
    pub barrier: Duration,
    /// Until every connection was closed again.
    pub left: Duration,
}

/// Coordinates one rendezvous on `address` and gives the time that each part took, counted from the
/// first worker.
pub fn coordinate(address: &str, token: &Token, workers: usize) -> Result<Took, TrialError> {
    coordinator::rehearse(address, token, workers)
}

/// Runs `count` workers with one stand-in rank each as tasks of this process until all have left.
pub fn workers(address: &str, token: &Token, count: usize) -> Result<Duration, WorkerError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(WorkerError::Setup)?;
    let started = Instant::now();
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..count {
            let (address, token) = (address.to_owned(), token.clone());
            tasks.spawn(async move { stand_in_worker(&address, &token, number).await });
        }
        while let Some(result) = tasks.join_next().await {
            result.map_err(|error| WorkerError::Setup(std::io::Error::other(error)))??;
        }
        Ok(started.elapsed())
    })
}

async fn stand_in_worker(
    address: &str,
    token: &Token,
    number: usize,
) -> Result<Ended, WorkerError> {
    let options = Options {
        index: None,
        world: None,
        name: Some(format!("w{number}")),
        ranks: 1,
        patience: Duration::from_secs(20),
        rank_program: Default::default(),
    };
    worker::serve_from(address, token, options, worker::Source::StandIn).await
}

/// What a stand-in answers to a framed step; `None` to one that asks for no answer.
pub(crate) fn stand_in_answer(framed: &[u8]) -> std::io::Result<Option<Answer>> {
    // a thousand ranks read the contacts of a thousand on machines of their own, not all on this one
    if framed[4..].starts_with(b"{\"connect\"") {
        return Ok(Some(Answer::Connected { connected: Connected::default() }));
    }
    let step = frame::read_blocking(&mut &framed[..])?.unwrap_or(Step::Beat);
    Ok(Some(match step {
        Step::Beat => return Ok(None),
        Step::Open { setup, .. } => Answer::Opened {
            contact: Contact { body: vec![0; 64], shown: "nowhere".to_owned() },
            pid: 0,
            rank: setup.rank,
            ranks: setup.ranks,
            nonce: setup.nonce,
        },
        Step::Connect { .. } => Answer::Connected { connected: Connected::default() },
        Step::Run { batch } => Answer::Ran {
            times: BatchTimes {
                samples_us: (0..batch.samples).map(|n| 100.0 + f64::from(n % 2)).collect(),
                algorithm: "none".to_owned(),
                protocol: None,
            },
        },
        Step::Verify { .. } => Answer::Verified { checked: Checked { wrong: 0 } },
        Step::Probe { .. } => Answer::Probed { received: Vec::new() },
        Step::ReduceRate { .. } => Answer::Reduced { rate_bps: None },
        Step::Finish => Answer::Finished { remains: Box::default() },
    }))
}
