//! Benchmark of the control plane: workers join, get settings, pass a barrier and leave.
//!
//! `rendezvous [WORKERS [PROCESSES [RUNS]]]`, by default 1000 workers as tasks of 4 processes, 5 runs.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "what goes wrong here fails the test or the measurement that asked for it"
)]

use std::error::Error;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Instant;

use ncclctl_trial::{Token, rendezvous};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["workers", address, file, count] = words[..] {
        let token = Token::read(Path::new(file))?;
        rendezvous::workers(address, &token, count.parse()?)?;
        return Ok(());
    }
    let number = |at: usize, default: usize| -> Result<usize> {
        Ok(words.get(at).map_or(Ok(default), |word| word.parse())?)
    };
    let (workers, processes, runs) = (number(0, 1000)?, number(1, 4)?, number(2, 5)?);
    for _ in 0..runs {
        once(workers, processes)?;
    }
    Ok(())
}

fn once(workers: usize, processes: usize) -> Result<()> {
    let token = Token::new()?;
    let file = std::env::temp_dir().join(format!("rendezvous-{}", std::process::id()));
    token.create(&file)?;
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let started = Instant::now();
    let children: Vec<Child> = (0..processes)
        .map(|index| {
            let share = (workers + index) / processes;
            Command::new(std::env::current_exe()?)
                .args(["workers", &address])
                .arg::<&PathBuf>(&file)
                .arg(share.to_string())
                .spawn()
        })
        .collect::<std::io::Result<_>>()?;
    let took = rendezvous::coordinate(&address, &token, workers)?;
    for mut child in children {
        if !child.wait()?.success() {
            return Err("a process of workers failed".into());
        }
    }
    let all = started.elapsed();
    std::fs::remove_file(&file)?;
    println!(
        "{workers} workers in {processes} processes: joined {:.3} s, settings {:.3} s, barrier {:.3} s, \
         left {:.3} s; with starting the processes {:.3} s; coordinator's peak memory {:.1} MiB",
        took.joined.as_secs_f64(),
        took.started.as_secs_f64(),
        took.barrier.as_secs_f64(),
        took.left.as_secs_f64(),
        all.as_secs_f64(),
        peak_kib()? as f64 / 1024.0
    );
    Ok(())
}

/// Peak resident memory of this process.
fn peak_kib() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}
