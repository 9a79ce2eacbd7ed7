//! The coordinator against workers, ranks and strangers that misbehave.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use ncclctl_nccl::{Collective, DataType, RedOp};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Places, run};
use crate::engine::{Case, Contact};
use crate::error::{Kind, TrialError};
use crate::event::Event;
use crate::frame;
use crate::message::{Answer, FromWorker, Hello, Join, PROTOCOL, ToWorker};
use crate::plan::TrialPlan;
use crate::tls;
use crate::token::Token;
use crate::worker::{self, Ended, Options, Source, WorkerError};

const LONG: Duration = Duration::from_secs(60);

fn plan() -> TrialPlan {
    let mut plan = TrialPlan::new("tcp");
    plan.cases.push(Case {
        collective: Collective::AllReduce,
        dtype: DataType::Float32,
        op: RedOp::Sum,
        root: 0,
        bytes: 1024,
        in_place: false,
    });
    plan.iterations = Some(20);
    plan.paths = false;
    plan
}

/// A running coordinator.
struct Running {
    address: SocketAddr,
    token: Token,
    wanted: usize,
    events: mpsc::Receiver<Event>,
    result: mpsc::Receiver<Result<ncclctl_findings::Evidence, TrialError>>,
}

fn coordinate(plan: TrialPlan, workers: usize) -> Running {
    let token = Token::new().unwrap();
    let places = Places::Join {
        address: "127.0.0.1:0".to_owned(),
        workers,
        token: token.clone(),
        token_hint: String::new(),
    };
    let (tell, events) = mpsc::channel();
    let (end, result) = mpsc::channel();
    std::thread::spawn(move || {
        let mut sink = |event| {
            let _ = tell.send(event);
        };
        let _ = end.send(run(&plan, places, &mut sink));
    });
    let Ok(Event::Listening { address, .. }) = events.recv_timeout(LONG) else {
        panic!("the first event says where it listens")
    };
    Running { address: address.parse().unwrap(), token, wanted: workers, events, result }
}

impl Running {
    fn ends(self) -> Result<ncclctl_findings::Evidence, TrialError> {
        self.result.recv_timeout(LONG).expect("the coordinator ends")
    }

    /// Waits until this many have joined.
    fn joined(&self, number: usize) {
        loop {
            let event = self.events.recv_timeout(LONG).expect("workers join");
            if matches!(event, Event::WorkerJoined { joined, .. } if joined == number) {
                return;
            }
        }
    }

    /// A worker that does everything right.
    fn good(&self, name: &str, index: Option<usize>) -> mpsc::Receiver<Result<Ended, WorkerError>> {
        let (address, token) = (self.address.to_string(), self.token.clone());
        let options = Options {
            index,
            world: index.map(|_| self.wanted),
            name: Some(name.to_owned()),
            ranks: 1,
            patience: LONG,
            rank_program: Default::default(),
        };
        let (tell, result) = mpsc::channel();
        std::thread::spawn(move || {
            let served =
                runtime().block_on(worker::serve_from(&address, &token, options, Source::StandIn));
            let _ = tell.send(served);
        });
        result
    }

    /// A worker played by hand, up to what it says of itself.
    async fn fake(&self, name: &str, change: impl FnOnce(&mut Join, &mut Hello)) -> Fake {
        self.fake_with(&self.token, name, change).await
    }

    async fn fake_with(
        &self,
        token: &Token,
        name: &str,
        change: impl FnOnce(&mut Join, &mut Hello),
    ) -> Fake {
        let connector = TlsConnector::from(tls::client(&self.token).unwrap());
        let tcp = TcpStream::connect(self.address).await.unwrap();
        let server = rustls::pki_types::ServerName::from(std::net::IpAddr::from([127, 0, 0, 1]));
        let stream = connector.connect(server, tcp).await.unwrap();
        let exported = tls::exported(stream.get_ref().1).unwrap();
        let mut join = Join { protocol: PROTOCOL, proof: tls::proof(token, &exported) };
        let mut hello = Hello {
            index: None,
            world: Some(self.wanted),
            name: name.to_owned(),
            ranks: 1,
            host: Default::default(),
            version: "test".to_owned(),
        };
        change(&mut join, &mut hello);
        let mut fake = Fake { stream };
        fake.say(&join).await;
        fake.say(&hello).await;
        fake
    }
}

struct Fake {
    stream: TlsStream<TcpStream>,
}

