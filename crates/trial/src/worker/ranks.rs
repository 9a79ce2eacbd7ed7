//! The ranks of one worker: processes that it starts, listens to, and ends.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::mpsc;

use super::MISSED;
use crate::engine::Setup;
use crate::frame;
use crate::host::{self, OomKills};
use crate::message::{Answer, FromWorker, Step};
use crate::nccl::follow::Follow;

/// Longest line of a rank that is passed on, bytes; the rest of it is dropped.
const LINE: u64 = 2048;

/// Most lines of one rank that are passed on: NCCL_DEBUG=TRACE writes without end.
const LINES: u32 = 20_000;

/// Last lines of a rank that are told with its death.
const LAST_WORDS: usize = 3;

/// How long ended processes are waited for.
const END: Duration = Duration::from_secs(2);

/// Where ranks come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Fresh processes of this program with these arguments.
    Process((PathBuf, Vec<String>)),
    /// Tasks that answer every step at once and move nothing: to measure and test the control plane.
    StandIn,
}

/// One rank and the way to it.
struct Rank {
    pid: Option<u32>,
    steps: mpsc::UnboundedSender<Arc<Vec<u8>>>,
    last_sign: Instant,
    reported: bool,
    last_words: VecDeque<String>,
    lines: u32,
    /// NCCL's log, where the engine has one.
    log: Option<Follow>,
}

/// What happens to a rank.
pub(super) enum RankEvent {
    Answer(usize, Answer),
    Said(usize, String),
    Ended(usize, io::Result<ExitStatus>),
}

pub(super) struct Ranks {
    source: Source,
    beat: Duration,
    list: BTreeMap<usize, Rank>,
    events: mpsc::UnboundedSender<RankEvent>,
    inbox: mpsc::UnboundedReceiver<RankEvent>,
    oom: OomKills,
}

impl Ranks {
    pub(super) fn new(source: Source, beat: Duration) -> Self {
        let (events, inbox) = mpsc::unbounded_channel();
        Self { source, beat, list: BTreeMap::new(), events, inbox, oom: OomKills::default() }
    }

    /// Starts a rank.
    pub(super) fn start(&mut self, engine: &str, mut setup: Setup) -> io::Result<()> {
        let rank = setup.rank;
        let (steps, queue) = mpsc::unbounded_channel::<Arc<Vec<u8>>>();
        let log = if engine == "nccl" {
            let log = Follow::new(rank, &setup.nccl.log, &setup.settings)?;
            let own = host::environment();
            setup.settings.extend(crate::nccl::environment(&setup, &log.path(), own));
            Some(log)
        } else {
            None
        };
        let open = |setup| Step::Open {
            engine: engine.to_owned(),
            setup: Box::new(setup),
            beat: self.beat,
        };
        let pid = match &self.source {
            Source::StandIn => {
                let _ = steps.send(Arc::new(frame::encode(&open(setup))?));
                tokio::spawn(stand_in(rank, queue, self.events.clone(), self.beat));
                None
            }
            Source::Process(program) => {
                self.oom = OomKills::now();
                let (child, socket) = spawn(program, &setup, log.as_ref())?;
                let _ = steps.send(Arc::new(frame::encode(&open(setup))?));
                let pid = child.id();
                attend(rank, child, socket, queue, &self.events);
                pid
            }
        };
        let rank_state = Rank {
            pid,
            steps,
            last_sign: Instant::now(),
            reported: false,
            last_words: VecDeque::new(),
            lines: 0,
            log,
        };
        self.list.insert(rank, rank_state);
        Ok(())
    }

    /// Passes a step, as text, on to all.
    pub(super) fn tell(&self, step: &str) {
        let Ok(bytes) = frame::from_json(step).map(Arc::new) else { return };
        for rank in self.list.values() {
            let _ = rank.steps.send(Arc::clone(&bytes));
        }
    }

