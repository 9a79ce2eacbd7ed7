//! Death and partition: whoever is left ends in time, says who was lost, and leaves nothing behind.

use std::time::{Duration, Instant};

use e2e::binary::signal_process;
use e2e::cluster::{Trial, trial};
use e2e::lab::Lab;

/// How long the survivors may take after the fault, with the default deadline of 10 s and some room to notice.
const END: Duration = Duration::from_secs(14);

/// A trial that lasts long enough to be hurt in its middle.
const LONG: [&str; 8] = ["-b", "8M", "-e", "8M", "-n", "100000", "--time-limit", "10m"];

const KILL: i32 = 9;
const STOP: i32 = 19;
const CONT: i32 = 18;

fn running(test: &str, hosts: usize) -> Option<(Lab, Trial)> {
    let lab = match Lab::new(hosts, "1gbit") {
        Ok(lab) => lab,
        Err(why) => {
            e2e::skipped(test, &why);
            return None;
        }
    };
    let trial = trial(&lab, &LONG);
    // under way when every host has a rank beside its worker and bytes have been moving for a while
    let started = Instant::now();
    while lab.processes().len() < 2 * hosts + 1 {
        assert!(started.elapsed() < Duration::from_secs(20), "the ranks did not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs(3));
    Some((lab, trial))
}

/// Ranks are the children of workers.
fn rank_of(worker: u32) -> u32 {
    let children = std::process::Command::new("ps")
        .args(["-o", "pid=", "--ppid", &worker.to_string()])
        .output()
        .expect("ps runs");
    String::from_utf8_lossy(&children.stdout)
        .split_whitespace()
        .next()
        .and_then(|pid| pid.parse().ok())
        .expect("the worker has a rank")
}

fn ends(lab: &Lab, trial: Trial, culprit: &str, since: Instant) {
    let Trial { coordinator, workers } = trial;
    let finished = coordinator.finish(Duration::from_secs(60));
    assert!(since.elapsed() < END, "ended only after {:?}", since.elapsed());
    finished.expect_code(4);
    assert!(finished.stderr.contains(culprit), "the message names {culprit}:\n{}", finished.stderr);
    drop(workers);
    let gone = Instant::now();
    while !lab.processes().is_empty() && gone.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(lab.processes().is_empty(), "left behind: {:?}", lab.processes());
}

#[test]
fn a_killed_rank_ends_the_trial() {
    let Some((lab, trial)) = running("a_killed_rank_ends_the_trial", 3) else { return };
    let since = Instant::now();
    signal_process(rank_of(trial.workers[1].pid()), KILL);
    ends(&lab, trial, "signal 9", since);
}

#[test]
fn a_killed_worker_ends_the_trial_and_its_rank() {
    let Some((lab, trial)) = running("a_killed_worker_ends_the_trial", 3) else { return };
    let since = Instant::now();
    trial.workers[1].signal(KILL);
    ends(&lab, trial, "h2", since);
}

#[test]
fn a_killed_coordinator_ends_every_worker() {
    let Some((lab, trial)) = running("a_killed_coordinator_ends_every_worker", 3) else { return };
    let since = Instant::now();
    trial.coordinator.signal(KILL);
    for worker in trial.workers {
        let finished = worker.finish(Duration::from_secs(60));
        finished.expect_code(4);
    }
    assert!(since.elapsed() < END, "ended only after {:?}", since.elapsed());
    drop(trial.coordinator);
    assert!(lab.processes().is_empty(), "left behind: {:?}", lab.processes());
}

#[test]
fn a_cut_host_is_named_and_ends_itself() {
    let Some((lab, trial)) = running("a_cut_host_is_named", 3) else { return };
    let since = Instant::now();
    lab.cut(2);
    let Trial { coordinator, mut workers } = trial;
    let finished = coordinator.finish(Duration::from_secs(60));
    assert!(since.elapsed() < END, "ended only after {:?}", since.elapsed());
    finished.expect_code(4);
    assert!(finished.stderr.contains("h3"), "{}", finished.stderr);
    // the host on the other side of the cut learns it by silence alone
    let cut = workers.remove(2).finish(Duration::from_secs(60));
    assert!(since.elapsed() < END + Duration::from_secs(5), "{:?}", since.elapsed());
    cut.expect_code(4);
    drop(workers);
    assert!(lab.processes().is_empty(), "left behind: {:?}", lab.processes());
}

#[test]
fn a_stopped_rank_is_named() {
    let Some((lab, trial)) = running("a_stopped_rank_is_named", 3) else { return };
    let since = Instant::now();
    signal_process(rank_of(trial.workers[1].pid()), STOP);
    ends(&lab, trial, "h2", since);
}

#[test]
fn a_stopped_worker_is_named() {
    let Some((lab, trial)) = running("a_stopped_worker_is_named", 3) else { return };
    let worker = trial.workers[1].pid();
    let since = Instant::now();
    signal_process(worker, STOP);
    let Trial { coordinator, workers } = trial;
    let finished = coordinator.finish(Duration::from_secs(60));
    assert!(since.elapsed() < END, "ended only after {:?}", since.elapsed());
    finished.expect_code(4);
    assert!(finished.stderr.contains("h2"), "{}", finished.stderr);
    // once it runs again it finds the coordinator gone and ends by itself
    signal_process(worker, CONT);
    for worker in workers {
        worker.finish(Duration::from_secs(90));
    }
    assert!(lab.processes().is_empty(), "left behind: {:?}", lab.processes());
}

#[test]
fn a_worker_that_never_comes_is_missed_by_number() {
    let lab = match Lab::new(2, "1gbit") {
        Ok(lab) => lab,
        Err(why) => return e2e::skipped("a_worker_that_never_comes", &why),
    };
    let mut trial = e2e::cluster::trial(&lab, &["--join-timeout", "3s"]);
    trial.workers.truncate(1);
    let finished = trial.coordinator.finish(Duration::from_secs(30));
    finished.expect_code(4);
    assert!(finished.stderr.contains("1 of 2"), "{}", finished.stderr);
}
