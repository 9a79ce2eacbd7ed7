//! Measuring: which ranks, which case, how often, and when it is enough.

use std::time::{Duration, Instant};

use ncclctl_findings::Evidence;
use ncclctl_findings::evidence::{Failure, Phase, Point};
use ncclctl_nccl::{Collective, DataType, RedOp};

use super::workers::Workers;
use super::{Sink, blame, budget, evidence, fit, others};
use crate::counters::HostCounters;
use crate::engine::{Batch, BatchTimes, Case, Setup};
use crate::error::{Kind, TrialError};
use crate::event::Event;
use crate::message::{Answer, Step, ToWorker};
use crate::plan::TrialPlan;
use crate::stats;

/// Time that one sample should take: long against a clock reading and a context switch.
const SAMPLE: Duration = Duration::from_millis(2);

/// Time between two decisions of the coordinator.
const BATCH: Duration = Duration::from_millis(40);

/// Samples after which precision may end the measuring.
const FEWEST: usize = 5;

/// Samples that are taken even where the time is used up: fewer have no spread.
const LEAST: usize = 2;

/// A rank's time over the median of all from which it stands out.
const STANDS_OUT: f64 = 1.2;

/// Two batches within this share of each other are steady.
const STEADY: f64 = 0.05;

/// Streaming time of one measurement of the paths.
const PATHS: Duration = Duration::from_millis(500);

/// Runs the plan over all workers, or over each subset that it names.
pub(super) async fn trials(
    plan: &TrialPlan,
    workers: &mut Workers,
    sink: Sink<'_>,
) -> Result<Evidence, TrialError> {
    let (plan, left_out) = fit::fitting(plan, &workers.list);
    let plan = &plan;
    if let Some(text) = &left_out {
        sink(Event::Note { text: text.clone() });
    }
    let all = workers.list.len();
    let mut sizes: Vec<usize> =
        plan.sweep_workers.iter().copied().filter(|n| *n > 0 && *n <= all).collect();
    if sizes.is_empty() {
        sizes.push(all);
    }
    sizes.sort_unstable();
    sizes.dedup();
    let mut series = Vec::new();
    let share = plan.time_limit / sizes.len() as u32;
    let mut last = Evidence::default();
    for (index, size) in sizes.iter().enumerate() {
        last = Evidence::default();
        let result = one(plan, workers, *size, share, &mut last, sink).await;
        pass_on_lines(workers, sink);
        // the largest subset comes last: its evidence is judged, the others' rows are kept before it
        let moved = series.len();
        series.append(&mut last.series);
        for window in &mut last.wire {
            window.point += moved;
        }
        for window in &mut last.cpu {
            window.point += moved;
        }
        if let Err(mut error) = result {
            last.series = series;
            last.failures = std::mem::take(&mut error.evidence.failures);
            error.evidence = Box::new(last);
            return Err(error);
        }
        if index + 1 < sizes.len() {
            workers.stop_ranks().await?;
        }
    }
    last.series = series;
    last.not_measured.extend(left_out);
    let too_many: Vec<String> =
        plan.sweep_workers.iter().filter(|n| !sizes.contains(n)).map(usize::to_string).collect();
    if !too_many.is_empty() {
        let text = format!("sweep over {} workers: there are {all}", too_many.join(", "));
        last.not_measured.push(text);
    }
    if plan.paths && plan.engine == "tcp" {
        others::measure(plan, workers, &mut last).await;
    }
    Ok(last)
}

/// Tells what ranks wrote since the last time.
fn pass_on_lines(workers: &mut Workers, sink: Sink<'_>) {
    for (rank, host, line) in std::mem::take(&mut workers.said) {
        sink(Event::RankSaid { rank, host, line });
    }
}

