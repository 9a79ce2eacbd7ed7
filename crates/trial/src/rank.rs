//! One rank: a fresh process that its worker starts for one trial.
//!
//! Standard input is a socket to the worker: steps come in, answers go out. The process ends when
//! that socket closes, when its worker dies, or when it is killed; it never outlives its trial.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use crate::engine::{Engine, EngineError, ErrorKind};
use crate::frame;
use crate::message::{Answer, Step};
use crate::worker::MISSED;

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
    let steps = listen(reader, Arc::clone(&writer), beat);
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
    for step in steps {
        let reply = take(&mut *engine, step).unwrap_or_else(|error| Answer::Failed { error });
        answer(&writer, &reply).map_err(RankError::Worker)?;
    }
    Ok(())
}

fn take(engine: &mut dyn Engine, step: Step) -> Result<Answer, EngineError> {
    Ok(match step {
        Step::Open { .. } | Step::Beat => {
            return Err(EngineError {
                message: "told to do what is no step".to_owned(),
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
        Step::Finish => Answer::Finished { remains: Box::new(engine.finish()?) },
    })
}

fn answer(writer: &Mutex<UnixStream>, answer: &Answer) -> std::io::Result<()> {
    let bytes = frame::encode(answer)?;
    let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
    writer.write_all(&bytes)
}

/// Reads steps and says that this process still runs, from threads of their own: a rank that waits for
/// a peer in the middle of a collective is alive, a stopped or starved one is not. A worker that is
/// stopped or gone can not end this process, so it ends itself.
fn listen(
    mut reader: UnixStream,
    writer: Arc<Mutex<UnixStream>>,
    beat: Duration,
) -> mpsc::Receiver<Step> {
    let (sender, steps) = mpsc::channel();
    let heard = Arc::new(Mutex::new(Instant::now()));
    let hears = Arc::clone(&heard);
    std::thread::spawn(move || {
        loop {
            let listening = match frame::read_blocking(&mut reader) {
                Ok(Some(Step::Beat)) => true,
                Ok(Some(step)) => sender.send(step).is_ok(),
                Ok(None) | Err(_) => false,
            };
            if !listening {
                // the worker closed the socket: the main thread may be deep in a wait on a peer
                leave();
            }
            *hears.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
    });
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(beat / 2);
            let silent = heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
            if silent > beat * (MISSED + 2) || answer(&writer, &Answer::Beat).is_err() {
                leave();
            }
        }
    });
    steps
}

#[expect(clippy::exit, reason = "a rank without a worker has nobody to return to")]
fn leave() -> ! {
    std::process::exit(1)
}
