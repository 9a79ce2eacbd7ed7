//! One made-up trial for each rule that looks at trials: with the fault it must speak, and name what
//! is at fault; without it, it must not.

use ncclctl_facts::net::Kind;

use super::RULES;
use crate::evidence::{Evidence, Failure};
use crate::finding::Finding;
use crate::synthetic::{GIGABIT, hosts, interface, physical};

fn findings(evidence: &Evidence) -> Vec<Finding> {
    let mut found = Vec::new();
    for look in RULES.iter().filter_map(|rule| rule.trial) {
        look(evidence, &mut found);
    }
    found
}

/// The first finding of the rule after `fault` was done to a healthy trial of three hosts.
fn spoken(rule: &str, fault: impl Fn(&mut Evidence)) -> Finding {
    let mut evidence = hosts(3, GIGABIT);
    let before: Vec<String> = findings(&evidence).into_iter().map(|f| f.rule).collect();
    assert!(!before.iter().any(|r| r == rule), "{rule} speaks about a healthy trial");
    fault(&mut evidence);
    let after = findings(&evidence);
    let found = after.iter().find(|f| f.rule == rule);
    found.cloned().unwrap_or_else(|| panic!("{rule} is silent; spoken: {after:#?}"))
}

fn says(finding: &Finding, words: &[&str]) {
    for word in words {
        assert!(finding.message.contains(word), "no `{word}` in `{}`", finding.message);
    }
    assert!(!finding.evidence.is_empty() && !finding.remedy.is_empty(), "{finding:#?}");
}

fn failure(phase: &str, seen: &str) -> Failure {
    Failure { rank: Some(1), host: "h2".to_owned(), phase: phase.to_owned(), seen: seen.to_owned() }
}

#[test]
fn an_mtu_that_differs() {
    let found = spoken("mtu-mismatch", |e| e.hosts[1].interfaces[1].mtu = 9000);
    says(&found, &["h2", "9000", "1500"]);
}

#[test]
fn half_duplex() {
    let found = spoken("nic-half-duplex", |e| e.hosts[2].interfaces[1].half_duplex = true);
    says(&found, &["eth0 of h3"]);
}

#[test]
fn errors_and_drops() {
    let found = spoken("nic-errors", |e| {
        e.wire.iter_mut().filter(|w| w.host == 1).for_each(|w| w.errors = 7);
    });
    says(&found, &["eth0 of h2", "errors"]);
    spoken("nic-errors", |e| {
        e.wire.iter_mut().filter(|w| w.host == 0).for_each(|w| w.drops = w.rx_bytes / 15_000);
    });
}

#[test]
fn a_virtual_interface_beside_a_real_one() {
    let found = spoken("wrong-interface-virtual", |e| {
        let host = &mut e.hosts[1];
        host.interfaces.push(interface("ens5", Kind::Physical, "192.168.7.2"));
        host.interfaces[1].name = "cni0".to_owned();
        host.interfaces[1].kind = Kind::Bridge;
        e.ranks[1].interfaces[0].name = "cni0".to_owned();
    });
    says(&found, &["h2", "cni0", "ens5"]);
    assert!(found.remedy.contains("=ens5"), "{}", found.remedy);
}

#[test]
fn a_link_local_address() {
    let found = spoken("wrong-interface-linklocal", |e| {
        e.ranks[2].interfaces[0].address = "169.254.3.1".to_owned();
    });
    says(&found, &["h3", "169.254.3.1"]);
}

#[test]
fn loopback_among_several_hosts() {
    let found = spoken("socket-ifname-loopback", |e| {
        e.ranks[0].interfaces[0].name = "lo".to_owned();
        e.ranks[0].interfaces[0].address = "127.0.0.1".to_owned();
    });
    says(&found, &["rank 0", "h1", "lo"]);
}

#[test]
fn another_network_on_another_host() {
    let found = spoken("socket-ifname-mismatch", |e| {
        e.hosts[1].interfaces.push(interface("mgmt0", Kind::Veth, "172.16.0.9"));
        e.ranks[1].interfaces[0].name = "mgmt0".to_owned();
        e.ranks[1].interfaces[0].address = "172.16.0.9".to_owned();
    });
    says(&found, &["h1", "h2", "mgmt0"]);
}

#[test]
fn a_nic_below_its_siblings() {
    let found = spoken("nic-below-rated-speed", |e| {
        physical(e, 25_000);
        e.hosts[2].interfaces[1].reported_mbits = Some(10_000);
    });
    says(&found, &["eth0 of h3", "10", "25"]);
}

#[test]
fn settings_that_differ_and_a_secret_that_stays_one() {
    let found = spoken("env-mismatch-across-ranks", |e| {
        let set = |e: &mut Evidence, host: usize, value: &str| {
            e.hosts[host].environment.insert("NCCL_IB_TIMEOUT".to_owned(), value.to_owned());
        };
        set(e, 0, "22");
        set(e, 1, "14");
    });
    says(&found, &["NCCL_IB_TIMEOUT", "22", "14"]);
    let found = spoken("env-mismatch-across-ranks", |e| {
        e.hosts[0].environment.insert("NCCL_PSK".to_owned(), "hunter2-hunter2".to_owned());
    });
    assert!(!format!("{found:?}").contains("hunter2"), "{found:#?}");
}

#[test]
fn names_that_do_not_resolve_and_peers_that_do_not_answer() {
    let found = spoken("dns-resolution-failed", |e| {
        e.failures
            .push(failure("rendezvous", "the name does not resolve (failed to lookup address)"));
    });
    says(&found, &["h2"]);
    let found = spoken("bootstrap-unreachable", |e| {
        e.failures.push(failure("connecting", "10.0.0.3:40123: connection refused"));
    });
    says(&found, &["rank 1 on h2", "refused"]);
}

#[test]
fn ranks_that_each_ran_alone() {
    let found = spoken("not-one-job", |e| e.series.iter_mut().for_each(|p| p.ranks = 1));
    says(&found, &["3 ranks"]);
    let found = spoken("not-one-job", |e| {
        e.ranks.iter_mut().for_each(|r| r.pid = 41);
        e.ranks[1].host = 0;
    });
    says(&found, &["one process"]);
}

#[test]
fn one_nic_of_two_and_two_that_are_uneven() {
    let second = |e: &mut Evidence, share: f64| {
        let more: Vec<_> = e
            .wire
            .iter()
            .cloned()
            .map(|mut w| {
                w.nic = "eth1".to_owned();
                w.tx_bytes = (w.tx_bytes as f64 * share) as u64;
                w.rx_bytes = (w.rx_bytes as f64 * share) as u64;
                w
            })
            .collect();
        e.wire.extend(more);
        for host in 0..e.hosts.len() {
            let ip = format!("10.0.1.{}", host + 1);
            e.hosts[host].interfaces.push(interface("eth1", Kind::Veth, &ip));
            let mut chosen = e.ranks[host].interfaces[0].clone();
            chosen.name = "eth1".to_owned();
            chosen.address = ip;
            e.ranks[host].interfaces.push(chosen);
        }
    };
    says(&spoken("single-nic-used", |e| second(e, 0.0)), &["only eth0 of 2"]);
    says(&spoken("uneven-nics", |e| second(e, 0.3)), &["eth0", "eth1"]);
}
