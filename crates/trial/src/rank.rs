//! One rank: a fresh process that its worker starts for one trial.
//!
//! Standard input is a socket to the worker: steps come in, answers go out. The process ends when
//! that socket closes, when its worker dies, or when it is killed; it never outlives its trial.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::engine::{Engine, EngineError, ErrorKind};
use crate::frame;
use crate::message::{Answer, Step};

/// Why a rank could not serve its worker.
#[derive(Debug, thiserror::Error)]
pub enum RankError {
    /// Not started by a worker.
    #[error(
        "`ncclctl rank` is started by `ncclctl worker`, never by hand: its standard input is no socket"
    )]
    NoWorker(#[source] std::io::Error),
    /// The worker went away in the middle of something.
    #[error("lost the worker")]
    Worker(#[source] std::io::Error),
    /// The worker spoke out of turn.
    #[error("expected to be opened first")]
    OutOfTurn,
}

/// Serves steps until the worker closes the socket.
pub fn main() -> Result<(), RankError> {
    // with the worker gone nobody reads what is measured here
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let socket = standard_input().map_err(RankError::NoWorker)?;
    socket.peer_addr().map_err(RankError::NoWorker)?;
    serve(&socket)
}

fn standard_input() -> std::io::Result<UnixStream> {
    let fd: OwnedFd = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3)?;
    Ok(UnixStream::from(fd))
}

fn serve(socket: &UnixStream) -> Result<(), RankError> {
    let mut reader = socket.try_clone().map_err(RankError::Worker)?;
    let writer = Arc::new(Mutex::new(socket.try_clone().map_err(RankError::Worker)?));
    let first: Option<Step> = frame::read_blocking(&mut reader).map_err(RankError::Worker)?;
    let Some(Step::Open { engine, setup, beat }) = first else {
        return if first.is_none() { Ok(()) } else { Err(RankError::OutOfTurn) };
    };
    spawn_beat(Arc::clone(&writer), beat);
    let mut engine = match crate::engine::by_name(&engine) {
        Ok(engine) => engine,
        Err(error) => {
            return answer(&writer, &Answer::Failed { error }).map_err(RankError::Worker);
        }
    };
    let opened = engine.open(&setup).map(|contact| Answer::Opened {
        contact,
        pid: std::process::id(),
        rank: setup.rank,
        ranks: setup.ranks,
        nonce: setup.nonce,
    });
    answer(&writer, &opened.unwrap_or_else(|error| Answer::Failed { error }))
        .map_err(RankError::Worker)?;
    loop {
        let step = match frame::read_blocking(&mut reader) {
            Ok(Some(step)) => step,
            Ok(None) => return Ok(()),
            Err(error) => return Err(RankError::Worker(error)),
        };
        let reply = take(&mut *engine, step).unwrap_or_else(|error| Answer::Failed { error });
        answer(&writer, &reply).map_err(RankError::Worker)?;
    }
}

fn take(engine: &mut dyn Engine, step: Step) -> Result<Answer, EngineError> {
    Ok(match step {
        Step::Open { .. } => {
            return Err(EngineError {
                message: "opened twice".to_owned(),
                kind: ErrorKind::Other,
                peer: None,
            });
        }
        Step::Connect { contacts } => Answer::Connected { connected: engine.connect(&contacts)? },
        Step::Run { batch } => Answer::Ran { times: engine.run(&batch)? },
        Step::Verify { case } => Answer::Verified { checked: engine.verify(&case)? },
        Step::Probe { probe } => Answer::Probed { received: engine.probe(&probe)? },
        Step::ReduceRate { case, duration } => {
            Answer::Reduced { rate_bps: engine.reduce_rate(&case, duration)? }
        }
    })
}

fn answer(writer: &Mutex<UnixStream>, answer: &Answer) -> std::io::Result<()> {
    let bytes = frame::encode(answer)?;
    let mut writer = writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    writer.write_all(&bytes)
}

/// Says that this process still runs, from a thread of its own: a rank that waits for a peer in the
/// middle of a collective is alive, a stopped or starved one is not.
#[expect(clippy::exit, reason = "a rank without a worker has nobody to return to")]
fn spawn_beat(writer: Arc<Mutex<UnixStream>>, every: Duration) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(every);
            if answer(&writer, &Answer::Beat).is_err() {
                // the worker closed the socket: the main thread may be deep in a wait on a peer
                std::process::exit(1);
            }
        }
    });
}