impl Fake {
    async fn say(&mut self, message: &impl serde::Serialize) {
        let _ = frame::write(&mut self.stream, &frame::encode(message).unwrap()).await;
    }

    async fn hear(&mut self) -> Option<ToWorker> {
        tokio::time::timeout(LONG, frame::read(&mut self.stream, frame::LARGEST))
            .await
            .expect("the coordinator says something or closes")
            .ok()
            .flatten()
    }

    /// Beats until it is told to start, and gives the setup of its rank.
    async fn started(&mut self) -> crate::engine::Setup {
        loop {
            match self.hear().await.expect("it is told to start") {
                ToWorker::Start { mut setups, .. } => return setups.remove(0),
                _ => self.say(&FromWorker::Beat).await,
            }
        }
    }

    fn opened(setup: &crate::engine::Setup, ranks: usize) -> FromWorker {
        let answer = Answer::Opened {
            contact: Contact { body: vec![1], shown: "fake".to_owned() },
            pid: 1,
            rank: setup.rank,
            ranks,
            nonce: setup.nonce,
        };
        FromWorker::Rank { rank: setup.rank, answer }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn strangers_are_kept_out_and_the_trial_goes_on() {
    let running = coordinate(plan(), 2);
    let first = running.good("a", None);
    let held = runtime().block_on(async {
        let mut held = Vec::new();
        for bytes in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"\x16\x03\x01",
            b"\x80\x2e\x01\x00\x02",
            &[0xff; 4096],
            b"",
        ] {
            let mut tcp = TcpStream::connect(running.address).await.unwrap();
            tcp.write_all(bytes).await.unwrap();
            held.push(tcp);
        }
        // more that say nothing than may wait: the oldest are pushed out, nobody else is harmed
        for _ in 0..1500 {
            held.push(TcpStream::connect(running.address).await.unwrap());
        }
        // the right server, and a proof made with another token
        let other = Token::new().unwrap();
        let mut fake = running.fake_with(&other, "liar", |_, _| {}).await;
        assert!(fake.hear().await.is_none(), "a wrong proof is answered by silence");
        // a length that can not be
        let mut fake = running.fake("long", |join, _| join.protocol = 0).await;
        assert!(matches!(fake.hear().await, Some(ToWorker::Refused { .. })));
        // another token altogether: the worker finds it out, the coordinator sees a broken handshake
        let connector = TlsConnector::from(tls::client(&other).unwrap());
        let tcp = TcpStream::connect(running.address).await.unwrap();
        let name = rustls::pki_types::ServerName::from(std::net::IpAddr::from([127, 0, 0, 1]));
        assert!(connector.connect(name, tcp).await.is_err());
        held
    });
    let second = running.good("b", None);
    let evidence = running.ends().unwrap();
    assert_eq!((evidence.ranks.len(), evidence.series.len()), (2, 1));
    for worker in [first, second] {
        assert_eq!(worker.recv_timeout(LONG).unwrap().unwrap(), Ended::Finished);
    }
    drop(held);
}

#[test]
fn another_version_is_told_so() {
    let mut plan = plan();
    plan.rendezvous = Duration::from_millis(500);
    let running = coordinate(plan, 1);
    let heard = runtime().block_on(async {
        running.fake("old", |join, _| join.protocol = PROTOCOL + 1).await.hear().await
    });
    let Some(ToWorker::Refused { reason }) = heard else { panic!("{heard:?}") };
    assert!(reason.contains("same ncclctl"), "{reason}");
    let error = running.ends().unwrap_err();
    assert!(error.message.contains("same ncclctl"), "{}", error.message);
}

#[test]
fn who_never_came_is_counted_and_named() {
    let mut plan = plan();
    plan.rendezvous = Duration::from_millis(800);
    let running = coordinate(plan, 3);
    let first = running.good("a", Some(0));
    let third = running.good("c", Some(2));
    let error = running.ends().unwrap_err();
    assert_eq!(error.kind, Kind::Environment);
    let (head, tail) = error.message.split_once(" (").unwrap();
    assert_eq!(head, "2 of 3 workers joined within 800ms");
    assert!(tail.contains("missing: number 1;"), "{}", error.message);
    for worker in [first, third] {
        let end = worker.recv_timeout(LONG).unwrap().unwrap_err();
        assert!(matches!(&end, WorkerError::Aborted { .. }), "{end:?}");
    }
}

#[test]
fn two_of_the_same_number_or_of_another_job_are_not_one_job() {
    for (change, text) in [
        (
            (|hello: &mut Hello| hello.index = Some(0)) as fn(&mut Hello),
            "not one job: workers a and b both are number 0",
        ),
        (
            |hello| (hello.index, hello.world) = (Some(1), Some(8)),
            "not one job: worker b belongs to a job of 8, this one has 2",
        ),
        (|hello| hello.index = Some(7), "not one job: worker b is number 7 of 2"),
        (|hello| hello.ranks = 0, "not one job: worker b offers no rank"),
    ] {
        let running = coordinate(plan(), 2);
        let _first = running.good("a", Some(0));
        running.joined(1);
        let heard = runtime()
            .block_on(async { running.fake("b", |_, hello| change(hello)).await.hear().await });
        assert!(matches!(heard, Some(ToWorker::Refused { .. })), "{heard:?}");
        let error = running.ends().unwrap_err();
        assert_eq!(error.message, text);
        assert_eq!(error.evidence.failures[0].phase, "not-one-job");
    }
}

#[test]
fn numbers_of_several_launches_are_only_an_order() {
    let running = coordinate(plan(), 2);
    let first = running.good("a", Some(0));
    running.joined(1);
    let address = running.address.to_string();
    let options = Options {
        index: Some(0),
        world: None,
        name: Some("b".to_owned()),
        ranks: 1,
        patience: LONG,
        rank_program: Default::default(),
    };
    let served = worker::serve_from(&address, &running.token, options, Source::StandIn);
    runtime().block_on(served).unwrap();
    running.ends().unwrap();
    first.recv_timeout(LONG).unwrap().unwrap();
}

#[test]
fn a_rank_that_runs_alone_is_not_one_job() {
    let running = coordinate(plan(), 2);
    let _good = running.good("a", Some(0));
    running.joined(1);
    let heard = runtime().block_on(async {
        let mut fake = running.fake("b", |_, hello| hello.index = Some(1)).await;
        let setup = fake.started().await;
        fake.say(&Fake::opened(&setup, 1)).await;
        fake.hear().await
    });
    assert!(heard.is_some());
    let error = running.ends().unwrap_err();
    assert_eq!(error.message, "not one job: rank 1 on b believes to be rank 1 of 1, it is 1 of 2");
    assert_eq!(error.evidence.failures[0].phase, "not-one-job");
}

#[test]
fn one_that_leaves_before_the_start_is_replaced() {
    let running = coordinate(plan(), 2);
    let first = running.good("a", None);
    running.joined(1);
    runtime().block_on(async {
        let mut fake = running.fake("weak", |_, _| {}).await;
        // with the second one the trial would start: it is the same one that is lost
        assert!(matches!(fake.hear().await, Some(ToWorker::Welcome { .. })));
    });
    let error = running.ends().unwrap_err();
    assert!(error.message.contains("weak"), "{}", error.message);
    drop(first);

    let running = coordinate(plan(), 3);
    let first = running.good("a", Some(0));
    running.joined(1);
    runtime().block_on(async {
        let mut fake = running.fake("weak", |_, hello| hello.index = Some(1)).await;
        assert!(matches!(fake.hear().await, Some(ToWorker::Welcome { .. })));
    });
    loop {
        match running.events.recv_timeout(LONG).unwrap() {
            Event::Note { text } => {
                assert!(text.starts_with("worker weak left before"), "{text}");
                break;
            }
            _ => continue,
        }
    }
    let second = running.good("b", Some(1));
    let third = running.good("c", Some(2));
    let evidence = running.ends().unwrap();
    assert_eq!(evidence.ranks.len(), 3);
    for worker in [first, second, third] {
        worker.recv_timeout(LONG).unwrap().unwrap();
    }
}

#[test]
fn one_that_comes_early_waits_longer_than_silence_would_last() {
    let mut plan = plan();
    plan.deadline = Duration::from_millis(1500);
    let running = coordinate(plan, 2);
    let first = running.good("early", None);
    running.joined(1);
    // eight beats of a tenth of the deadline make silence
    std::thread::sleep(Duration::from_millis(2500));
    let second = running.good("late", None);
    running.ends().unwrap();
    for worker in [first, second] {
        worker.recv_timeout(LONG).unwrap().unwrap();
    }
}

#[test]
fn one_too_many_is_told_so() {
    let running = coordinate(TrialPlan { iterations: Some(300_000), ..plan() }, 1);
    let first = running.good("a", None);
    running.joined(1);
    let extra = running.good("extra", None);
    let end = extra.recv_timeout(LONG).unwrap().unwrap_err();
    let WorkerError::Refused { reason, .. } = end else { panic!("{end:?}") };
    assert!(reason.contains("all its workers"), "{reason}");
    running.ends().unwrap();
    first.recv_timeout(LONG).unwrap().unwrap();
}

#[test]
fn a_worker_that_goes_away_is_named_and_what_was_measured_is_kept() {
    let running = coordinate(plan(), 3);
    let others = [running.good("a", Some(0)), running.good("b", Some(1))];
    running.joined(2);
    runtime().block_on(async {
        let mut fake = running.fake("c", |_, hello| hello.index = Some(2)).await;
        let setup = fake.started().await;
        fake.say(&Fake::opened(&setup, 3)).await;
        while !matches!(fake.hear().await, Some(ToWorker::Ranks { .. })) {}
        let connected = Answer::Connected { connected: Default::default() };
        fake.say(&FromWorker::Rank { rank: 2, answer: connected }).await;
        while !matches!(fake.hear().await, Some(ToWorker::Ranks { .. })) {}
    });
    let error = running.ends().unwrap_err();
    assert!(error.message.starts_with("worker c during "), "{}", error.message);
    assert!(error.message.contains("the process ended"), "{}", error.message);
    assert_eq!(error.evidence.ranks.len(), 3);
    for worker in others {
        assert!(worker.recv_timeout(LONG).unwrap().is_err());
    }
}

#[test]
fn silence_is_noticed_while_everybody_else_talks() {
    let mut plan = plan();
    plan.deadline = Duration::from_secs(1);
    let running = coordinate(plan, 6);
    let others: Vec<_> = (0..5).map(|n| running.good(&format!("good{n}"), Some(n))).collect();
    running.joined(5);
    let error = runtime().block_on(async {
        let mut fake = running.fake("mute", |_, hello| hello.index = Some(5)).await;
        fake.started().await;
        // alive for the kernel, dead for everybody else
        let ended = tokio::task::spawn_blocking(move || running.ends()).await.unwrap();
        drop(fake);
        ended.unwrap_err()
    });
    assert!(error.message.starts_with("worker mute during "), "{}", error.message);
    assert!(error.message.contains("no sign of life"), "{}", error.message);
    for worker in others {
        assert!(worker.recv_timeout(LONG).unwrap().is_err());
    }
}

#[test]
fn a_rank_that_lives_and_never_answers_is_named() {
    let mut plan = plan();
    plan.deadline = Duration::from_millis(500);
    let running = coordinate(plan, 2);
    let good = running.good("a", Some(0));
    running.joined(1);
    let error = runtime().block_on(async {
        let mut fake = running.fake("b", |_, hello| hello.index = Some(1)).await;
        fake.started().await;
        let ended = tokio::task::spawn_blocking(move || running.ends());
        while !ended.is_finished() {
            fake.say(&FromWorker::Beat).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        ended.await.unwrap().unwrap_err()
    });
    assert!(
        error.message.starts_with("rank 1 on b during starting: alive, but"),
        "{}",
        error.message
    );
    assert!(good.recv_timeout(LONG).unwrap().is_err());
}

#[test]
fn the_one_who_knows_best_is_put_first() {
    let running = coordinate(plan(), 2);
    let error = runtime().block_on(async {
        let mut a = running.fake("a", |_, hello| hello.index = Some(0)).await;
        running.joined(1);
        let mut b = running.fake("b", |_, hello| hello.index = Some(1)).await;
        let (setup, _) = (a.started().await, b.started().await);
        let hearsay = Answer::Failed {
            error: crate::engine::EngineError {
                message: "lost rank 1: connection reset".to_owned(),
                kind: crate::engine::ErrorKind::PeerLost,
                peer: Some(1),
            },
        };
        a.say(&FromWorker::Rank { rank: setup.rank, answer: hearsay }).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let seen = "exited with signal 9 (killed)".to_owned();
        b.say(&FromWorker::Lost { rank: 1, seen }).await;
        let ended = tokio::task::spawn_blocking(move || running.ends()).await.unwrap();
        drop((a, b));
        ended.unwrap_err()
    });
    assert_eq!(error.message, "rank 1 on b during starting: exited with signal 9 (killed)");
    assert_eq!(error.evidence.failures.len(), 2);
}