    /// Says to all that this worker is alive.
    pub(super) fn beat(&self) {
        let Ok(bytes) = frame::encode(&Step::Beat).map(Arc::new) else { return };
        for rank in self.list.values() {
            let _ = rank.steps.send(Arc::clone(&bytes));
        }
    }

    /// Process ids of those that run.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.list.values().filter_map(|rank| rank.pid).collect()
    }

    /// The next event; waits for ever where no rank runs.
    pub(super) async fn next(&mut self) -> RankEvent {
        match self.inbox.recv().await {
            Some(event) => event,
            // never closed: `self.events` sends into it
            None => std::future::pending().await,
        }
    }

    /// What the coordinator must know of an event.
    pub(super) fn note(&mut self, event: RankEvent) -> Option<FromWorker> {
        match event {
            RankEvent::Answer(rank, answer) => {
                let process = self.list.get_mut(&rank)?;
                process.last_sign = Instant::now();
                (!matches!(answer, Answer::Beat)).then_some(FromWorker::Rank { rank, answer })
            }
            RankEvent::Said(rank, line) => {
                let process = self.list.get_mut(&rank)?;
                if process.last_words.len() == LAST_WORDS {
                    process.last_words.pop_front();
                }
                process.last_words.push_back(line.clone());
                process.lines += 1;
                match process.lines {
                    n if n < LINES => Some(FromWorker::Said { rank, line }),
                    LINES => {
                        let line = format!("(more than {LINES} lines; the rest is not shown)");
                        Some(FromWorker::Said { rank, line })
                    }
                    _ => None,
                }
            }
            RankEvent::Ended(rank, status) => {
                // a rank that was told to end has been taken off the list before
                let mut process = self.list.remove(&rank)?;
                let mut seen = ended(&status, self.oom);
                if let Some(log) = &mut process.log {
                    seen.push_str(&log.last_words());
                }
                if !process.last_words.is_empty() {
                    let words: Vec<String> = process.last_words.into();
                    seen.push_str(&format!("; its last words: {}", words.join(" | ")));
                }
                (!process.reported).then_some(FromWorker::Lost { rank, seen })
            }
        }
    }

    /// Ranks that show no sign of life, each reported once.
    pub(super) fn silent(&mut self) -> Vec<FromWorker> {
        let limit = self.beat * MISSED;
        let mut lost = Vec::new();
        for (number, rank) in &mut self.list {
            if let Some(log) = &mut rank.log {
                log.pass();
            }
            let silent = rank.last_sign.elapsed();
            if silent > limit && !rank.reported {
                rank.reported = true;
                let mut seen = format!("no sign of life for {:.0} s", silent.as_secs_f64());
                if let Some(state) = rank.pid.and_then(host::process_state) {
                    seen.push_str(&format!(", process is {state}"));
                }
                lost.push(FromWorker::Lost { rank: *number, seen });
            }
        }
        lost
    }

    /// Ends every rank and waits until the kernel has taken them.
    pub(super) async fn end_all(&mut self) {
        let mut waiting = 0;
        for rank in std::mem::take(&mut self.list).into_values() {
            if let Some(pid) = rank.pid.and_then(|pid| rustix::process::Pid::from_raw(pid as i32)) {
                let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
                waiting += 1;
            }
        }
        while waiting > 0 {
            match tokio::time::timeout(END, self.inbox.recv()).await {
                Ok(Some(RankEvent::Ended(..))) => waiting -= 1,
                Ok(Some(RankEvent::Answer(..) | RankEvent::Said(..))) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }
}

/// Starts a rank's process; its standard input is a socket to this worker.
fn spawn(
    program: &(PathBuf, Vec<String>),
    setup: &Setup,
    log: Option<&Follow>,
) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let socket = UnixStream::from_std(ours)?;
    let child = tokio::process::Command::new(&program.0)
        .args(&program.1)
        .envs(&setup.settings)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(match log {
            // what NCCL prints there belongs to its log
            Some(log) => Stdio::from(log.output()?),
            None => Stdio::piped(),
        })
        .stderr(Stdio::piped())
        // a group of its own: Ctrl-C at a terminal reaches the worker, which then ends its ranks
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    Ok((child, socket))
}

