//! The workers of a trial and the conversation with them: every wait has a limit, and whoever is lost
//! is named.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ncclctl_findings::evidence::Failure;
use rustix::net::sockopt;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use super::gate::{Gate, Joined};
use super::loss::Report;
use crate::counters::HostCounters;
use crate::error::{Kind, TrialError};
use crate::frame;
use crate::message::{Answer, FromWorker, Hello, Step, ToWorker};

/// One joined worker.
pub(super) struct Worker {
    /// Number of its connection; its place in the list may change until all have come.
    pub(super) id: usize,
    pub(super) hello: Hello,
    /// Ranks that run there now.
    pub(super) ranks: Vec<usize>,
    pub(super) heard: Instant,
    outgoing: mpsc::UnboundedSender<Arc<Vec<u8>>>,
}

/// What a connection brings.
pub(super) enum Inbound {
    Message(FromWorker),
    Gone(String),
}

pub(super) struct Workers {
    pub(super) list: Vec<Worker>,
    pub(super) beat: Duration,
    /// Lines that ranks wrote, not yet passed on: rank, host, line.
    pub(super) said: Vec<(usize, String, String)>,
    pub(super) gate: Gate,
    next_id: usize,
    sender: mpsc::UnboundedSender<(usize, Inbound)>,
    inbound: mpsc::UnboundedReceiver<(usize, Inbound)>,
    last_beat: Instant,
    last_look: Instant,
    deadline: Duration,
    interrupt: Signal,
    terminate: Signal,
}

/// What happens while the coordinator waits.
pub(super) enum Happened {
    /// A worker sent something.
    Inbound(usize, Inbound),
    /// A worker proved the token.
    Joined(Box<Joined>),
    /// Nothing for a while: time to look who is silent.
    Quiet,
}

impl Workers {
    /// Nobody yet.
    pub(super) fn new(gate: Gate, deadline: Duration) -> Result<Self, TrialError> {
        let broken = |error: io::Error| TrialError::environment(format!("signals: {error}"));
        let (sender, inbound) = mpsc::unbounded_channel();
        Ok(Self {
            list: Vec::new(),
            beat: (deadline / 10).max(Duration::from_millis(50)),
            said: Vec::new(),
            gate,
            next_id: 0,
            sender,
            inbound,
            last_beat: Instant::now(),
            last_look: Instant::now(),
            deadline,
            interrupt: signal(SignalKind::interrupt()).map_err(broken)?,
            terminate: signal(SignalKind::terminate()).map_err(broken)?,
        })
    }

    /// Takes a worker in.
    pub(super) fn admit(&mut self, joined: Joined) -> Result<(), TrialError> {
        let worker = Worker::start(self.next_id, joined, &self.sender, self.deadline);
        self.next_id += 1;
        self.list.push(worker);
        self.tell(self.list.len() - 1, &ToWorker::Welcome { beat: self.beat })
    }

    /// Place of a connection in the list; `None` for a worker that has been given up.
    pub(super) fn place(&self, id: usize) -> Option<usize> {
        self.list.iter().position(|worker| worker.id == id)
    }

    /// Waits for whatever comes next, at most half a beat. Beats are sent here; signals end it.
    pub(super) async fn happens(&mut self) -> Result<Happened, TrialError> {
        if self.last_beat.elapsed() >= self.beat {
            self.last_beat = Instant::now();
            self.tell_all(self.list.len(), &ToWorker::Beat)?;
        }
        let until_look = (self.beat / 2).saturating_sub(self.last_look.elapsed());
        let happened = tokio::select! {
            biased;
            _ = self.interrupt.recv() => return Err(interrupted("SIGINT")),
            _ = self.terminate.recv() => return Err(interrupted("SIGTERM")),
            inbound = self.inbound.recv() => match inbound {
                Some((id, inbound)) => Happened::Inbound(id, inbound),
                // `self.sender` keeps it open
                None => return Err(TrialError::environment("all workers are gone")),
            },
            Some(joined) = self.gate.joined.recv() => Happened::Joined(Box::new(joined)),
            () = tokio::time::sleep(until_look) => Happened::Quiet,
        };
        if let Happened::Inbound(id, _) = &happened
            && let Some(place) = self.place(*id)
        {
            self.list[place].heard = Instant::now();
        }
        Ok(happened)
    }

    /// The worker that has been silent too long; looked at twice a beat, however much the others say.
    pub(super) fn silent(&mut self) -> Option<(usize, Duration)> {
        let since = self.last_look.elapsed();
        if since < self.beat / 2 {
            return None;
        }
        self.last_look = Instant::now();
        if since > self.beat * 2 {
            // this process itself did not run: what was sent meanwhile has yet to be read
            for worker in &mut self.list {
                worker.heard = Instant::now();
            }
            return None;
        }
        let silent = |worker: &Worker| worker.heard.elapsed();
        let place = (0..self.list.len()).max_by_key(|place| silent(&self.list[*place]))?;
        let longest = silent(&self.list[place]);
        (longest > self.beat * crate::worker::MISSED).then_some((place, longest))
    }