/// One trial over the first `size` workers. What has been gathered is in `evidence` even where it fails.
async fn one(
    plan: &TrialPlan,
    workers: &mut Workers,
    size: usize,
    time_limit: Duration,
    evidence: &mut Evidence,
    sink: Sink<'_>,
) -> Result<(), TrialError> {
    *evidence = start(plan, workers, size, sink).await?;
    pass_on_lines(workers, sink);
    let ranks = evidence.ranks.len();
    let reduces = plan.cases.iter().find(|case| case.collective.reduces());
    if plan.paths && ranks > 1 {
        paths(workers, evidence, Phase::Before, sink).await?;
        let case = reduces.copied().unwrap_or(Case {
            collective: Collective::AllReduce,
            dtype: DataType::Float32,
            op: RedOp::Sum,
            root: 0,
            bytes: plan.largest(),
            in_place: false,
        });
        let step = Step::ReduceRate { case, duration: Duration::from_millis(200) };
        let rates = workers
            .every_rank("measuring the reduction", step, |answer| match answer {
                Answer::Reduced { rate_bps } => Some(rate_bps),
                _ => None,
            })
            .await?;
        evidence.reduce_bps = rates.into_iter().flatten().collect();
    }
    let deadline = Instant::now() + time_limit;
    let total = plan.cases.len() * plan.cycles.max(1) as usize;
    let shares = budget::shares(&plan.cases, evidence);
    let mut done = 0;
    for cycle in 0..plan.cycles.max(1) {
        for (number, case) in plan.cases.iter().enumerate() {
            let later: f64 = shares[number..].iter().sum();
            let cycles = f64::from(plan.cycles.max(1) - cycle - 1);
            let weight = shares[number] / (later + cycles * shares.iter().sum::<f64>());
            let left = deadline.saturating_duration_since(Instant::now());
            let place = Place { index: done, total, budget: left.mul_f64(weight.clamp(0.0, 1.0)) };
            let measured = measure(plan, workers, evidence, *case, &place, sink).await?;
            let index = evidence.series.len();
            evidence.series.push(measured.point);
            evidence::windows(evidence, workers, index, &measured.before, &measured.after);
            pass_on_lines(workers, sink);
            done += 1;
        }
    }
    if plan.paths && ranks > 1 {
        paths(workers, evidence, Phase::After, sink).await?;
        if plan.iterations.is_none() {
            again(plan, workers, evidence, time_limit / 3, sink).await?;
        }
        finish(plan, workers, evidence).await?;
        if ncclctl_findings::verdict::wants_pairs(evidence) {
            sink(Event::Note {
                text: "slower than expected: probing every pair to find who is slow".to_owned(),
            });
            blame::pairs(workers, evidence, sink).await?;
        }
    } else {
        finish(plan, workers, evidence).await?;
    }
    Ok(())
}

/// Measures once more what looks too slow, and keeps the better figure of each line. What else runs
/// on the hosts makes a collective slower, never faster: a slowness that is the network's is still
/// there the second time.
async fn again(
    plan: &TrialPlan,
    workers: &mut Workers,
    evidence: &mut Evidence,
    time_limit: Duration,
    sink: Sink<'_>,
) -> Result<(), TrialError> {
    let slow = ncclctl_findings::verdict::too_slow(evidence);
    if slow.is_empty() {
        return Ok(());
    }
    let lines = if slow.len() == 1 { "1 line".to_owned() } else { format!("{} lines", slow.len()) };
    sink(Event::Note { text: format!("slower than expected: measuring {lines} again") });
    let cases: Vec<Case> = slow.iter().map(|index| plan.cases[index % plan.cases.len()]).collect();
    let shares = budget::shares(&cases, evidence);
    let all: f64 = shares.iter().sum();
    for (number, (index, case)) in slow.iter().zip(&cases).enumerate() {
        let budget = time_limit.mul_f64((shares[number] / all).clamp(0.0, 1.0));
        let place = Place { index: number, total: cases.len(), budget };
        let mut measured = measure(plan, workers, evidence, *case, &place, sink).await?;
        pass_on_lines(workers, sink);
        let Some(old) = evidence.series.get_mut(*index) else { continue };
        // wrong data is never measured away
        if measured.point.busbw <= old.busbw || old.wrong > Some(0) {
            old.earlier_busbw.push(measured.point.busbw);
            continue;
        }
        measured.point.earlier_busbw = std::mem::take(&mut old.earlier_busbw);
        measured.point.earlier_busbw.push(old.busbw);
        *old = measured.point;
        evidence.wire.retain(|window| window.point != *index);
        evidence.cpu.retain(|window| window.point != *index);
        evidence::windows(evidence, workers, *index, &measured.before, &measured.after);
    }
    paths(workers, evidence, Phase::After, sink).await
}

