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

use super::Sink;
use super::gate::{Gate, Joined};
use crate::counters::HostCounters;
use crate::engine::ErrorKind;
use crate::error::{Kind, TrialError};
use crate::event::Event;
use crate::frame;
use crate::message::{Answer, FromWorker, Hello, Step, ToWorker};
use crate::plan::TrialPlan;
use crate::worker::MISSED;

/// One joined worker.
pub(super) struct Worker {
    pub(super) hello: Hello,
    /// Ranks that run there now.
    pub(super) ranks: Vec<usize>,
    outgoing: mpsc::UnboundedSender<Arc<Vec<u8>>>,
    heard: Instant,
}

/// What a connection brings.
enum Inbound {
    Message(FromWorker),
    Gone(String),
}

pub(super) struct Workers {
    pub(super) list: Vec<Worker>,
    inbound: mpsc::UnboundedReceiver<(usize, Inbound)>,
    pub(super) beat: Duration,
    last_beat: Instant,
    interrupt: Signal,
    terminate: Signal,
    /// Keeps the port taken, so that no other program gets a late worker.
    _gate: Gate,
}

/// How certain a report is about who is to blame, most certain first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Blame {
    /// The process itself is known to have failed or ended.
    Direct,
    /// Nothing is heard of it.
    Silent,
    /// Somebody else says so.
    HearSay,
}

impl Workers {
    /// Waits for all workers.
    pub(super) async fn gather(
        mut gate: Gate,
        wanted: usize,
        plan: &TrialPlan,
        sink: Sink<'_>,
    ) -> Result<Self, TrialError> {
        let broken = |error: io::Error| TrialError::environment(format!("signals: {error}"));
        let mut interrupt = signal(SignalKind::interrupt()).map_err(broken)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(broken)?;
        let started = Instant::now();
        let mut joined: Vec<Joined> = Vec::new();
        while joined.len() < wanted {
            let left = plan.rendezvous.saturating_sub(started.elapsed());
            let next = tokio::select! {
                next = tokio::time::timeout(left, gate.joined.recv()) => next,
                _ = interrupt.recv() => return Err(interrupted("SIGINT")),
                _ = terminate.recv() => return Err(interrupted("SIGTERM")),
            };
            let Ok(Some(worker)) = next else {
                return Err(nobody_came(&joined, wanted, plan.rendezvous, &gate));
            };
            if let Some(error) = not_one_job(&joined, &worker.hello, wanted) {
                return Err(error);
            }
            let name = worker.hello.name.clone();
            joined.push(worker);
            sink(Event::WorkerJoined { worker: name, joined: joined.len(), wanted });
        }
        // a launcher's order wins; the others keep the order in which they came
        joined.sort_by_key(|worker| worker.hello.index.unwrap_or(usize::MAX));
        let (sender, inbound) = mpsc::unbounded_channel();
        let beat = (plan.deadline / 10).max(Duration::from_millis(50));
        let list = joined
            .into_iter()
            .enumerate()
            .map(|(index, worker)| Worker::start(index, worker, &sender, plan.deadline))
            .collect();
        Ok(Self {
            list,
            inbound,
            beat,
            last_beat: Instant::now(),
            interrupt,
            terminate,
            _gate: gate,
        })
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
        let used = self.used();
        self.tell_all(used, &ToWorker::Ranks { step })?;
        self.answers(phase, pick).await
    }

    /// Waits for one answer of every rank, in rank order.
    pub(super) async fn answers<T>(
        &mut self,
        phase: &str,
        pick: impl Fn(Answer) -> Option<T>,
    ) -> Result<Vec<T>, TrialError> {
        let mut missing: usize = self.list.iter().map(|worker| worker.ranks.len()).sum();
        let mut got: BTreeMap<usize, T> = BTreeMap::new();
        while missing > 0 {
            let (_, message) = self.next(phase).await?;
            if let FromWorker::Rank { rank, answer } = message
                && let Some(value) = pick(answer)
            {
                missing -= usize::from(got.insert(rank, value).is_none());
            }
        }
        Ok(got.into_values().collect())
    }

