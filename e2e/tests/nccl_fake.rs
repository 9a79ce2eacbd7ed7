//! The `nccl` engine without a GPU: a driver and an NCCL that are built here from C and play what can
//! go wrong, so that every way out is walked.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use e2e::binary::{Finished, command, start};

const LIMIT: Duration = Duration::from_secs(120);

struct Fakes {
    cuda: PathBuf,
    nccl: PathBuf,
    _folder: tempfile::TempDir,
}

/// Builds the two libraries once; `None` where there is no C compiler.
fn fakes(test: &str) -> Option<&'static Fakes> {
    static BUILT: OnceLock<Option<Fakes>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().ok()?;
        let build = |name: &str| -> Option<PathBuf> {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fakes").join(name);
            let library = folder.path().join(name).with_extension("so");
            let built = Command::new("cc")
                .args(["-shared", "-fPIC", "-O1", "-o"])
                .arg(&library)
                .arg(source)
                .status()
                .ok()?;
            built.success().then_some(library)
        };
        Some(Fakes { cuda: build("cuda.c")?, nccl: build("nccl.c")?, _folder: folder })
    });
    if built.is_none() {
        e2e::skipped(test, "no C compiler (cc)");
    }
    built.as_ref()
}

fn bench(fakes: &Fakes, variables: &[(&str, &str)], arguments: &[&str]) -> Finished {
    let mut command = command(["bench", "--engine", "nccl", "--deadline", "3s", "--nccl"]);
    command.arg(&fakes.nccl).args(arguments).env("NCCLCTL_CUDA", &fakes.cuda);
    command.envs(variables.iter().copied());
    start(command).finish(LIMIT)
}

const SMALL: [&str; 10] =
    ["--ranks", "2", "-b", "1K", "-e", "64K", "-f", "8", "--time-limit", "1s"];

#[test]
fn real_bytes_are_moved_and_checked() {
    let Some(fakes) = fakes("real_bytes_are_moved_and_checked") else { return };
    let finished = bench(
        fakes,
        &[],
        &[&SMALL[..], &["--collective", "all", "-n", "4", "-w", "1", "-o", "json"]].concat(),
    );
    let json: serde_json::Value = serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|e| panic!("{e}\n{}\n{}", finished.stdout, finished.stderr));
    let text = json.to_string();
    let evidence = find(&json, "evidence").expect("the result holds the evidence");
    let series = evidence["series"].as_array().unwrap();
    assert!(series.len() >= 9 * 3 * 2, "{} points", series.len());
    for point in series {
        assert!(point["wrong"].is_null() || point["wrong"] == 0, "{point}");
    }
    let edge = &evidence["edges"][0];
    assert_eq!(
        (&edge["transport"], &edge["nic"], &edge["connections"]),
        (&"socket".into(), &"lo".into(), &2.into())
    );
    assert_eq!(evidence["ranks"][0]["version"], "2.28.9");
    assert_eq!(evidence["nccl"][1]["network"], "Socket");
    let reduced = series.iter().find(|p| p["collective"] == "all_reduce").unwrap();
    assert_eq!(
        (&reduced["algorithm"], &reduced["protocol"]),
        (&"ring".into(), &"SIMPLE".into()),
        "{text}"
    );
    // the whole log is passed on, each line with its rank
    assert!(finished.stderr.contains("[rank 1] fake:"), "{}", finished.stderr);
}

fn find<'a>(value: &'a serde_json::Value, key: &str) -> Option<&'a serde_json::Value> {
    match value {
        serde_json::Value::Object(map) => {
            map.get(key).or_else(|| map.values().find_map(|v| find(v, key)))
        }
        _ => None,
    }
}

/// Plays a failure and expects an end with that code and those words.
fn fails(test: &str, fault: &str, code: i32, words: &[&str]) {
    let Some(fakes) = fakes(test) else { return };
    let finished = bench(fakes, &[("FAKE_FAULT", fault)], &SMALL);
    finished.expect_code(code);
    let all = format!("{}{}", finished.stdout, finished.stderr);
    for word in words {
        assert!(all.contains(word), "`{word}` is missing:\n{all}");
    }
    assert!(finished.took < Duration::from_secs(60), "took {:?}", finished.took);
}