/// Takes from the ranks what is left to tell.
async fn finish(
    plan: &TrialPlan,
    workers: &mut Workers,
    evidence: &mut Evidence,
) -> Result<(), TrialError> {
    if plan.engine == "tcp" {
        return Ok(());
    }
    let remains = workers
        .every_rank("leaving", Step::Finish, |answer| match answer {
            Answer::Finished { remains } => Some(remains),
            _ => None,
        })
        .await?;
    if remains.iter().any(|r| !r.edges.is_empty()) {
        evidence.edges = remains.iter().flat_map(|r| r.edges.clone()).collect();
    }
    for rank in remains {
        evidence.nccl.extend(rank.nccl);
        evidence.gpus.extend(rank.gpu);
    }
    Ok(())
}

/// Starts fresh ranks and connects them.
pub(super) async fn start(
    plan: &TrialPlan,
    workers: &mut Workers,
    size: usize,
    sink: Sink<'_>,
) -> Result<Evidence, TrialError> {
    let mut nonce = [0; 16];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut nonce)
        .map_err(|_| TrialError::environment("the system gives no random numbers"))?;
    let ranks: usize = workers.list[..size].iter().map(|worker| worker.hello.ranks).sum();
    sink(Event::TrialStarted { engine: plan.engine.clone(), ranks });
    let mut next = 0;
    for worker in &mut workers.list[..size] {
        worker.ranks = (next..next + worker.hello.ranks).collect();
        next += worker.hello.ranks;
    }
    let (_, of_worker) = evidence::hosts(workers);
    let mut gpus = vec![0; size];
    for (index, host) in of_worker.iter().enumerate() {
        let setups = workers.list[index]
            .ranks
            .iter()
            .map(|rank| {
                let gpu = gpus[*host];
                gpus[*host] += 1;
                Setup {
                    rank: *rank,
                    ranks,
                    nonce,
                    settings: plan.settings.clone(),
                    largest: plan.largest(),
                    gpu: Some(gpu),
                    deadline: plan.deadline,
                    nccl: plan.nccl.clone(),
                }
            })
            .collect();
        let order = ToWorker::Start { engine: plan.engine.clone(), setups };
        workers.tell(index, &order)?;
    }
    let limit = workers.patience();
    let opened = workers
        .answers(limit, "starting", |answer| match answer {
            Answer::Opened { contact, pid, rank, ranks, nonce } => {
                Some((contact, pid, (rank, ranks, nonce)))
            }
            _ => None,
        })
        .await?;
    for (rank, (_, _, world)) in opened.iter().enumerate() {
        if *world != (rank, ranks, nonce) {
            let owner = workers.list.iter().find(|worker| worker.ranks.contains(&rank));
            let host = owner.map_or_else(String::new, |worker| worker.hello.name.clone());
            let seen =
                format!("believes to be rank {} of {}, it is {rank} of {ranks}", world.0, world.1);
            let message = format!("not one job: rank {rank} on {host} {seen}");
            let phase = "not-one-job".to_owned();
            let failure = Failure { rank: Some(rank), host, phase, seen };
            let mut error = TrialError::lost(vec![failure], Kind::Environment);
            error.message = message;
            return Err(error);
        }
    }
    let pids: Vec<u32> = opened.iter().map(|(_, pid, _)| *pid).collect();
    let contacts = opened.into_iter().map(|(contact, ..)| contact).collect();
    let connected = workers
        .every_rank("connecting", Step::Connect { contacts }, |answer| match answer {
            Answer::Connected { connected } => Some(connected),
            _ => None,
        })
        .await?;
    let evidence = evidence::begin(plan, workers, &pids, connected);
    for (index, rank) in evidence.ranks.iter().enumerate() {
        let interfaces: Vec<String> = rank
            .interfaces
            .iter()
            .map(|i| format!("{} {} ({})", i.name, i.address, i.rule))
            .collect();
        let host = evidence.hosts.get(rank.host).map_or_else(String::new, |h| h.name.clone());
        sink(Event::RankReady { rank: index, host, interfaces: interfaces.join(", ") });
    }
    Ok(evidence)
}

