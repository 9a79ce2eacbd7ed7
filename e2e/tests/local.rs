//! Ranks on this machine alone: the first command that a user types, and what comes out of it.

use std::time::Duration;

use e2e::binary::{command, faulty, isolate, passes, rules, run, start};

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn the_plain_command_passes_in_time() {
    let finished = passes(|| run(["bench"], LIMIT));
    assert!(finished.stdout.contains("# Avg bus bandwidth"), "{}", finished.stdout);
    assert!(finished.took < Duration::from_secs(20), "took {:?}", finished.took);
}

#[test]
fn readers_of_nccl_tests_tables_read_ours() {
    let finished = run(["bench", "-b", "1K", "-e", "64K", "-f", "4", "--no-verdict"], LIMIT);
    finished.expect_code(0);
    let mut rows = 0;
    for line in finished.stdout.lines() {
        let fields: Vec<_> = line.split_whitespace().collect();
        if line.starts_with('#') || fields.is_empty() {
            continue;
        }
        assert!(line.starts_with(' '), "a row starts with a blank: {line:?}");
        assert_eq!(fields.len(), 13, "{line}");
        for number in [0, 1, 5, 6, 7, 9, 10, 11] {
            assert!(fields[number].parse::<f64>().is_ok(), "{line}");
            assert!(!fields[number].contains('e'), "no exponents: {line}");
        }
        rows += 1;
    }
    assert_eq!(rows, 4, "1K, 4K, 16K, 64K:\n{}", finished.stdout);
    let average = finished
        .stdout
        .lines()
        .find(|line| line.contains("bandwidth"))
        .expect("there is an average line");
    assert!(
        average.split_whitespace().nth(5).is_some_and(|word| word.parse::<f64>().is_ok()),
        "the value is the sixth word: {average}"
    );
    assert!(!finished.stdout.contains("FAILED"), "{}", finished.stdout);
}

#[test]
fn every_collective_is_right_on_an_odd_number_of_ranks() {
    let finished = run(
        [
            "bench",
            "--ranks",
            "3",
            "--collective",
            "all",
            "-b",
            "1000",
            "-e",
            "100000",
            "-f",
            "100",
            "-n",
            "2",
            "-o",
            "json",
            "--no-verdict",
        ],
        LIMIT,
    );
    finished.expect_code(0);
    let result = finished.json();
    let series = result["evidence"]["series"].as_array().cloned().unwrap_or_default();
    let mut collectives: Vec<_> =
        series.iter().filter_map(|point| point["collective"].as_str()).collect();
    collectives.sort_unstable();
    collectives.dedup();
    assert_eq!(collectives.len(), 9, "{collectives:?}");
    for point in &series {
        assert!(point["wrong"].is_null() || point["wrong"] == 0, "{point:#}");
    }
}

#[test]
fn a_rank_that_flips_a_bit_is_caught_and_named() {
    let Some(faulty) = faulty() else {
        return e2e::skipped("a_rank_that_flips_a_bit", "build with --features fault-injection");
    };
    let mut command = std::process::Command::new(faulty);
    isolate(&mut command);
    command
        .args(["bench", "--ranks", "3", "-b", "64K", "-e", "64K", "-n", "3", "-o", "json"])
        .env("NCCLCTL_FAULT", "flip-bit:1");
    let finished = start(command).finish(LIMIT);
    finished.expect_code(1);
    let result = finished.json();
    assert!(rules(&result).iter().any(|r| r == "data-corruption"), "{:#}", result["findings"]);
}

#[test]
fn the_shipped_binary_can_not_be_told_to_do_wrong() {
    let mut command =
        command(["bench", "-b", "64K", "-e", "64K", "-n", "3", "-o", "json", "--no-verdict"]);
    command.env("NCCLCTL_FAULT", "flip-bit:1");
    let finished = start(command).finish(LIMIT);
    finished.expect_code(0);
}

#[test]
fn saved_results_show_the_same_again() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("run.json");
    let path = file.to_str().expect("UTF-8 path");
    let finished = run(["bench", "-b", "4K", "-e", "64K", "-n", "20", "--save", path], LIMIT);
    let shown = run(["show", path], LIMIT);
    assert_eq!(finished.status.code(), shown.status.code(), "same exit code");
    let rows = |text: &str| {
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(rows(&finished.stdout), rows(&shown.stdout));
    assert!(!rows(&shown.stdout).is_empty());
    run(["show", path, "-o", "json"], LIMIT).json();
}

#[test]
fn output_validates_against_the_committed_schema() {
    let finished = run(["bench", "-b", "1K", "-e", "4K", "-n", "5", "-o", "json"], LIMIT);
    let schema =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../schemas/bench.v1.json"))
            .expect("the schema is committed");
    let schema: serde_json::Value = serde_json::from_str(&schema).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is a schema");
    let result = finished.json();
    let errors: Vec<_> = validator.iter_errors(&result).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn a_broken_pipe_is_no_crash() {
    let mut shell = std::process::Command::new("sh");
    isolate(&mut shell);
    shell.args([
        "-c",
        "\"$0\" bench -b 8 -e 64K -n 5 2>/dev/null | head -1; exit 0",
        e2e::binary::path().to_str().expect("UTF-8 path"),
    ]);
    let finished = start(shell).finish(LIMIT);
    assert!(finished.stdout.starts_with('#'), "{}", finished.stdout);
}

#[test]
fn usage_errors_say_what_to_write() {
    for (args, word) in [
        (vec!["bench", "-b", "8X"], "64K"),
        (vec!["bench", "-b", "1M", "-e", "1K"], "-e"),
        (vec!["bench", "--ranks", "0"], "ranks"),
        (vec!["bench", "--collective", "allreduces"], "all_reduce"),
        (vec!["bench", "--env", "NCCL_DEBUG"], "NAME=VALUE"),
        (vec!["show", "/nonexistent.json"], "/nonexistent.json"),
    ] {
        let finished = run(&args, LIMIT);
        finished.expect_code(2);
        assert!(finished.stderr.contains(word), "{args:?}: {}", finished.stderr);
    }
}