/// Carries steps to a rank's process, and its answers, lines and end back.
fn attend(
    rank: usize,
    mut child: Child,
    socket: UnixStream,
    mut queue: mpsc::UnboundedReceiver<Arc<Vec<u8>>>,
    events: &mpsc::UnboundedSender<RankEvent>,
) {
    let (mut reader, mut writer) = socket.into_split();
    tokio::spawn(async move {
        while let Some(bytes) = queue.recv().await {
            if frame::write(&mut writer, &bytes).await.is_err() {
                return;
            }
        }
    });
    let mut lines = tokio::task::JoinSet::new();
    if let Some(stdout) = child.stdout.take() {
        lines.spawn(pass_on(rank, stdout, events.clone()));
    }
    if let Some(stderr) = child.stderr.take() {
        lines.spawn(pass_on(rank, stderr, events.clone()));
    }
    let events = events.clone();
    tokio::spawn(async move {
        while let Ok(Some(answer)) = frame::read(&mut reader, frame::LARGEST).await {
            let _ = events.send(RankEvent::Answer(rank, answer));
        }
        let status = child.wait().await;
        // its last words may explain its end; a grandchild that keeps the pipe open may not delay it
        let _ = tokio::time::timeout(Duration::from_millis(200), async {
            while lines.join_next().await.is_some() {}
        })
        .await;
        let _ = events.send(RankEvent::Ended(rank, status));
    });
}

/// Reads lines until the stream ends. Long ones are cut, bytes that are not UTF-8 replaced.
async fn pass_on(
    rank: usize,
    stream: impl AsyncRead + Unpin,
    events: mpsc::UnboundedSender<RankEvent>,
) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        match (&mut stream).take(LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let mut whole = line.ends_with(b"\n");
        // a terminal is not to be steered by what a library prints
        let text: String = String::from_utf8_lossy(&line)
            .trim_end()
            .chars()
            .map(|c| if c.is_control() && c != '\t' { ' ' } else { c })
            .collect();
        if !text.is_empty() && events.send(RankEvent::Said(rank, text)).is_err() {
            return;
        }
        while !whole {
            line.clear();
            match (&mut stream).take(LINE).read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return,
                Ok(_) => whole = line.ends_with(b"\n"),
            }
        }
    }
}

/// Plays a rank.
async fn stand_in(
    rank: usize,
    mut queue: mpsc::UnboundedReceiver<Arc<Vec<u8>>>,
    events: mpsc::UnboundedSender<RankEvent>,
    beat: Duration,
) {
    let mut alive = tokio::time::interval(beat);
    loop {
        let answer = tokio::select! {
            bytes = queue.recv() => {
                let Some(bytes) = bytes else { return };
                match crate::rendezvous::stand_in_answer(&bytes) {
                    Ok(answer) => answer,
                    Err(_) => return,
                }
            }
            _ = alive.tick() => Some(Answer::Beat),
        };
        if let Some(answer) = answer
            && events.send(RankEvent::Answer(rank, answer)).is_err()
        {
            return;
        }
    }
}

/// How a process ended, in words.
fn ended(status: &io::Result<ExitStatus>, oom: OomKills) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("exited with code {code}"),
            (None, Some(9)) => {
                format!("exited with signal 9 ({})", OomKills::now().explain_since(oom))
            }
            (None, Some(signal)) => match rustix::process::Signal::from_named_raw(signal) {
                Some(name) => format!("exited with signal {signal} ({name:?})"),
                None => format!("exited with signal {signal}"),
            },
            (None, None) => "ended".to_owned(),
        },
        Err(error) => format!("could not be waited for: {error}"),
    }
}