/// Raw streams over all edges of the ring at once.
async fn paths(
    workers: &mut Workers,
    evidence: &mut Evidence,
    phase: Phase,
    sink: Sink<'_>,
) -> Result<(), TrialError> {
    let ranks = evidence.ranks.len();
    let ring = (0..ranks).map(|rank| (rank, (rank + 1) % ranks)).collect();
    let paths = blame::stream(workers, ring, PATHS, phase).await?;
    sink(Event::PathsMeasured { paths: paths.clone() });
    evidence.paths.extend(paths);
    Ok(())
}

/// Where a case stands in the trial.
struct Place {
    index: usize,
    total: usize,
    budget: Duration,
}

/// One line of the table, and the hosts' counters around it.
struct Measured {
    point: Point,
    before: Vec<HostCounters>,
    after: Vec<HostCounters>,
}

/// Samples so far, and how many operations made them.
#[derive(Default)]
struct Gathered {
    samples: Vec<f64>,
    by_rank: Vec<Vec<f64>>,
    operations: u64,
    algorithm: String,
    protocol: Option<String>,
}

impl Gathered {
    fn add(&mut self, times: Vec<BatchTimes>, operations: u32) {
        let samples = times.iter().map(|t| t.samples_us.len()).min().unwrap_or(0);
        self.by_rank.resize(times.len(), Vec::new());
        for (all, new) in self.by_rank.iter_mut().zip(&times) {
            all.extend(new.samples_us.iter().take(samples));
        }
        for sample in 0..samples {
            let over_ranks: Vec<f64> = times.iter().map(|t| t.samples_us[sample]).collect();
            self.samples.push(stats::mean(&over_ranks));
        }
        self.operations += samples as u64 * u64::from(operations);
        if let Some(first) = times.into_iter().next() {
            self.algorithm = first.algorithm;
            self.protocol = first.protocol;
        }
    }

    /// The rank whose time stands out from the others'.
    fn slowest(&self) -> Option<usize> {
        let means: Vec<f64> = self.by_rank.iter().map(|samples| stats::mean(samples)).collect();
        let mut sorted = means.clone();
        sorted.sort_by(f64::total_cmp);
        // the lower median: of two ranks, the other one
        let usual = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
        let (rank, most) = means.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
        (*most > STANDS_OUT * usual).then_some(rank)
    }

    fn precision(&self) -> f64 {
        let mean = stats::mean(&self.samples);
        if mean > 0.0 { stats::half_width(&self.samples) / mean } else { 0.0 }
    }
}