    /// Sends to one worker.
    pub(super) fn tell(&self, worker: usize, message: &ToWorker) -> Result<(), TrialError> {
        let bytes = Arc::new(encode(message)?);
        // a closed connection is reported by its reader
        let _ = self.list[worker].outgoing.send(bytes);
        Ok(())
    }

    /// Sends to several workers, encoded once: contacts of a thousand ranks are a hundred kilobytes.
    pub(super) fn tell_all(&self, workers: usize, message: &ToWorker) -> Result<(), TrialError> {
        let bytes = Arc::new(encode(message)?);
        for worker in &self.list[..workers] {
            let _ = worker.outgoing.send(Arc::clone(&bytes));
        }
        Ok(())
    }

    /// Sends a step to every rank and waits for all answers, in rank order.
    pub(super) async fn every_rank<T>(
        &mut self,
        phase: &str,
        step: Step,
        pick: impl Fn(Answer) -> Option<T>,
    ) -> Result<Vec<T>, TrialError> {
        let limit = self.patience();
        self.every_rank_within(limit, phase, step, pick).await
    }

    /// As [`Self::every_rank`], for a step that is known to take its time.
    pub(super) async fn every_rank_within<T>(
        &mut self,
        limit: Duration,
        phase: &str,
        step: Step,
        pick: impl Fn(Answer) -> Option<T>,
    ) -> Result<Vec<T>, TrialError> {
        let used = self.used();
        let step = serde_json::value::to_raw_value(&step)
            .map_err(|error| TrialError::environment(error.to_string()))?;
        self.tell_all(used, &ToWorker::Ranks { step })?;
        self.answers(limit, phase, pick).await
    }

    /// How long a step may take where nothing is known of it. Loss is noticed much earlier, by silence;
    /// this is for ranks that live and never answer, hung in a library.
    pub(super) fn patience(&self) -> Duration {
        self.deadline * 6
    }

    /// Waits for one answer of every rank, in rank order.
    pub(super) async fn answers<T>(
        &mut self,
        limit: Duration,
        phase: &str,
        pick: impl Fn(Answer) -> Option<T>,
    ) -> Result<Vec<T>, TrialError> {
        let until = Instant::now() + limit;
        let mut missing: usize = self.list.iter().map(|worker| worker.ranks.len()).sum();
        let mut got: BTreeMap<usize, T> = BTreeMap::new();
        while missing > 0 {
            let Some((_, message)) = self.next(until, phase).await? else {
                return Err(self.hung(&got, limit, phase));
            };
            if let FromWorker::Rank { rank, answer } = message
                && let Some(value) = pick(answer)
            {
                missing -= usize::from(got.insert(rank, value).is_none());
            }
        }
        Ok(got.into_values().collect())
    }

    /// Ranks that live and have not answered.
    fn hung<T>(&self, got: &BTreeMap<usize, T>, limit: Duration, phase: &str) -> TrialError {
        let mut failures = Vec::new();
        for worker in &self.list {
            for rank in worker.ranks.iter().filter(|rank| !got.contains_key(rank)) {
                failures.push(Failure {
                    rank: Some(*rank),
                    host: worker.hello.name.clone(),
                    phase: phase.to_owned(),
                    seen: format!("alive, but no answer within {limit:.0?}: it hangs"),
                });
            }
        }
        TrialError::lost(failures, Kind::Environment)
    }

    /// Counters of every worker that has ranks, in their order.
    pub(super) async fn count(&mut self) -> Result<Vec<HostCounters>, TrialError> {
        let used = self.used();
        self.tell_all(used, &ToWorker::Count)?;
        let until = Instant::now() + self.patience();
        let mut got: BTreeMap<usize, HostCounters> = BTreeMap::new();
        while got.len() < used {
            let Some((worker, message)) = self.next(until, "reading counters").await? else {
                return Err(TrialError::environment("a worker does not answer: reading counters"));
            };
            if let FromWorker::Counted { counters } = message {
                got.insert(worker, *counters);
            }
        }
        Ok(got.into_values().collect())
    }