    /// Counters of every worker that has ranks, in their order.
    pub(super) async fn count(&mut self) -> Result<Vec<HostCounters>, TrialError> {
        let used = self.used();
        self.tell_all(used, &ToWorker::Count)?;
        let mut got: BTreeMap<usize, HostCounters> = BTreeMap::new();
        while got.len() < used {
            let (worker, message) = self.next("reading counters").await?;
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
        let mut left = used;
        while left > 0 {
            let (_, message) = self.next("ending ranks").await?;
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

    /// The next message. Beats are sent and heard here; a loss ends the wait.
    async fn next(&mut self, phase: &str) -> Result<(usize, FromWorker), TrialError> {
        let first = loop {
            if self.last_beat.elapsed() >= self.beat {
                self.last_beat = Instant::now();
                self.tell_all(self.list.len(), &ToWorker::Beat)?;
            }
            tokio::select! {
                biased;
                inbound = self.inbound.recv() => {
                    let Some((worker, inbound)) = inbound else {
                        return Err(TrialError::environment("all workers are gone"));
                    };
                    self.list[worker].heard = Instant::now();
                    match self.judge(worker, inbound, phase) {
                        Ok(Some(message)) => return Ok((worker, message)),
                        Ok(None) => {}
                        Err(failure) => break failure,
                    }
                }
                () = tokio::time::sleep(self.beat / 2) => {
                    if let Some(failure) = self.silent(phase) {
                        break failure;
                    }
                }
                _ = self.interrupt.recv() => return Err(interrupted("SIGINT")),
                _ = self.terminate.recv() => return Err(interrupted("SIGTERM")),
            }
        };
        Err(self.who_is_to_blame(first, phase).await)
    }

    /// A message for the caller, nothing, or a failure.
    fn judge(
        &self,
        worker: usize,
        inbound: Inbound,
        phase: &str,
    ) -> Result<Option<FromWorker>, (Blame, Failure, Kind)> {
        let host = self.list[worker].hello.name.clone();
        let fail = |blame, rank, seen: String, kind| {
            Err((blame, Failure { rank, host: host.clone(), phase: phase.to_owned(), seen }, kind))
        };
        match inbound {
            Inbound::Message(FromWorker::Beat) => Ok(None),
            Inbound::Message(FromWorker::Rank { rank, answer: Answer::Failed { error } }) => {
                let (blame, kind) = match error.kind {
                    ErrorKind::Setting => (Blame::Direct, Kind::Usage),
                    ErrorKind::PeerLost | ErrorKind::Unreachable => {
                        (Blame::HearSay, Kind::Environment)
                    }
                    ErrorKind::NoInterface
                    | ErrorKind::Device
                    | ErrorKind::Resource
                    | ErrorKind::Other => (Blame::Direct, Kind::Environment),
                };
                fail(blame, Some(rank), error.message, kind)
            }
            Inbound::Message(FromWorker::Lost { rank, seen }) => {
                let blame = if seen.starts_with("no sign") { Blame::Silent } else { Blame::Direct };
                fail(blame, Some(rank), seen, Kind::Environment)
            }
            Inbound::Message(FromWorker::Leaving { reason }) => {
                fail(Blame::Direct, None, format!("told to end by {reason}"), Kind::Environment)
            }
            Inbound::Message(message) => Ok(Some(message)),
            Inbound::Gone(seen) => fail(Blame::Direct, None, seen, Kind::Environment),
        }
    }

    /// The worker that has been silent too long.
    fn silent(&self, phase: &str) -> Option<(Blame, Failure, Kind)> {
        let worker = self.list.iter().max_by_key(|worker| worker.heard.elapsed())?;
        let silent = worker.heard.elapsed();
        (silent > self.beat * MISSED).then(|| {
            let seen = format!(
                "no sign of life for {:.0} s (stopped, or cut off from the network)",
                silent.as_secs_f64()
            );
            let failure = Failure {
                rank: None,
                host: worker.hello.name.clone(),
                phase: phase.to_owned(),
                seen,
            };
            (Blame::Silent, failure, Kind::Environment)
        })
    }

    /// One loss makes others report it: listen a little longer and put the one who knows best first.
    async fn who_is_to_blame(&mut self, first: (Blame, Failure, Kind), phase: &str) -> TrialError {
        let patience = |blame: &Blame, beat: Duration| match blame {
            // what is already on its way
            Blame::Direct => Duration::from_millis(200),
            Blame::Silent => Duration::from_millis(500),
            // until silence would have been noticed
            Blame::HearSay => beat * (MISSED + 1),
        };
        let mut until = Instant::now() + patience(&first.0, self.beat);
        let mut reports = vec![first];
        while Instant::now() < until {
            let wait = until.saturating_duration_since(Instant::now()).min(self.beat / 2);
            let report = match tokio::time::timeout(wait, self.inbound.recv()).await {
                Ok(Some((worker, inbound))) => {
                    self.list[worker].heard = Instant::now();
                    self.judge(worker, inbound, phase).err()
                }
                Ok(None) => break,
                Err(_) => self.silent(phase),
            };
            if let Some(report) = report {
                until = until.min(Instant::now() + patience(&report.0, self.beat));
                reports.push(report);
            }
        }
        reports.sort_by(|a, b| a.0.cmp(&b.0));
        let kind = reports.first().map_or(Kind::Environment, |report| report.2);
        TrialError::lost(reports.into_iter().map(|report| report.1).collect(), kind)
    }
}

impl Worker {
    fn start(
        index: usize,
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
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                        Inbound::Gone("its connection closed (the process ended)".to_owned())
                    }
                    Err(error) => Inbound::Gone(format!("its connection broke: {error}")),
                };
                let last = matches!(message, Inbound::Gone(_));
                if inbound.send((index, message)).is_err() || last {
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
        });
        Self { hello: joined.hello, ranks: Vec::new(), outgoing, heard: Instant::now() }
    }
}