/// Measures one case: calibrates, warms up until steady, repeats until precise or out of time, checks.
async fn measure(
    plan: &TrialPlan,
    workers: &mut Workers,
    evidence: &Evidence,
    case: Case,
    place: &Place,
    sink: Sink<'_>,
) -> Result<Measured, TrialError> {
    let ranks = evidence.ranks.len();
    let layout = case.collective.layout(case.bytes, case.dtype, ranks);
    let what = format!("{} {}", case.collective, ncclctl_nccl::size::Short(layout.size));
    let started = Instant::now();
    let mut warmup = 0;
    let rhythm = warm_up(plan, workers, case, place.budget, &mut warmup).await?;
    let before = workers.count().await?;
    let mut gathered = Gathered::default();
    loop {
        let batch = match plan.iterations {
            Some(wanted) => {
                let left = u64::from(wanted).saturating_sub(gathered.operations);
                if left == 0 {
                    break;
                }
                rhythm.part_of(left, case)
            }
            None => {
                let left = place.budget.saturating_sub(started.elapsed());
                rhythm.within(left, case, gathered.samples.len())
            }
        };
        let times = run(workers, batch, Some(rhythm.length())).await?;
        gathered.add(times, batch.operations);
        let time_us = stats::mean(&gathered.samples);
        let busbw = rate(&layout, time_us) * case.collective.busbw_factor(ranks);
        sink(Event::SizeProgress {
            case: place.index,
            cases: place.total,
            what: what.clone(),
            busbw,
            precision: gathered.precision(),
            slowest_rank: gathered.slowest(),
        });
        if plan.iterations.is_some() {
            continue;
        }
        let samples = gathered.samples.len();
        let precise = samples >= FEWEST && gathered.precision() <= plan.precision;
        if precise || (samples >= LEAST && started.elapsed() >= place.budget) {
            break;
        }
    }
    let after = workers.count().await?;
    let converged = gathered.precision() <= plan.precision;
    let rank_mean_us = gathered.by_rank.iter().map(|samples| stats::mean(samples)).collect();
    let mut time = stats::timing(gathered.samples, rank_mean_us);
    time.operations = gathered.operations;
    time.warmup = warmup;
    time.converged = converged;
    let (wrong, wrong_ranks) =
        if plan.check && (case.collective.checked_in_place() || !case.in_place) {
            verify(workers, case).await?
        } else {
            (None, Vec::new())
        };
    let algbw = rate(&layout, time.mean_us);
    let point = Point {
        collective: case.collective,
        dtype: case.dtype,
        op: case.collective.reduces().then_some(case.op),
        root: case.collective.has_root().then_some(case.root),
        in_place: case.in_place,
        size: layout.size,
        count: layout.count as u64,
        ranks,
        algorithm: gathered.algorithm,
        protocol: gathered.protocol,
        algbw,
        busbw: algbw * case.collective.busbw_factor(ranks),
        earlier_busbw: Vec::new(),
        time,
        wrong,
        wrong_ranks,
    };
    sink(Event::SizeDone { point: Box::new(point.clone()) });
    Ok(Measured { point, before, after })
}

/// Gigabytes per second of the size column.
fn rate(layout: &ncclctl_nccl::collective::Layout, time_us: f64) -> f64 {
    if time_us > 0.0 { layout.size as f64 / time_us / 1e3 } else { 0.0 }
}

/// How many operations make a sample and how many samples a batch.
#[derive(Clone, Copy)]
struct Rhythm {
    time_us: f64,
    operations: u32,
    samples: u32,
}

impl Rhythm {
    fn of(time_us: f64) -> Self {
        let fit = |length: Duration, of: f64, most: f64| {
            (length.as_secs_f64() * 1e6 / of.max(0.01)).clamp(1.0, most) as u32
        };
        let operations = fit(SAMPLE, time_us, 100_000.0);
        let samples = fit(BATCH, time_us * f64::from(operations), 20.0);
        Self { time_us, operations, samples }
    }

    /// Time that a batch will take.
    fn length(self) -> Duration {
        let us = self.time_us * f64::from(self.operations) * f64::from(self.samples);
        Duration::try_from_secs_f64(us / 1e6).unwrap_or_default()
    }

