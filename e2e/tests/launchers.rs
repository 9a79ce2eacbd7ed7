//! Started by launchers: rank 0 coordinates, one result comes out.

use std::process::Command;
use std::time::Duration;

use e2e::binary::{isolate, path, start};

#[test]
fn mpirun_starts_one_job() {
    if Command::new("mpirun").arg("--version").output().is_err() {
        return e2e::skipped("mpirun_starts_one_job", "mpirun is not installed");
    }
    let mut command = Command::new("mpirun");
    isolate(&mut command);
    command.args(["--allow-run-as-root", "--oversubscribe", "-np", "4"]).arg(path()).args([
        "bench",
        "-b",
        "64K",
        "-e",
        "1M",
        "-f",
        "16",
        "-n",
        "10",
        "--no-verdict",
    ]);
    let finished = start(command).finish(Duration::from_secs(60));
    finished.expect_code(0);
    assert_eq!(finished.stdout.matches("# Avg bus bandwidth").count(), 1, "{}", finished.stdout);
    assert_eq!(finished.stdout.matches("#  Rank").count(), 4, "{}", finished.stdout);
}

#[test]
fn torchrun_variables_start_one_job() {
    let ranks: Vec<_> = (0..2)
        .map(|rank: u32| {
            let mut command = Command::new(path());
            isolate(&mut command);
            command
                .args(["bench", "-b", "64K", "-e", "64K", "-n", "10", "--no-verdict"])
                .env("RANK", rank.to_string())
                .env("LOCAL_RANK", rank.to_string())
                .env("WORLD_SIZE", "2")
                .env("LOCAL_WORLD_SIZE", "2")
                .env("MASTER_ADDR", "127.0.0.1")
                .env("MASTER_PORT", "29513")
                .env("TORCHELASTIC_RUN_ID", format!("e2e-{}", std::process::id()));
            start(command)
        })
        .collect();
    let outputs: Vec<_> =
        ranks.into_iter().map(|rank| rank.finish(Duration::from_secs(60))).collect();
    for finished in &outputs {
        finished.expect_code(0);
    }
    let tables: usize =
        outputs.iter().map(|o| o.stdout.matches("# Avg bus bandwidth").count()).sum();
    assert_eq!(tables, 1);
}
