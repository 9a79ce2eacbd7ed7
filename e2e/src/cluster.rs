//! One trial over the hosts of a [`Lab`]: the coordinator on the first host, a
//! worker with one rank on each.

use std::process::Command;
use std::time::Duration;

use crate::binary::{Finished, Running, start};
use crate::lab::Lab;

/// Port of the coordinator; every lab has its own namespaces, so it is always free.
const PORT: &str = "7171";

/// A running trial.
pub struct Trial {
    /// The process whose output and exit code count.
    pub coordinator: Running,
    /// One a host, in their order; the first shares the coordinator's host.
    pub workers: Vec<Running>,
}

/// Starts a trial with the coordinator's own `options` (sizes, engine, output format, …).
pub fn trial(lab: &Lab, options: &[&str]) -> Trial {
    trial_with(lab, options, |_, _| {})
}

/// As [`trial`]; `adjust` may change each worker's command (host, command).
pub fn trial_with(lab: &Lab, options: &[&str], adjust: impl Fn(usize, &mut Command)) -> Trial {
    let token = lab.token();
    let address = format!("{}:{PORT}", lab.address(0, "eth0"));
    let workers = lab.len().to_string();
    let mut command = lab.command(0, ["bench", "--listen", &address, "--workers", &workers]);
    command.arg("--token-file").arg(&token).args(options);
    let coordinator = start(command);
    for _ in 0..500 {
        if token.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let workers = (0..lab.len())
        .map(|host| {
            let name = format!("h{}", host + 1);
            let mut command = lab.command(host, ["worker", "--join", &address, "--name", &name]);
            command.arg("--token-file").arg(&token);
            adjust(host, &mut command);
            start(command)
        })
        .collect();
    Trial { coordinator, workers }
}

impl Trial {
    /// Waits for the coordinator, then for all workers to be gone.
    pub fn finish(self, limit: Duration) -> Finished {
        let finished = self.coordinator.finish(limit);
        for worker in self.workers {
            worker.finish(limit + Duration::from_secs(15));
        }
        finished
    }
}
