//! Verdicts over hosts whose links have a known rate.

use std::time::Duration;

use e2e::binary::{Finished, passes, rules};
use e2e::cluster::{trial, trial_with};
use e2e::lab::Lab;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(90);

/// Sizes that a gigabit link is judged by, and the output that tests read.
const OPTIONS: [&str; 10] =
    ["-b", "64K", "-e", "16M", "-f", "16", "--time-limit", "6s", "-o", "json"];

fn lab(test: &str, hosts: usize) -> Option<Lab> {
    match Lab::new(hosts, "1gbit") {
        Ok(lab) => Some(lab),
        Err(why) => {
            e2e::skipped(test, &why);
            None
        }
    }
}

fn outcome(result: &Value) -> &str {
    result["verdict"]["outcome"].as_str().unwrap_or("none")
}

/// Text of the findings of one rule: message and evidence.
fn told(result: &Value, rule: &str) -> String {
    result["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|finding| finding["rule"] == rule)
        .map(|finding| format!("{} {}", finding["message"], finding["evidence"]))
        .collect()
}

fn failed_because(finished: &Finished, rule: &str) -> Value {
    finished.expect_code(1);
    let result = finished.json();
    assert_eq!(outcome(&result), "fail", "{result:#}");
    assert!(rules(&result).iter().any(|r| r == rule), "no {rule}: {:#}", result["findings"]);
    result
}

#[test]
fn four_good_hosts_pass() {
    let Some(lab) = lab("four_good_hosts_pass", 4) else { return };
    let finished = passes(|| trial(&lab, &OPTIONS).finish(LIMIT));
    let result = finished.json();
    assert_eq!(outcome(&result), "pass");
    // 1 Gbit/s is 0.125 GB/s on the wire; what a ring shows can not be above it
    let best = result["evidence"]["series"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|point| point["busbw"].as_f64())
        .fold(0.0, f64::max);
    assert!((0.09..0.13).contains(&best), "busbw {best} GB/s over 1 Gbit/s links");
    assert!(lab.processes().is_empty(), "processes left: {:?}", lab.processes());
}

#[test]
fn one_slow_host_is_named() {
    let Some(lab) = lab("one_slow_host_is_named", 4) else { return };
    lab.limit(2, 0, "eth0", "200mbit");
    let result = failed_because(&trial(&lab, &OPTIONS).finish(LIMIT), "slow-node");
    let text = told(&result, "slow-node");
    assert!(text.contains("h3"), "{text}");
    assert!(!rules(&result).iter().any(|r| r == "slow-link"), "{:#}", result["findings"]);
}

#[test]
fn one_slow_edge_is_named_and_no_host() {
    let Some(lab) = lab("one_slow_edge_is_named_and_no_host", 4) else { return };
    lab.limit_edge(1, 2, "eth0", "150mbit", "1gbit");
    lab.limit_edge(2, 1, "eth0", "150mbit", "1gbit");
    let result = failed_because(&trial(&lab, &OPTIONS).finish(LIMIT), "slow-link");
    let text = told(&result, "slow-link");
    assert!(text.contains("h2") && text.contains("h3"), "{text}");
    assert!(!rules(&result).iter().any(|r| r == "slow-node"), "{:#}", result["findings"]);
}

#[test]
fn a_slow_interface_chosen_beside_a_fast_one_fails_with_the_remedy() {
    let Some(lab) = lab("a_slow_interface_chosen_beside_a_fast_one", 3) else { return };
    let lab = lab.with_network("mgmt", "100mbit");
    let mut options = OPTIONS.to_vec();
    options.extend(["--ifname", "mgmt"]);
    let result = failed_because(&trial(&lab, &options).finish(LIMIT), "slower-interface-chosen");
    let finding = result["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|finding| finding["rule"] == "slower-interface-chosen")
        .cloned()
        .unwrap_or_default();
    assert!(
        finding["remedy"].as_str().is_some_and(|r| r.contains("eth0")),
        "the remedy names the fast interface: {finding:#}"
    );
}

#[test]
fn what_was_bought_is_held_against_what_is_there() {
    let Some(lab) = lab("what_was_bought_is_held_against_what_is_there", 2) else { return };
    let mut options = OPTIONS.to_vec();
    options.extend(["--line-rate", "10G"]);
    let finished = trial(&lab, &options).finish(LIMIT);
    finished.expect_code(1);
    assert_eq!(outcome(&finished.json()), "fail");
}

#[test]
fn a_run_that_is_over_before_a_counter_moves_is_inconclusive() {
    let Some(lab) = lab("a_run_that_is_over_before_a_counter_moves", 2) else { return };
    let finished =
        trial(&lab, &["-b", "8", "-e", "8", "-n", "1", "-w", "0", "-o", "json"]).finish(LIMIT);
    finished.expect_code(3);
    assert_eq!(outcome(&finished.json()), "inconclusive");
}

#[test]
fn no_interface_matches_a_wildcard_and_the_error_says_why() {
    let Some(lab) = lab("no_interface_matches_a_wildcard", 2) else { return };
    let finished = trial(&lab, &["--ifname", "eth*", "-e", "1K"]).finish(LIMIT);
    finished.expect_code(4);
    assert!(finished.stderr.contains("wildcard"), "{}", finished.stderr);
    assert!(finished.stderr.contains("eth0"), "what would match: {}", finished.stderr);
}

#[test]
fn settings_that_differ_between_hosts_are_found() {
    let Some(lab) = lab("settings_that_differ_between_hosts_are_found", 2) else { return };
    let finished = trial_with(&lab, &["-b", "64K", "-e", "64K", "-o", "json"], |host, command| {
        if host == 1 {
            command.env("NCCL_IB_TIMEOUT", "22");
        }
    })
    .finish(LIMIT);
    let result = finished.json();
    assert!(
        rules(&result).iter().any(|r| r == "env-mismatch-across-ranks"),
        "{:#}",
        result["findings"]
    );
}