    /// A batch that ends about when the time does; what is still missing of the least samples anyway.
    fn within(self, left: Duration, case: Case, have: usize) -> Batch {
        let sample = self.time_us * f64::from(self.operations) / 1e6;
        let fit = (left.as_secs_f64() / sample.max(1e-6)) as u32;
        let missing = LEAST.saturating_sub(have) as u32;
        let samples = self.samples.min(fit).max(missing).max(1);
        Batch { case, samples, operations: self.operations }
    }

    /// At most this many operations, as one batch.
    fn part_of(self, left: u64, case: Case) -> Batch {
        let operations = u64::from(self.operations).min(left.div_ceil(FEWEST as u64)).max(1);
        let samples = (left / operations).clamp(1, u64::from(self.samples));
        Batch { case, samples: samples as u32, operations: operations as u32 }
    }
}

/// Runs until two batches in a row agree, or a third of the time is used.
async fn warm_up(
    plan: &TrialPlan,
    workers: &mut Workers,
    case: Case,
    budget: Duration,
    warmup: &mut u64,
) -> Result<Rhythm, TrialError> {
    let started = Instant::now();
    let mean_of = |times: &[BatchTimes]| {
        stats::mean(&times.iter().map(|t| stats::mean(&t.samples_us)).collect::<Vec<_>>())
    };
    if let Some(0) = plan.warmup {
        // nothing may run before what is timed: take every operation as its own sample
        return Ok(Rhythm { time_us: 0.0, operations: 1, samples: FEWEST as u32 });
    }
    let first = Batch { case, samples: 1, operations: plan.warmup.unwrap_or(1) };
    let mut last = mean_of(&run(workers, first, None).await?);
    *warmup += u64::from(first.operations);
    let mut rhythm = Rhythm::of(last);
    if plan.warmup.is_some() {
        return Ok(rhythm);
    }
    for _ in 0..20 {
        let part = Rhythm { samples: rhythm.samples.div_ceil(4), ..rhythm };
        if started.elapsed() + part.length() > budget / 3 {
            break;
        }
        let batch = Batch { case, samples: part.samples, operations: part.operations };
        let now = mean_of(&run(workers, batch, Some(part.length())).await?);
        *warmup += u64::from(batch.samples) * u64::from(batch.operations);
        rhythm = Rhythm::of(now);
        let steady = (now - last).abs() <= STEADY * last.max(now);
        last = now;
        if steady {
            break;
        }
    }
    Ok(rhythm)
}

/// Runs a batch that should take `length`, where something is known of it.
async fn run(
    workers: &mut Workers,
    batch: Batch,
    length: Option<Duration>,
) -> Result<Vec<BatchTimes>, TrialError> {
    let limit = match length {
        Some(length) => workers.patience() + length * 20,
        None => workers.patience() * batch.operations.max(1),
    };
    workers
        .every_rank_within(limit, "running", Step::Run { batch }, |answer| match answer {
            Answer::Ran { times } => Some(times),
            _ => None,
        })
        .await
}

/// Every rank answers once: nobody is past before everybody is there.
pub(super) async fn barrier(workers: &mut Workers) -> Result<(), TrialError> {
    let case = Case {
        collective: Collective::AllReduce,
        dtype: DataType::Float32,
        op: RedOp::Sum,
        root: 0,
        bytes: 8,
        in_place: true,
    };
    run(workers, Batch { case, samples: 1, operations: 1 }, None).await.map(|_| ())
}

async fn verify(
    workers: &mut Workers,
    case: Case,
) -> Result<(Option<u64>, Vec<usize>), TrialError> {
    let checked = workers
        .every_rank("checking results", Step::Verify { case }, |answer| match answer {
            Answer::Verified { checked } => Some(checked.wrong),
            _ => None,
        })
        .await?;
    let wrong_ranks =
        checked.iter().enumerate().filter(|(_, wrong)| **wrong > 0).map(|(rank, _)| rank).collect();
    Ok((Some(checked.iter().sum()), wrong_ranks))
}