fn encode(message: &ToWorker) -> Result<Vec<u8>, TrialError> {
    frame::encode(message).map_err(|error| TrialError::environment(error.to_string()))
}

fn interrupted(signal: &str) -> TrialError {
    TrialError {
        message: format!("ended by {signal}"),
        kind: Kind::Interrupted,
        evidence: Box::default(),
    }
}

fn nobody_came(joined: &[Joined], wanted: usize, waited: Duration, gate: &Gate) -> TrialError {
    let names: Vec<&str> = joined.iter().map(|worker| worker.hello.name.as_str()).collect();
    let mut text = format!("{} of {wanted} workers joined within {waited:?}", joined.len());
    if !names.is_empty() {
        text.push_str(&format!(" ({})", names.join(", ")));
    }
    match gate.refusals.describe() {
        Some(refused) => text.push_str(&format!("; {refused}")),
        None => text.push_str("; nobody else has knocked: is the port reachable from there?"),
    }
    let failure = Failure {
        rank: None,
        host: String::new(),
        phase: "rendezvous".to_owned(),
        seen: text.clone(),
    };
    let mut error = TrialError::lost(vec![failure], Kind::Environment);
    error.message = text;
    error
}

/// The classic broken launch: processes that each believe to be the whole job, or two jobs at one port.
fn not_one_job(joined: &[Joined], hello: &Hello, wanted: usize) -> Option<TrialError> {
    let text = if let Some(world) = hello.world
        && world != wanted
    {
        format!("worker {} belongs to a job of {world}, this one has {wanted}", hello.name)
    } else if let Some(index) = hello.index {
        let twin = joined.iter().find(|worker| worker.hello.index == Some(index))?;
        format!(
            "workers {} and {} both say that they are number {index}",
            twin.hello.name, hello.name
        )
    } else {
        return None;
    };
    let failure = Failure {
        rank: None,
        host: hello.name.clone(),
        phase: "not-one-job".to_owned(),
        seen: text.clone(),
    };
    let mut error = TrialError::lost(vec![failure], Kind::Environment);
    error.message = format!("not one job: {text}");
    Some(error)
}
