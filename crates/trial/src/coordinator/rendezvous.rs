//! The rendezvous: all workers come, and prove to be one job.

use std::time::{Duration, Instant};

use ncclctl_findings::evidence::Failure;

use super::Sink;
use super::gate::{Gate, refuse};
use super::workers::{Happened, Inbound, Workers};
use crate::error::{Kind, TrialError};
use crate::event::Event;
use crate::message::{FromWorker, Hello};
use crate::plan::TrialPlan;

impl Workers {
    /// Waits for all workers. One that leaves before the trial has started makes room for another, as
    /// when its container is restarted.
    pub(super) async fn gather(
        gate: Gate,
        wanted: usize,
        plan: &TrialPlan,
        sink: Sink<'_>,
    ) -> Result<Self, TrialError> {
        let mut workers = Self::new(gate, plan.deadline)?;
        match workers.wait_for(wanted, plan.rendezvous, sink).await {
            Ok(()) => {
                workers.gate.fill();
                // a launcher's order wins; the others stand by name, so that the same hosts make the
                // same ring, whoever came first
                workers.list.sort_by_cached_key(|worker| {
                    let hello = &worker.hello;
                    (hello.index.unwrap_or(usize::MAX), natural(&hello.name))
                });
                Ok(workers)
            }
            Err(error) => {
                workers.gate.fill();
                workers.abort(&error.message).await;
                Err(error)
            }
        }
    }

    async fn wait_for(
        &mut self,
        wanted: usize,
        limit: Duration,
        sink: Sink<'_>,
    ) -> Result<(), TrialError> {
        let started = Instant::now();
        while self.list.len() < wanted {
            if started.elapsed() >= limit {
                return Err(self.nobody_came(wanted, limit));
            }
            match self.happens().await? {
                Happened::Joined(mut joined) => {
                    if let Some(error) = self.not_one_job(&joined.hello, wanted) {
                        let _ = tokio::time::timeout(
                            Duration::from_secs(1),
                            refuse(&mut joined.stream, &error.message),
                        )
                        .await;
                        return Err(error);
                    }
                    let worker = joined.hello.name.clone();
                    self.admit(*joined)?;
                    let joined = self.list.len();
                    sink(Event::WorkerJoined { worker, joined, wanted });
                }
                Happened::Inbound(id, inbound) => {
                    let why = match inbound {
                        Inbound::Gone(seen) => seen,
                        Inbound::Message(FromWorker::Leaving { reason }) => {
                            format!("told to end by {reason}")
                        }
                        Inbound::Message(_) => continue,
                    };
                    if let Some(place) = self.place(id) {
                        self.give_up(place, &why, sink);
                    }
                }
                Happened::Quiet => {}
            }
            if let Some((place, silent)) = self.silent() {
                let why = format!("no sign of life for {:.0} s", silent.as_secs_f64());
                self.give_up(place, &why, sink);
            }
        }
        Ok(())
    }

    fn give_up(&mut self, place: usize, why: &str, sink: Sink<'_>) {
        let worker = self.list.remove(place);
        let name = worker.hello.name;
        sink(Event::Note { text: format!("worker {name} left before the trial started: {why}") });
    }

    fn nobody_came(&self, wanted: usize, waited: Duration) -> TrialError {
        let names: Vec<&str> = self.list.iter().map(|w| w.hello.name.as_str()).take(20).collect();
        let mut text = format!("{} of {wanted} workers joined within {waited:?}", self.list.len());
        if !names.is_empty() {
            text.push_str(&format!(" ({})", names.join(", ")));
        }
        let numbers: Vec<usize> = self.list.iter().filter_map(|w| w.hello.index).collect();
        if !numbers.is_empty() && numbers.len() == self.list.len() {
            let missing: Vec<String> =
                (0..wanted).filter(|n| !numbers.contains(n)).map(|n| n.to_string()).collect();
            let shown = missing.iter().take(20).cloned().collect::<Vec<_>>().join(", ");
            text.push_str(&format!("; missing: number {shown}"));
        }
        match self.gate.refusals.describe() {
            Some(refused) => text.push_str(&format!("; {refused}")),
            None => text.push_str("; nobody else has knocked: is the port reachable from there?"),
        }
        lost("rendezvous", String::new(), text)
    }

    /// The classic broken launch: processes that each believe to be the whole job, or two jobs at one port.
    fn not_one_job(&self, hello: &Hello, wanted: usize) -> Option<TrialError> {
        let name = &hello.name;
        let text = if hello.ranks == 0 {
            format!("worker {name} offers no rank")
        } else {
            // a number without a launch that it counts in is a wish for an order, no more
            let (world, index) = (hello.world?, hello.index?);
            let twin = self
                .list
                .iter()
                .find(|worker| worker.hello.world.is_some() && worker.hello.index == Some(index));
            match twin {
                _ if world != wanted => {
                    format!("worker {name} belongs to a job of {world}, this one has {wanted}")
                }
                _ if index >= wanted => format!("worker {name} is number {index} of {wanted}"),
                Some(twin) => {
                    format!("workers {} and {name} both are number {index}", twin.hello.name)
                }
                None => return None,
            }
        };
        let mut error = lost("not-one-job", name.clone(), text);
        error.message = format!("not one job: {}", error.message);
        Some(error)
    }
}

fn lost(phase: &str, host: String, text: String) -> TrialError {
    let failure = Failure { rank: None, host, phase: phase.to_owned(), seen: text.clone() };
    let mut error = TrialError::lost(vec![failure], Kind::Environment);
    error.message = text;
    error
}

/// A name cut into text and numbers, so that `node10` stands after `node9`.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let digits = rest[text..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - text);
        let number = rest[text..text + digits].parse().unwrap_or(u64::MAX);
        parts.push((rest[..text].to_owned(), number));
        rest = &rest[text + digits..];
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::natural;

    #[test]
    fn names_in_the_order_that_people_count() {
        let mut names = ["node10", "node9", "a", "node9b", "node9a2", "10.0.0.10", "10.0.0.9"];
        names.sort_by_cached_key(|name| natural(name));
        assert_eq!(names, ["10.0.0.9", "10.0.0.10", "a", "node9", "node9a2", "node9b", "node10"]);
    }
}
