//! Live progress on standard error: which size, how fast so far, how sure.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ncclctl_findings::evidence::Phase;
use ncclctl_nccl::size::Short;
use ncclctl_trial::event::Event;

use crate::verdict::figure;

/// Shows events; on a terminal as one line that changes, elsewhere as a line for each size.
pub struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    quiet: bool,
}

impl Progress {
    /// `terminal`: whether standard error is one. `quiet`: only what needs an action.
    pub fn new(terminal: bool, quiet: bool) -> Self {
        let bar = (terminal && !quiet).then(|| {
            let bar =
                ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(10));
            if let Ok(style) = ProgressStyle::with_template("{wide_msg} {pos}/{len}") {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, started: Instant::now(), quiet }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => anstream::eprintln!("{text}"),
        }
    }

    fn now(&self, text: String) {
        if let Some(bar) = &self.bar {
            bar.set_message(text);
        }
    }

    /// Takes one event.
    pub fn show(&mut self, event: &Event) {
        match event {
            Event::Listening { address, join, workers } => {
                self.line(&format!(
                    "listening on {address} for {workers} workers; on each of them run:"
                ));
                self.line(&format!("  {join}"));
            }
            Event::WorkerJoined { worker, joined, wanted } => {
                if self.quiet || *wanted == 1 {
                    return;
                }
                self.now(format!("worker {worker} joined ({joined} of {wanted})"));
                if self.bar.is_none() && (*joined == *wanted) {
                    self.line(&format!("{wanted} workers joined"));
                }
            }
            Event::TrialStarted { engine, ranks } => {
                self.now(format!("starting {ranks} ranks, engine {engine}"));
            }
            Event::RankReady { .. } | Event::TrialFinished => {}
            Event::PathsMeasured { paths } => {
                let least = paths.iter().map(|p| p.rate_bps).fold(f64::INFINITY, f64::min);
                if let (Some(first), false) = (paths.first(), self.quiet) {
                    let what = match first.phase {
                        Phase::Before => "raw paths before",
                        Phase::After => "raw paths after",
                        Phase::Blame => "pairs",
                    };
                    let text = format!(
                        "{what}: {} measured, slowest {} GB/s",
                        paths.len(),
                        figure(least / 1e9)
                    );
                    if self.bar.is_some() { self.now(text) } else { self.line(&text) }
                }
            }
            Event::SizeProgress { case, cases, what, busbw, precision, slowest_rank } => {
                if let Some(bar) = &self.bar {
                    bar.set_length(*cases as u64);
                    bar.set_position(*case as u64);
                    let sure = if precision.is_finite() {
                        format!(" ±{:.1}%", precision * 100.0)
                    } else {
                        String::new()
                    };
                    let slow = slowest_rank
                        .map_or_else(String::new, |rank| format!(", waiting for rank {rank}"));
                    bar.set_message(format!("{what}: {} GB/s{sure}{slow}", figure(*busbw)));
                }
            }
            Event::SizeDone { point } => {
                if self.bar.is_none() && !self.quiet {
                    let place = if point.in_place { "in place" } else { "out of place" };
                    self.line(&format!(
                        "{:>6.1}s {} {} {place}: {} GB/s busbw, {} operations",
                        self.started.elapsed().as_secs_f64(),
                        point.collective,
                        Short(point.size),
                        figure(point.busbw),
                        point.time.operations
                    ));
                }
            }
            Event::RankSaid { rank, host, line } => {
                self.line(&format!("rank {rank} on {host}: {line}"));
            }
            Event::Failed { failure } => {
                self.line(&format!("lost: {}", ncclctl_trial::error::describe(failure)));
            }
            Event::Note { text } => {
                if !self.quiet {
                    self.line(text);
                }
            }
        }
    }

    /// Clears the line.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
