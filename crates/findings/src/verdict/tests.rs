//! The verdict over made-up trials, in words.

use insta::assert_snapshot;
use ncclctl_facts::net::Kind;

use super::{Judgement, Outcome, Terms, judge, suspects, too_slow, wants_pairs};
use crate::evidence::{Alternative, Evidence, Failure, Transport};
use crate::synthetic::{GIGABIT, hosts, interface, local, physical, probe_pairs, run, set_path};

/// Everything that a reader sees, without layout.
fn words(e: &Evidence) -> String {
    show(&judge(e, &Terms::default()))
}

fn show(j: &Judgement) -> String {
    let v = &j.verdict;
    let mut lines = vec![format!("{:?}: {}", v.outcome, v.summary)];
    if let Some(x) = &v.expected {
        lines.push(format!("expected {:.4} GB/s, {:?}, by {}", x.busbw, x.basis, x.limited_by));
        lines.extend(x.limits.iter().map(|l| format!("  {:.4} {}: {}", l.busbw, l.what, l.how)));
    }
    for (name, p) in
        [("transport", &v.proofs.transport), ("wire", &v.proofs.wire), ("busbw", &v.proofs.busbw)]
    {
        lines.push(format!("{name} {}: {}", if p.had { "had" } else { "missing" }, p.says));
    }
    lines.push(format!("noise: {}", v.noise.says));
    lines.extend(v.unknown.iter().map(|u| format!("unknown: {u}")));
    lines.extend(v.settle.iter().map(|s| format!("settle: {s}")));
    for f in &j.findings {
        lines
            .push(format!("{:?} {}: {}. {}. {}", f.severity, f.rule, f.message, f.cause, f.remedy));
    }
    lines.join("\n")
}

fn outcome(e: &Evidence) -> Outcome {
    judge(e, &Terms::default()).verdict.outcome
}

fn rules(e: &Evidence) -> Vec<String> {
    judge(e, &Terms::default()).findings.into_iter().map(|f| f.rule).collect()
}

