//! Losses: what a failure says about who is to blame. One loss makes others report it, so the
//! coordinator listens a little longer and puts the one who knows best first.

use std::time::{Duration, Instant};

use ncclctl_findings::evidence::Failure;

use super::workers::{Happened, Inbound, Workers};
use crate::engine::ErrorKind;
use crate::error::{Kind, TrialError};
use crate::message::{Answer, FromWorker};
use crate::worker::MISSED;

/// How certain a report is about who is to blame, most certain first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Blame {
    /// The process itself is known to have failed or ended.
    Direct,
    /// Nothing is heard of it.
    Silent,
    /// Somebody else says so.
    HearSay,
}

/// One failure as reported.
#[derive(Debug)]
pub(super) struct Report {
    blame: Blame,
    failure: Failure,
    kind: Kind,
}

impl Report {
    /// A worker of which nothing is heard.
    pub(super) fn silent(host: &str, silent: Duration, phase: &str) -> Self {
        let seen = format!(
            "no sign of life for {:.0} s (stopped, or cut off from the network)",
            silent.as_secs_f64()
        );
        Self {
            blame: Blame::Silent,
            failure: Failure { rank: None, host: host.to_owned(), phase: phase.to_owned(), seen },
            kind: Kind::Environment,
        }
    }
}

impl Workers {
    /// A message for the caller, nothing, or a failure.
    pub(super) fn judge(
        &mut self,
        place: usize,
        inbound: Inbound,
        phase: &str,
    ) -> Result<Option<FromWorker>, Box<Report>> {
        let host = self.list[place].hello.name.clone();
        let (blame, rank, seen, kind) = match inbound {
            Inbound::Message(FromWorker::Beat) => return Ok(None),
            Inbound::Message(FromWorker::Said { rank, line }) => {
                self.said.push((rank, host, line));
                return Ok(None);
            }
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
                (blame, Some(rank), error.message, kind)
            }
            Inbound::Message(FromWorker::Lost { rank, seen }) => {
                let blame = if seen.starts_with("no sign") { Blame::Silent } else { Blame::Direct };
                (blame, Some(rank), seen, Kind::Environment)
            }
            Inbound::Message(FromWorker::Leaving { reason }) => {
                (Blame::Direct, None, format!("told to end by {reason}"), Kind::Environment)
            }
            Inbound::Message(message) => return Ok(Some(message)),
            Inbound::Gone(seen) => (Blame::Direct, None, seen, Kind::Environment),
        };
        let failure = Failure { rank, host, phase: phase.to_owned(), seen };
        Err(Box::new(Report { blame, failure, kind }))
    }

    /// How long to listen for somebody who knows better.
    fn listen_longer(&self, blame: Blame) -> Duration {
        match blame {
            // what is already on its way
            Blame::Direct => Duration::from_millis(200),
            Blame::Silent => Duration::from_millis(500),
            // until silence would have been noticed
            Blame::HearSay => self.beat * (MISSED + 1),
        }
    }

    /// Gathers the reports that one loss causes and makes an error of them.
    pub(super) async fn who_is_to_blame(&mut self, first: Report, phase: &str) -> TrialError {
        let mut until = Instant::now() + self.listen_longer(first.blame);
        let mut reports = vec![first];
        while Instant::now() < until {
            let wait = until.saturating_duration_since(Instant::now());
            let report = match tokio::time::timeout(wait, self.happens()).await {
                // the user's own Ctrl-C reaches local workers too, and is no loss
                Ok(Err(interrupted)) => return interrupted,
                Ok(Ok(Happened::Inbound(id, inbound))) => match self.place(id) {
                    Some(place) => self.judge(place, inbound, phase).err().map(|report| *report),
                    None => None,
                },
                Ok(Ok(Happened::Joined(_) | Happened::Quiet)) | Err(_) => {
                    self.silent().map(|(place, silent)| {
                        // said once: it stays silent
                        self.list[place].heard = Instant::now();
                        Report::silent(&self.list[place].hello.name, silent, phase)
                    })
                }
            };
            if let Some(report) = report {
                until = until.min(Instant::now() + self.listen_longer(report.blame));
                reports.push(report);
            }
        }
        reports.sort_by_key(|report| report.blame);
        let kind = reports.first().map_or(Kind::Environment, |report| report.kind);
        TrialError::lost(reports.into_iter().map(|report| report.failure).collect(), kind)
    }
}
