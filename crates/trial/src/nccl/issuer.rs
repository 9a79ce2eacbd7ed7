//! The one thread that talks to CUDA and NCCL, and the watch over it.
//!
//! A communicator that does not block would start a thread for every collective, which costs more
//! than a small collective takes. So calls block, on this thread, and the rank's main thread waits
//! with a deadline: when nothing has moved for that long, the rank gives up and says where.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::{EngineError, ErrorKind};

/// How often the watch looks.
const LOOK: Duration = Duration::from_millis(20);

/// Last time something moved.
#[derive(Clone, Debug)]
pub(super) struct Pulse(Arc<Mutex<Instant>>);

impl Pulse {
    /// Something moved.
    pub(super) fn beat(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn age(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

type Job<S> = Box<dyn FnOnce(&mut S) + Send>;

/// Handle of the thread. When it is dropped the thread ends after its job, if that ever ends.
pub(super) struct Issuer<S> {
    jobs: mpsc::Sender<Job<S>>,
    pulse: Pulse,
}

/// How a job did not end well.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It said so.
    Failed(EngineError),
    /// Nothing moved for this long.
    Hung(Duration),
}

impl<S: 'static> Issuer<S> {
    /// Starts the thread; its state is made there, since it may not leave it.
    pub(super) fn start(make: impl FnOnce(Pulse) -> S + Send + 'static) -> Self {
        let (jobs, queue) = mpsc::channel::<Job<S>>();
        let pulse = Pulse(Arc::new(Mutex::new(Instant::now())));
        let given = pulse.clone();
        std::thread::spawn(move || {
            let mut state = make(given);
            while let Ok(job) = queue.recv() {
                job(&mut state);
            }
        });
        Self { jobs, pulse }
    }

    /// What the state beats while it works.
    pub(super) fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    /// Runs a job and waits until it ends, or until nothing has moved for `limit`.
    pub(super) fn call<T: Send + 'static>(
        &self,
        limit: Duration,
        job: impl FnOnce(&mut S) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, Trouble> {
        let (done, wait) = mpsc::channel();
        self.pulse.beat();
        let gone = || {
            Trouble::Failed(EngineError {
                message: "the engine's thread has ended".to_owned(),
                kind: ErrorKind::Other,
                peer: None,
            })
        };
        let sent = self.jobs.send(Box::new(move |state| {
            // the caller may have given up
            let _ = done.send(job(state));
        }));
        sent.map_err(|_| gone())?;
        loop {
            match wait.recv_timeout(LOOK) {
                Ok(result) => return result.map_err(Trouble::Failed),
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
                Err(RecvTimeoutError::Timeout) => {
                    let age = self.pulse.age();
                    if age > limit {
                        return Err(Trouble::Hung(age));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_moves_is_waited_for_and_one_that_does_not_is_given_up() {
        let issuer = Issuer::start(|pulse| pulse);
        let limit = Duration::from_millis(200);
        let moving = issuer.call(limit, |pulse| {
            for _ in 0..10 {
                std::thread::sleep(Duration::from_millis(50));
                pulse.beat();
            }
            Ok(7)
        });
        assert_eq!(moving.unwrap(), 7);
        let hung = issuer.call(limit, |_| {
            std::thread::sleep(Duration::from_secs(60));
            Ok(())
        });
        assert!(matches!(hung, Err(Trouble::Hung(age)) if age >= limit));
    }
}