#[test]
fn a_hang_in_init_is_named_with_the_last_lines_of_the_log() {
    fails(
        "a_hang_in_init",
        "init-hang",
        4,
        &["joining the communicator: nothing has moved for", "Bootstrap: Using eth0:10.0.0.1<0>"],
    );
}

#[test]
fn an_error_in_init_tells_what_nccl_warned_of() {
    fails(
        "an_error_in_init",
        "init-error:1",
        2,
        &["rank 1", "Duplicate GPU detected", "--share-gpu"],
    );
}

#[test]
fn an_error_behind_the_back_is_seen() {
    fails("an_error_behind_the_back", "async", 4, &["Connection closed by remote peer"]);
}

#[test]
fn an_operation_that_never_ends_is_given_up() {
    fails("an_operation_that_never_ends", "stuck", 4, &["nothing has moved for"]);
}

#[test]
fn wrong_data_is_counted_and_fails() {
    let Some(fakes) = fakes("wrong_data") else { return };
    let finished = bench(fakes, &[("FAKE_FAULT", "wrong:1")], &SMALL);
    finished.expect_code(1);
    assert!(finished.stdout.contains("rank 1"), "{}", finished.stdout);
}

#[test]
fn a_crash_names_the_rank_and_the_signal() {
    fails("a_crash", "crash:1", 4, &["rank 1", "signal 9"]);
    fails("a_crash", "crash-init:0", 4, &["rank 0", "signal 6", "about to crash"]);
}

#[test]
fn a_version_that_is_too_old_is_refused() {
    let Some(fakes) = fakes("a_version_that_is_too_old") else { return };
    let finished = bench(fakes, &[("FAKE_VERSION", "20804")], &SMALL);
    finished.expect_code(4);
    assert!(finished.stderr.contains("version 2.8.4 is older than 2.10"), "{}", finished.stderr);
}

#[test]
fn too_little_device_memory_is_told_with_figures() {
    let Some(fakes) = fakes("too_little_device_memory") else { return };
    let finished = bench(fakes, &[("FAKE_MEMORY", "40000000")], &SMALL);
    finished.expect_code(4);
    assert!(finished.stderr.contains("MiB of GPU memory are free"), "{}", finished.stderr);
}

#[test]
fn no_gpu_and_too_few_gpus_are_told() {
    let Some(fakes) = fakes("no_gpu") else { return };
    let none = bench(fakes, &[("FAKE_GPUS", "0")], &SMALL);
    none.expect_code(4);
    assert!(none.stderr.contains("no GPU is visible"), "{}", none.stderr);
    let one = bench(fakes, &[("FAKE_GPUS", "1")], &SMALL);
    one.expect_code(2);
    assert!(one.stderr.contains("--share-gpu"), "{}", one.stderr);
    let shared = bench(fakes, &[("FAKE_GPUS", "1")], &[&SMALL[..], &["--share-gpu"]].concat());
    assert!(shared.stdout.contains("# Avg bus bandwidth"), "{}{}", shared.stdout, shared.stderr);
}

#[test]
fn a_missing_library_is_told_with_every_place() {
    let mut command = command(["bench", "--engine", "nccl", "--ranks", "1"]);
    command.env("NCCLCTL_CUDA", "/nowhere/libcuda.so.1");
    let finished = start(command).finish(LIMIT);
    finished.expect_code(4);
    assert!(finished.stderr.contains("NCCLCTL_CUDA: /nowhere/libcuda.so.1"), "{}", finished.stderr);
    assert!(finished.stderr.contains("--gpus all"), "{}", finished.stderr);
}

#[test]
fn other_versions_are_driven_too() {
    let Some(fakes) = fakes("other_versions") else { return };
    for version in ["21003", "21403", "21805", "22304", "23203"] {
        let finished = bench(fakes, &[("FAKE_VERSION", version)], &SMALL);
        assert!(finished.stdout.contains("# Avg bus bandwidth"), "{version}: {}", finished.stderr);
    }
}