#[test]
fn two_ranks_on_a_laptop() {
    assert_snapshot!(words(&local(2, 1.6e9)), @r"
    Pass: all_reduce 16M reached 1.21 GB/s, 96% of the 1.26 GB/s expected
    expected 1.2556 GB/s, Measured, by path rank 0 -> rank 1 (measured)
      1.2632 path rank 0 -> rank 1 (measured): 1/(1/path + f/reduce): path 1.6 GB/s, f 0.5, reduce 3 GB/s
      6.0000 reduction on the processor (measured): 3 GB/s a rank, 0.5 of the bytes are reduced
    transport had: 2 edges socket
    wire missing: all ranks are on one host: no NIC carries the traffic
    busbw had: 1.21 GB/s of 1.26 GB/s expected at 16M
    noise: time known to ±1.2% over 40 operations
    unknown: all ranks are on one host: this says nothing about a network
    Info cpu-bound: laptop had no idle processor: 2.0 of 2 busy, 1.5 by this trial. the ranks themselves use every processor: the figure is what they can copy and reduce. fewer ranks per host, or a host with more processors, if the network must be seen
    ");
}

#[test]
fn a_busy_laptop_still_ends_in_an_honest_pass() {
    let mut e = local(2, 1.6e9);
    // the browser woke up after the first paths were measured, and went to sleep again
    e.paths[0].rate_bps *= 1.25;
    e.paths[3].rate_bps *= 0.85;
    for c in &mut e.cpu {
        c.busy_cpus = 2.0;
    }
    e.series[7].time.drift = 0.12;
    let j = judge(&e, &Terms::default());
    assert_eq!(j.verdict.outcome, Outcome::Pass, "{}", show(&j));
    assert!(j.findings.iter().all(|f| f.severity < crate::Severity::Warning), "{}", show(&j));
    assert!(j.verdict.noise.says.contains("raw paths changed"), "{}", j.verdict.noise.says);
}

#[test]
fn a_machine_that_others_use_is_no_failure() {
    let slow = |change: fn(&mut crate::evidence::CpuWindow)| {
        let mut e = local(2, 1.6e9);
        run(&mut e, 0.5);
        e.cpu.iter_mut().for_each(change);
        judge(&e, &Terms::default()).verdict
    };
    let own = slow(|w| w.trial_cpus = 1.9);
    assert_eq!(own.outcome, Outcome::Fail, "{}", own.summary);
    let others = slow(|w| w.trial_cpus = 0.9);
    assert_eq!(others.outcome, Outcome::Inconclusive);
    assert!(others.summary.contains("other work used 1.1 of 2 processors"), "{}", others.summary);
    let stolen = slow(|w| {
        w.trial_cpus = 1.3;
        w.stolen_cpus = 0.6;
    });
    assert_eq!(stolen.outcome, Outcome::Inconclusive);
    assert!(stolen.summary.contains("hypervisor took 0.6 of 2"), "{}", stolen.summary);
    // between hosts a slow network is not excused by a busy machine
    let mut e = hosts(3, GIGABIT);
    run(&mut e, 0.5);
    e.cpu.iter_mut().for_each(|w| w.stolen_cpus = 0.6);
    for (number, host) in e.hosts.iter_mut().enumerate() {
        host.boot_id = format!("boot {number}");
    }
    assert_eq!(outcome(&e), Outcome::Fail);
}

#[test]
fn only_what_is_too_slow_is_measured_again() {
    let mut e = hosts(3, GIGABIT);
    assert!(too_slow(&e).is_empty());
    run(&mut e, 0.6);
    let again = too_slow(&e);
    assert!(!again.is_empty());
    let judged = judge(&e, &Terms::default()).verdict.points;
    assert!(again.iter().all(|i| judged[*i].judged), "sizes under the knee are left alone");
    // one line that had bad luck decides nothing
    let mut e = hosts(3, GIGABIT);
    let last = e.series.len() - 1;
    e.series[last].busbw *= 0.5;
    assert!(too_slow(&e).is_empty());
}

#[test]
fn a_path_that_was_fast_once_is_not_slow() {
    let mut e = hosts(4, GIGABIT);
    probe_pairs(&mut e, |a, b| if (a, b) == (1, 2) { 0.3 * GIGABIT } else { GIGABIT });
    assert_eq!(suspects(&e), [(1, 2)]);
    assert!(rules(&e).contains(&"slow-link".to_owned()));
    probe_pairs(&mut e, |_, _| GIGABIT);
    assert!(suspects(&e).is_empty());
    assert!(!rules(&e).contains(&"slow-link".to_owned()), "{:?}", rules(&e));
}

#[test]
fn four_healthy_hosts() {
    let e = hosts(4, GIGABIT);
    assert!(!wants_pairs(&e));
    assert_snapshot!(words(&e), @r"
    Pass: all_reduce 16M reached 0.114 GB/s, 97% of the 0.118 GB/s expected
    expected 0.1176 GB/s, Measured, by path rank 0 on h1 -> rank 1 on h2 (measured)
      0.1177 path rank 0 on h1 -> rank 1 on h2 (measured): slowest healthy edge while all stream: 942 Mbit/s
      8.0000 reduction on the processor (measured): 4 GB/s a rank, 0.5 of the bytes are reduced
    transport had: 4 edges socket
    wire had: 0.12 GB/s at h1, as the algorithm must move
    busbw had: 0.114 GB/s of 0.118 GB/s expected at 16M
    noise: time known to ±1.2% over 40 operations
    unknown: the ceiling was measured here: a network that is slow as a whole would not show
    settle: state what was bought: --line-rate 100G
    ");
}

fn one_host_at_200_mbit() -> Evidence {
    let mut e = hosts(4, GIGABIT);
    set_path(&mut e, 1, 2, 24e6);
    set_path(&mut e, 2, 3, 24e6);
    run(&mut e, 0.97);
    e
}

#[test]
fn one_slow_host_is_named() {
    let mut e = one_host_at_200_mbit();
    assert!(wants_pairs(&e));
    probe_pairs(&mut e, |a, b| if a == 2 || b == 2 { 24e6 } else { GIGABIT });
    assert!(!wants_pairs(&e));
    assert_snapshot!(words(&e), @r"
    Fail: h3 is slow: 192 Mbit/s with healthy partners, 942 Mbit/s is usual here
    expected 0.1176 GB/s, Measured, by path rank 0 on h1 -> rank 1 on h2 (measured)
      0.1177 path rank 0 on h1 -> rank 1 on h2 (measured): slowest healthy edge while all stream: 942 Mbit/s
      8.0000 reduction on the processor (measured): 4 GB/s a rank, 0.5 of the bytes are reduced
    transport had: 4 edges socket
    wire had: 0.024 GB/s at h1, as the algorithm must move
    busbw had: 0.023 GB/s of 0.118 GB/s expected at 16M
    noise: time known to ±1.2% over 40 operations
    unknown: the ceiling was measured here: a network that is slow as a whole would not show
    Error slow-node: h3 is slow: 192 Mbit/s with healthy partners, 942 Mbit/s is usual here. 6 paths of h3 with different partners are slow, so it is h3 and not them; every ring through it runs at its pace. take h3 out of the job; on it look at ethtool (speed, duplex, errors), cable and switch port, tc qdisc, and what else runs there
    ");
}

#[test]
fn a_slow_host_is_named_even_without_probes() {
    assert_eq!(rules(&one_host_at_200_mbit()), ["slow-node"]);
}

#[test]
fn one_slow_edge_is_named_and_no_host() {
    let mut e = hosts(4, GIGABIT);
    set_path(&mut e, 1, 2, 18e6);
    run(&mut e, 0.97);
    assert!(wants_pairs(&e));
    probe_pairs(&mut e, |a, b| if a.min(b) == 1 && a.max(b) == 2 { 18e6 } else { GIGABIT });
    assert_snapshot!(words(&e), @r"
    Fail: the path between h2 and h3 is slow: 144 Mbit/s, 942 Mbit/s is usual here
    expected 0.1176 GB/s, Measured, by path rank 0 on h1 -> rank 1 on h2 (measured)
      0.1177 path rank 0 on h1 -> rank 1 on h2 (measured): slowest healthy edge while all stream: 942 Mbit/s
      8.0000 reduction on the processor (measured): 4 GB/s a rank, 0.5 of the bytes are reduced
    transport had: 4 edges socket
    wire had: 0.018 GB/s at h1, as the algorithm must move
    busbw had: 0.017 GB/s of 0.118 GB/s expected at 16M
    noise: time known to ±1.2% over 40 operations
    unknown: the ceiling was measured here: a network that is slow as a whole would not show
    Error slow-link: the path between h2 and h3 is slow: 144 Mbit/s, 942 Mbit/s is usual here. h2 and h3 are fast with others, so it is what lies between the two. look at what only h2 and h3 share: switch uplink, bond hash, route, firewall; until then keep them from being neighbours in the ring
    ");
}

#[test]
fn a_slow_direction_says_so() {
    let mut e = hosts(4, GIGABIT);
    set_path(&mut e, 1, 2, 18e6);
    run(&mut e, 0.97);
    probe_pairs(&mut e, |a, b| if (a, b) == (1, 2) { 18e6 } else { GIGABIT });
    let j = judge(&e, &Terms::default());
    assert_eq!(j.verdict.outcome, Outcome::Fail);
    assert_snapshot!(j.findings[0].message, @"the path h2 -> h3 is slow in that direction: 144 Mbit/s, 942 Mbit/s is usual here");
}

#[test]
fn whoever_is_slow_is_named_at_any_number_of_hosts() {
    for count in 3..=9 {
        for bad in 0..count {
            let mut e = hosts(count, GIGABIT);
            for (a, b) in [((bad + count - 1) % count, bad), (bad, (bad + 1) % count)] {
                set_path(&mut e, a, b, 24e6);
            }
            run(&mut e, 0.97);
            probe_pairs(&mut e, |a, b| if a == bad || b == bad { 24e6 } else { GIGABIT });
            let j = judge(&e, &Terms::default());
            let named: Vec<_> = j.findings.iter().filter(|f| f.rule == "slow-node").collect();
            assert_eq!(named.len(), 1, "{count} hosts, host {bad}: {}", show(&j));
            assert!(named[0].message.starts_with(&format!("h{} is slow", bad + 1)));
            assert!(!j.findings.iter().any(|f| f.rule == "slow-link"), "{}", show(&j));
            assert_eq!(j.verdict.outcome, Outcome::Fail);
        }
    }
}

#[test]
fn two_hosts_name_the_direction() {
    let mut e = hosts(2, GIGABIT);
    set_path(&mut e, 0, 1, 20e6);
    run(&mut e, 0.97);
    assert!(!wants_pairs(&e));
    let j = judge(&e, &Terms::default());
    assert_eq!(j.verdict.outcome, Outcome::Fail);
    assert_snapshot!(j.findings[0].message, @"the path h1 -> h2 is slow in that direction: 160 Mbit/s, 942 Mbit/s is usual here");
}

#[test]
fn a_slow_interface_beside_a_fast_one() {
    let mut e = hosts(3, 11.7e6);
    for (h, host) in e.hosts.iter_mut().enumerate() {
        host.interfaces.push(interface("mgmt", Kind::Veth, &format!("10.9.0.{}", h + 1)));
    }
    for rank in &mut e.ranks {
        rank.interfaces[0].name = "mgmt".to_owned();
        rank.interfaces[0].rule = "NCCL_SOCKET_IFNAME=mgmt".to_owned();
    }
    run(&mut e, 0.97);
    for from in 0..3 {
        let to = (from + 1) % 3;
        let interface = "eth0".to_owned();
        e.alternatives.push(Alternative { interface, from, to, rate_bps: GIGABIT });
    }
    assert_snapshot!(words(&e), @r"
    Fail: mgmt is used at 93.6 Mbit/s, while eth0 reaches 942 Mbit/s between the same hosts
    expected 0.0117 GB/s, Measured, by path rank 0 on h1 -> rank 1 on h2 (measured)
      0.0117 path rank 0 on h1 -> rank 1 on h2 (measured): slowest healthy edge while all stream: 93.6 Mbit/s
      8.0000 reduction on the processor (measured): 4 GB/s a rank, 0.5 of the bytes are reduced
    transport had: 3 edges socket
    wire had: 0.012 GB/s at h1, as the algorithm must move
    busbw had: 0.011 GB/s of 0.012 GB/s expected at 1M
    noise: time known to ±1.2% over 40 operations
    unknown: the ceiling was measured here: a network that is slow as a whole would not show
    Error slower-interface-chosen: mgmt is used at 93.6 Mbit/s, while eth0 reaches 942 Mbit/s between the same hosts. mgmt was chosen by NCCL_SOCKET_IFNAME=mgmt; NCCL does not compare speeds. NCCL_SOCKET_IFNAME==eth0
    ");
}

#[test]
fn counters_that_never_moved_are_no_pass() {
    let mut e = hosts(4, GIGABIT);
    for w in &mut e.wire {
        w.rx_bytes = 0;
        w.tx_bytes = 0;
    }
    assert_snapshot!(words(&e), @r"
    Inconclusive: all_reduce 16M reached 0.114 GB/s, 97% of the 0.118 GB/s expected, but no NIC counter moved while it ran
    expected 0.1176 GB/s, Measured, by path rank 0 on h1 -> rank 1 on h2 (measured)
      0.1177 path rank 0 on h1 -> rank 1 on h2 (measured): slowest healthy edge while all stream: 942 Mbit/s
      8.0000 reduction on the processor (measured): 4 GB/s a rank, 0.5 of the bytes are reduced
    transport had: 4 edges socket
    wire missing: no NIC counter moved while it ran
    busbw had: 0.114 GB/s of 0.118 GB/s expected at 16M
    noise: time known to ±1.2% over 40 operations
    unknown: the ceiling was measured here: a network that is slow as a whole would not show
    settle: a longer run: more iterations or larger sizes, -e 256M
    settle: state what was bought: --line-rate 100G
    ");
}

#[test]
fn counters_that_saw_a_tenth_are_no_pass() {
    let mut e = hosts(4, GIGABIT);
    for w in &mut e.wire {
        w.rx_bytes /= 10;
        w.tx_bytes /= 10;
    }
    assert_eq!(outcome(&e), Outcome::Inconclusive);
}

#[test]
fn a_tiny_run_is_inconclusive() {
    let mut e = hosts(2, GIGABIT);
    e.series.truncate(2);
    e.wire.clear();
    assert_snapshot!(words(&e), @r"
    Inconclusive: no size could be judged: under the knee: latency of 80 us is 100% of its time
    transport had: 2 edges socket
    wire missing: no size was judged
    busbw missing: no size was judged
    noise: no size was judged
    settle: larger sizes: -e 256M
    ");
}

#[test]
fn wrong_data_fails_and_is_named() {
    let mut e = hosts(4, GIGABIT);
    e.series[4].wrong = Some(128);
    e.series[4].wrong_ranks = vec![2];
    let j = judge(&e, &Terms::default());
    assert_eq!(j.verdict.outcome, Outcome::Fail);
    assert_snapshot!(j.verdict.summary, @"wrong data: 128 elements of all_reduce at 1M, on rank 2 (h3)");
}

#[test]
fn noise_is_stated() {
    let mut e = local(2, 1.6e9);
    for p in &mut e.series {
        p.time.ci95_us = 0.25 * p.time.mean_us;
        p.time.drift = 0.3;
        p.time.outliers = 4;
    }
    let j = judge(&e, &Terms::default());
    assert_snapshot!(format!("{}\n{}", j.verdict.noise.says, j.findings[0].message), @r"
    time known to ±25% over 40 operations, 30% slower at the end than at the start, 4 outliers
    laptop had no idle processor: 2.0 of 2 busy, 1.5 by this trial
    ");
}

#[test]
fn a_cpu_quota_explains_a_slow_run() {
    let mut e = hosts(4, GIGABIT);
    run(&mut e, 0.80);
    assert_eq!(outcome(&e), Outcome::Inconclusive);
    for c in e.cpu.iter_mut().filter(|c| c.host == 1) {
        c.throttled_seconds = 0.2;
    }
    e.hosts[1].cpus = 0.5;
    let j = judge(&e, &Terms::default());
    assert_eq!(j.verdict.outcome, Outcome::Fail);
    assert_snapshot!(j.verdict.summary, @"all_reduce 16M reached 0.094 GB/s, 80% of the 0.118 GB/s expected: h2 was held back by its cpu quota for 40% of the time (0.5 processors allowed)");
}

#[test]
fn between_the_bounds_strict_decides() {
    let mut e = hosts(4, GIGABIT);
    run(&mut e, 0.80);
    let strict = judge(&e, &Terms { strict: true, ..Terms::default() });
    assert_eq!(strict.verdict.outcome, Outcome::Fail);
    assert!(wants_pairs(&e), "slow, and nobody asked yet who it is");
    assert_snapshot!(words(&e), @r"
    Inconclusive: all_reduce 16M reached 0.094 GB/s, 80% of the 0.118 GB/s expected, and no cause is proven
    expected 0.1176 GB/s, Measured, by path rank 0 on h1 -> rank 1 on h2 (measured)
      0.1177 path rank 0 on h1 -> rank 1 on h2 (measured): slowest healthy edge while all stream: 942 Mbit/s
      8.0000 reduction on the processor (measured): 4 GB/s a rank, 0.5 of the bytes are reduced
    transport had: 4 edges socket
    wire had: 0.099 GB/s at h1, as the algorithm must move
    busbw had: 0.094 GB/s of 0.118 GB/s expected at 16M
    noise: time known to ±1.2% over 40 operations
    unknown: the ceiling was measured here: a network that is slow as a whole would not show
    settle: pair probes: they tell who is slow
    settle: --strict if this must count as a failure
    settle: state what was bought: --line-rate 100G
    ");
}

#[test]
fn a_physical_nic_is_believed() {
    for (share, want) in
        [(0.97, Outcome::Pass), (0.80, Outcome::Inconclusive), (0.60, Outcome::Fail)]
    {
        let mut e = hosts(4, 11.77e9 * share);
        physical(&mut e, 100_000);
        e.reduce_bps = vec![40e9; 4];
        run(&mut e, 1.0);
        let j = judge(&e, &Terms::default());
        assert_eq!(j.verdict.outcome, want, "{share}: {}", show(&j));
        if want == Outcome::Fail {
            assert_snapshot!(show(&j), @r"
            Fail: all_reduce 16M reached 6.91 GB/s, 64% of the 10.9 GB/s expected by eth0 of h1 (100 Gbit/s), by its own report; plain streams reach only 56.5 Gbit/s: it is the network, or what was stated
            expected 10.8548 GB/s, Nic, by eth0 of h1 (100 Gbit/s), by its own report
              7.0620 path rank 0 on h1 -> rank 1 on h2 (measured): slowest healthy edge while all stream: 56.5 Gbit/s; not used: a slow network would hide in it
              11.7685 eth0 of h1 (100 Gbit/s), by its own report: line rate times 0.94 payload is 11.8 GB/s
              80.0000 reduction on the processor (measured): 40 GB/s a rank, 0.5 of the bytes are reduced
            transport had: 4 edges socket
            wire had: 7.25 GB/s at h1, 58% of line rate, as the algorithm must move
            busbw had: 6.91 GB/s of 10.9 GB/s expected at 16M
            noise: time known to ±1.2% over 40 operations
            ");
        }
    }
}

#[test]
fn what_was_bought_is_held_against_it() {
    let mut e = hosts(2, GIGABIT);
    e.stated_line_rate_bits = Some(10_000_000_000);
    let j = judge(&e, &Terms::default());
    assert_eq!(j.verdict.outcome, Outcome::Fail);
    assert_snapshot!(j.verdict.summary, @"all_reduce 16M reached 0.114 GB/s, 9.8% of the 1.17 GB/s expected by eth0 of h1 (10 Gbit/s), as stated; plain streams reach only 942 Mbit/s: it is the network, or what was stated");
    e.stated_line_rate_bits = Some(1_000_000_000);
    assert_eq!(outcome(&e), Outcome::Pass);
}

#[test]
fn a_slow_processor_does_not_hide_a_slow_network() {
    let mut e = hosts(2, GIGABIT);
    e.reduce_bps = vec![33e6; 2];
    e.stated_line_rate_bits = Some(10_000_000_000);
    run(&mut e, 0.57);
    let j = judge(&e, &Terms::default());
    assert_eq!(j.verdict.outcome, Outcome::Fail, "{}", show(&j));
    assert_snapshot!(j.verdict.summary, @"all_reduce 16M reached 0.067 GB/s, 102% of the 0.066 GB/s expected, but plain streams reach only 942 Mbit/s, 10% of the payload of eth0 of h1 (10 Gbit/s), as stated");
}

#[test]
fn a_lost_rank_is_the_verdict() {
    let mut e = hosts(4, GIGABIT);
    e.failures.push(Failure {
        rank: Some(2),
        host: "h3".to_owned(),
        phase: "connect".to_owned(),
        seen: "connection to 10.0.0.1:40123 timed out".to_owned(),
    });
    let j = judge(&e, &Terms::default());
    assert_eq!(j.verdict.outcome, Outcome::Fail);
    assert_snapshot!(format!("{}\n{:?}", j.verdict.summary, rules(&e)), @r#"
    rank 2 on h3 connection to 10.0.0.1:40123 timed out
    ["bootstrap-unreachable"]
    "#);
}

#[test]
fn one_rank_and_nothing_are_inconclusive() {
    assert_eq!(outcome(&Evidence::default()), Outcome::Inconclusive);
    let mut e = local(2, 1e9);
    for p in &mut e.series {
        p.ranks = 1;
    }
    e.ranks.truncate(1);
    assert_eq!(outcome(&e), Outcome::Inconclusive);
}

#[test]
fn transports_are_told() {
    let mut e = hosts(4, GIGABIT);
    e.edges[0].transport = Transport::Ib;
    e.edges[0].gdr = Some(true);
    e.edges[1].transport = Transport::Ib;
    e.edges[1].gdr = Some(false);
    let v = judge(&e, &Terms::default()).verdict;
    assert_snapshot!(v.proofs.transport.says, @"2 edges InfiniBand, 2 edges socket, 1 with GPUDirect RDMA, 1 without");
}

#[test]
fn a_judgement_survives_json() {
    let j = judge(&one_host_at_200_mbit(), &Terms::default());
    let text = serde_json::to_string(&j).unwrap();
    let back: Judgement = serde_json::from_str(&text).unwrap();
    assert_eq!((show(&back), back.verdict.outcome), (show(&j), j.verdict.outcome));
    let schema = serde_json::to_value(schemars::schema_for!(Judgement)).unwrap();
    assert!(schema["properties"]["verdict"].is_object());
}
