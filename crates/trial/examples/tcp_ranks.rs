//! Times the `tcp` engine alone: forks ranks, hands contacts round over pipes, prints a line a size.
//!
//! `tcp_ranks RANKS SECONDS COLLECTIVE DTYPE SIZE... [NAME=VALUE...] [netns=A,B,...] [probe]`
//! `docs/benchmarks/run-tcp` runs it against OpenMPI and iperf3.

#![expect(
    clippy::print_stdout,
    reason = "what goes wrong here fails the test or the measurement that asked for it"
)]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use ncclctl_nccl::{Collective, DataType, RedOp};
use ncclctl_trial::engine::{Batch, BatchTimes, Case, Contact, Engine, Probe, Received, Setup};
use ncclctl_trial::tcp::Tcp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Serialize, Deserialize)]
enum Order {
    Connect(Vec<Contact>),
    Run(Batch),
    Verify(Case),
    Probe(Probe),
    Reduce(Case),
}

struct Rank {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Rank {
    fn tell(&mut self, order: &impl Serialize) -> Result<()> {
        writeln!(self.to, "{}", serde_json::to_string(order)?)?;
        Ok(())
    }

    fn hear<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

fn all<T: DeserializeOwned>(ranks: &mut [Rank], order: &Order) -> Result<Vec<T>> {
    for rank in ranks.iter_mut() {
        rank.tell(order)?;
    }
    ranks.iter_mut().map(Rank::hear).collect()
}

/// A child: does what it is told, line by line.
fn serve() -> Result<()> {
    let mut engine = Tcp::new();
    let mut lines = std::io::stdin().lines();
    let first = lines.next().ok_or("no setup")??;
    let setup: Setup = serde_json::from_str(&first)?;
    println!("{}", serde_json::to_string(&engine.open(&setup)?)?);
    for line in lines {
        let answer = match serde_json::from_str(&line?)? {
            Order::Connect(contacts) => serde_json::to_string(&engine.connect(&contacts)?)?,
            Order::Run(batch) => serde_json::to_string(&engine.run(&batch)?)?,
            Order::Verify(case) => serde_json::to_string(&engine.verify(&case)?)?,
            Order::Probe(probe) => serde_json::to_string(&engine.probe(&probe)?)?,
            Order::Reduce(case) => {
                serde_json::to_string(&engine.reduce_rate(&case, Duration::from_millis(200))?)?
            }
        };
        println!("{answer}");
    }
    Ok(())
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|a| a == "--rank") {
        return serve();
    }
    let [ranks, seconds, collective, dtype, rest @ ..] = args.as_slice() else {
        return Err(
            "usage: tcp_ranks RANKS SECONDS COLLECTIVE DTYPE SIZE... [NAME=VALUE...]".into()
        );
    };
    let (count, seconds): (usize, f64) = (ranks.parse()?, seconds.parse()?);
    let (collective, dtype): (Collective, DataType) = (collective.parse()?, dtype.parse()?);
    let mut settings = BTreeMap::new();
    let mut namespaces: Vec<String> = Vec::new();
    let mut sizes = Vec::new();
    let (mut probe, mut in_place) = (false, false);
    for arg in rest {
        match arg.split_once('=') {
            Some(("netns", list)) => namespaces = list.split(',').map(str::to_owned).collect(),
            Some((name, value)) => {
                settings.insert(name.to_owned(), value.to_owned());
            }
            None if arg == "probe" => probe = true,
            None if arg == "in-place" => in_place = true,
            None => sizes.push(ncclctl_nccl::size::parse(arg)?),
        }
    }
    let mut ranks = start(count, &namespaces, &settings)?;
    let contacts: Vec<Contact> = ranks.iter_mut().map(Rank::hear).collect::<Result<_>>()?;
    all::<serde_json::Value>(&mut ranks, &Order::Connect(contacts))?;
    if probe {
        let pairs = (0..count).map(|r| (r, (r + 1) % count)).collect();
        let order = Order::Probe(Probe { pairs, duration: Duration::from_secs_f64(seconds) });
        let rates: Vec<Vec<Received>> = all(&mut ranks, &order)?;
        for (to, r) in rates.iter().enumerate() {
            for r in r {
                let trip = r.round_trip_us.unwrap_or(0.0);
                println!("probe {}->{to} GB/s {:.4} rtt_us {trip:.1}", r.from, r.rate_bps / 1e9);
            }
        }
    }
    for bytes in sizes {
        let case = Case { collective, dtype, op: RedOp::Sum, root: 0, bytes, in_place };
        measure(&mut ranks, case, seconds)?;
    }
    if probe {
        let case =
            Case { collective, dtype, op: RedOp::Sum, root: 0, bytes: 16 << 20, in_place: false };
        let rates: Vec<Option<f64>> = all(&mut ranks, &Order::Reduce(case))?;
        println!("reduce GB/s {:.2}", rates.iter().flatten().sum::<f64>() / 1e9 / count as f64);
    }
    for Rank { mut child, to, .. } in ranks {
        drop(to);
        child.wait()?;
    }
    Ok(())
}

fn start(
    count: usize,
    namespaces: &[String],
    settings: &BTreeMap<String, String>,
) -> Result<Vec<Rank>> {
    let me = std::env::current_exe()?;
    (0..count)
        .map(|rank| {
            let mut command = match namespaces.get(rank) {
                Some(name) => {
                    let mut command = Command::new("ip");
                    command.args(["netns", "exec", name]).arg(&me);
                    command
                }
                None => Command::new(&me),
            };
            let mut child =
                command.arg("--rank").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
            let to = child.stdin.take().ok_or("no stdin")?;
            let from = BufReader::new(child.stdout.take().ok_or("no stdout")?);
            let mut rank_process = Rank { child, to, from };
            rank_process.tell(&Setup {
                rank,
                ranks: count,
                nonce: [3; 16],
                settings: settings.clone(),
                largest: 1 << 28,
                gpu: None,
                deadline: Duration::from_secs(20),
                nccl: Default::default(),
            })?;
            Ok(rank_process)
        })
        .collect()
}

fn measure(ranks: &mut [Rank], case: Case, seconds: f64) -> Result<()> {
    let checked: Vec<serde_json::Value> = all(ranks, &Order::Verify(case))?;
    let wrong: u64 = checked.iter().filter_map(|c| c["wrong"].as_u64()).sum();
    let warm = Batch { case, samples: 1, operations: 5 };
    let warm: Vec<BatchTimes> = all(ranks, &Order::Run(warm))?;
    let each = warm[0].samples_us[0] / 1e6;
    let total = (seconds / each).clamp(2.0, 1e6) as u32;
    let samples = total.min(20);
    let batch = Batch { case, samples, operations: (total / samples).max(1) };
    let times: Vec<BatchTimes> = all(ranks, &Order::Run(batch))?;
    let n = ranks.len() as f64;
    let mean = |t: &BatchTimes| t.samples_us.iter().sum::<f64>() / t.samples_us.len() as f64;
    let mean_us = times.iter().map(mean).sum::<f64>() / n;
    let best = times[0].samples_us.iter().copied().fold(f64::INFINITY, f64::min);
    let size = case.collective.layout(case.bytes, case.dtype, ranks.len()).size;
    let busbw = size as f64 / mean_us / 1e3 * case.collective.busbw_factor(ranks.len());
    println!(
        "{size} mean_us {mean_us:.2} best_us {best:.2} busbw {busbw:.3} wrong {wrong} {}",
        times[0].algorithm
    );
    Ok(())
}