    /// Ends all ranks, so that the next trial starts with fresh processes.
    pub(super) async fn stop_ranks(&mut self) -> Result<(), TrialError> {
        let used = self.used();
        self.tell_all(used, &ToWorker::Stop)?;
        let until = Instant::now() + self.patience();
        let mut left = used;
        while left > 0 {
            let Some((_, message)) = self.next(until, "ending ranks").await? else {
                return Err(TrialError::environment("a worker does not answer: ending ranks"));
            };
            left -= usize::from(matches!(message, FromWorker::Stopped));
        }
        for worker in &mut self.list {
            worker.ranks.clear();
        }
        Ok(())
    }

    /// Workers in use: those that have ranks are the first ones.
    pub(super) fn used(&self) -> usize {
        self.list.iter().take_while(|worker| !worker.ranks.is_empty()).count()
    }

    /// Says goodbye; workers end by themselves.
    pub(super) async fn leave(&mut self) {
        let _ = self.tell_all(self.list.len(), &ToWorker::Leave);
        self.drain(Duration::from_secs(2)).await;
    }

    /// Gives the trial up.
    pub(super) async fn abort(&mut self, reason: &str) {
        let _ = self.tell_all(self.list.len(), &ToWorker::Abort { reason: reason.to_owned() });
        self.drain(Duration::from_millis(1500)).await;
    }

    /// Waits until every connection is closed from the other end, so that nothing said is lost.
    async fn drain(&mut self, limit: Duration) {
        let mut open = self.list.len();
        let _ = tokio::time::timeout(limit, async {
            while open > 0 {
                match self.inbound.recv().await {
                    Some((_, Inbound::Gone(_))) => open -= 1,
                    Some(_) => {}
                    None => return,
                }
            }
        })
        .await;
    }

    /// The next message that a caller waits for, `None` once it is late; a loss ends the wait.
    async fn next(
        &mut self,
        until: Instant,
        phase: &str,
    ) -> Result<Option<(usize, FromWorker)>, TrialError> {
        while Instant::now() < until {
            let report = match self.happens().await? {
                Happened::Inbound(id, inbound) => match self.place(id) {
                    Some(place) => match self.judge(place, inbound, phase) {
                        Ok(Some(message)) => return Ok(Some((place, message))),
                        Ok(None) => None,
                        Err(report) => Some(*report),
                    },
                    None => None,
                },
                // the gate was closed before; this one had passed it just then
                Happened::Joined(_) | Happened::Quiet => None,
            };
            let report = match report {
                Some(report) => Some(report),
                None => self.silent().map(|(place, silent)| {
                    Report::silent(&self.list[place].hello.name, silent, phase)
                }),
            };
            if let Some(report) = report {
                return Err(self.who_is_to_blame(report, phase).await);
            }
        }
        Ok(None)
    }
}

impl Worker {
    fn start(
        id: usize,
        joined: Joined,
        inbound: &mpsc::UnboundedSender<(usize, Inbound)>,
        deadline: Duration,
    ) -> Self {
        // what was sent and is not acknowledged by then will not be: the kernel gives up with us
        let _ = sockopt::set_tcp_user_timeout(
            joined.stream.get_ref().0,
            u32::try_from(deadline.as_millis()).unwrap_or(u32::MAX),
        );
        let (mut reader, mut writer) = tokio::io::split(joined.stream);
        let (outgoing, mut queue) = mpsc::unbounded_channel::<Arc<Vec<u8>>>();
        let inbound = inbound.clone();
        tokio::spawn(async move {
            loop {
                let message = match frame::read(&mut reader, frame::LARGEST).await {
                    Ok(Some(message)) => Inbound::Message(message),
                    Ok(None) => {
                        Inbound::Gone("its connection closed (the process ended)".to_owned())
                    }
                    // a reset is the same end with something unread in between
                    Err(error)
                        if matches!(
                            error.kind(),
                            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
                        ) =>
                    {
                        Inbound::Gone("its connection closed (the process ended)".to_owned())
                    }
                    Err(error) => Inbound::Gone(format!("its connection broke: {error}")),
                };
                let last = matches!(message, Inbound::Gone(_));
                if inbound.send((id, message)).is_err() || last {
                    return;
                }
            }
        });
        tokio::spawn(async move {
            while let Some(bytes) = queue.recv().await {
                if frame::write(&mut writer, &bytes).await.is_err() {
                    return;
                }
            }
            let _ = tokio::io::AsyncWriteExt::shutdown(&mut writer).await;
        });
        Self { id, hello: joined.hello, ranks: Vec::new(), heard: Instant::now(), outgoing }
    }
}

fn encode(message: &ToWorker) -> Result<Vec<u8>, TrialError> {
    frame::encode(message).map_err(|error| TrialError::environment(error.to_string()))
}

pub(super) fn interrupted(signal: &str) -> TrialError {
    TrialError {
        message: format!("ended by {signal}"),
        kind: Kind::Interrupted,
        evidence: Box::default(),
    }
}
