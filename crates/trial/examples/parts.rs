//! The parts of a trial without the command line: what the tests of this crate kill, stop and cut off.
//!
//! `parts local RANKS`, `parts listen ADDRESS WORKERS TOKENFILE`, `parts worker ADDRESS TOKENFILE NAME`,
//! `parts launched`, `parts rank`. Options by variable: `BYTES`, `ITERATIONS`, `DEADLINE` in seconds.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what goes wrong here fails the test or the measurement that asked for it"
)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use ncclctl_nccl::{Collective, DataType, RedOp};
use ncclctl_trial::coordinator::{self, Places};
use ncclctl_trial::engine::Case;
use ncclctl_trial::event::Event;
use ncclctl_trial::launch::{self, Offer, Part};
use ncclctl_trial::{Token, TrialPlan, rank, worker};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(4)
        }
    }
}

fn run(words: &[&str]) -> Result<(), Box<dyn Error>> {
    match words {
        ["rank"] => Ok(rank::main()?),
        ["local", ranks] => {
            coordinate(Places::Local { ranks: ranks.parse()?, rank_program: rank_program()? })
        }
        ["listen", address, workers, file] => {
            let token = Token::new()?;
            token.create(Path::new(file))?;
            coordinate(Places::Join {
                address: (*address).to_owned(),
                workers: workers.parse()?,
                token,
                token_hint: format!("--token-file {file}"),
            })
        }
        ["worker", address, file, name] => {
            let token = Token::read(Path::new(file))?;
            let options = worker::Options {
                index: None,
                world: None,
                name: Some((*name).to_owned()),
                ranks: 1,
                patience: Duration::from_secs(5),
                rank_program: rank_program()?,
            };
            worker::join(address, &token, options)?;
            Ok(())
        }
        ["launched"] => {
            let environment = std::env::vars().collect();
            let seat = launch::seat(&environment)?.ok_or("no launcher")?;
            let patience = Duration::from_secs(10);
            let offer = Offer { rank_program: rank_program()?, name: None, patience };
            match seat.take(&environment, offer)? {
                Part::Coordinate(host) => coordinate(Places::Launched(host)),
                Part::Work(guest) => {
                    guest.join()?;
                    Ok(())
                }
            }
        }
        _ => Err("see the first lines of this example".into()),
    }
}

fn rank_program() -> std::io::Result<(PathBuf, Vec<String>)> {
    Ok((std::env::current_exe()?, vec!["rank".to_owned()]))
}

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

fn plan() -> TrialPlan {
    let mut plan = TrialPlan::new("tcp");
    let sizes: Vec<u64> = match variable("BYTES") {
        Some(bytes) => vec![bytes],
        None => (0..13).map(|n| 8 << (2 * n)).collect(),
    };
    for bytes in sizes {
        for in_place in [false, true] {
            plan.cases.push(Case {
                collective: Collective::AllReduce,
                dtype: DataType::Float32,
                op: RedOp::Sum,
                root: 0,
                bytes,
                in_place,
            });
        }
    }
    plan.iterations = variable("ITERATIONS");
    if let Some(seconds) = variable("DEADLINE") {
        plan.deadline = Duration::from_secs(seconds);
    }
    if let Some(seconds) = variable("RENDEZVOUS") {
        plan.rendezvous = Duration::from_secs(seconds);
    }
    plan
}

fn coordinate(places: Places) -> Result<(), Box<dyn Error>> {
    let mut show = |event: Event| match event {
        Event::SizeProgress { .. } => {}
        Event::SizeDone { point } => println!(
            "{:>10} {:>8.2} us ±{:>5.1}% {:>8.3} GB/s busbw {} ops {} wrong {:?} drift {:.2}",
            point.size,
            point.time.mean_us,
            100.0 * point.time.ci95_us / point.time.mean_us,
            point.busbw,
            point.algorithm,
            point.time.operations,
            point.wrong,
            point.time.drift,
        ),
        other => eprintln!("{other:?}"),
    };
    let evidence = coordinator::run(&plan(), places, &mut show)?;
    eprintln!("{} points, {} windows", evidence.series.len(), evidence.wire.len());
    Ok(())
}
