//! `socket-ifname-loopback`: the loopback interface was chosen for ranks on several hosts.
//!
//! ## What
//!
//! A rank uses `lo` or an address of 127.0.0.0/8 or ::1 while ranks run on more than one host.
//!
//! ## Why
//!
//! Peers on other hosts connect to their own loopback, not to this rank: the run hangs, or each host
//! ends up alone. `lo` is NCCL's last resort when nothing else has an address, and a common value in
//! guides for one machine.
//!
//! ## Example
//!
//! `rank 0 on h1 uses lo, but the job spans 2 hosts`
//!
//! ## Remedy
//!
//! `NCCL_SOCKET_IFNAME==eth0`, with the name of the NIC that reaches the others.
//!
//! ## Source
//!
//! NCCL 2.30.7 `src/misc/socket.cc`.

use std::collections::BTreeSet;

use crate::documents::Documents;
use crate::evidence::Evidence;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::paths::host_name;
use crate::rule::Rule;
use ncclctl_nccl::doubt::interface;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    incident: Some(incident),
    documents: Some(documents),
    ..Rule::new("socket-ifname-loopback", Severity::Error, "loopback chosen for several hosts")
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[interface::loopback], findings);
}

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    if evidence.hosts.len() < 2 {
        return;
    }
    let mut done: BTreeSet<usize> = BTreeSet::new();
    for (number, rank) in evidence.ranks.iter().enumerate() {
        let Some(chosen) = rank.interfaces.iter().find(|c| {
            c.name == "lo" || c.address.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }) else {
            continue;
        };
        if !done.insert(rank.host) {
            continue;
        }
        let name = host_name(evidence, rank.host);
        let better = evidence.hosts.get(rank.host).and_then(|h| {
            h.interfaces
                .iter()
                .find(|i| i.running && i.addresses.iter().any(|a| super::usable(&a.ip)))
        });
        findings.push(RULE.found(
            Confidence::Certain,
            format!(
                "rank {number} on {name} uses {}, but the job spans {} hosts",
                chosen.name,
                evidence.hosts.len()
            ),
            format!("chosen by {}; nobody else can reach a loopback address", chosen.rule),
            match better {
                Some(b) => format!("NCCL_SOCKET_IFNAME=={}", b.name),
                None => format!("give {name} an interface that reaches the other hosts"),
            },
            vec![Exhibit::nic(
                &chosen.name,
                &name,
                format!("{} by {}", chosen.address, chosen.rule),
            )],
        ));
    }
}

fn incident(incident: &Incident, findings: &mut Vec<Finding>) {
    if incident.finished() {
        return;
    }
    let on_loopback: Vec<_> = incident
        .log
        .processes
        .iter()
        .filter(|p| {
            p.bootstrap
                .value
                .first()
                .is_some_and(|b| b.interface == "lo" || b.ip.is_some_and(|ip| ip.is_loopback()))
        })
        .collect();
    let Some(first) = on_loopback.first() else { return };
    let setting = first.setting("NCCL_SOCKET_IFNAME");
    let excludes = setting.is_some_and(|s| {
        s.value.starts_with('^') && !s.value[1..].split(',').any(|e| e.trim() == "lo")
    });
    let hosts = incident.log.hosts().len();
    let meant = setting.is_some_and(|s| s.value.trim_start_matches('=') == "lo");
    if hosts < 2 && meant {
        return;
    }
    let why = match setting {
        Some(s) if excludes => {
            format!("NCCL_SOCKET_IFNAME={} leaves lo eligible, and lo comes first", s.value)
        }
        Some(s) => format!("NCCL_SOCKET_IFNAME={}", s.value),
        None => "no other interface of this host was usable".to_owned(),
    };
    let mut places = vec![&first.bootstrap.at];
    places.extend(setting.map(|s| &s.at));
    findings.push(RULE.found(
        if excludes || hosts > 1 { Confidence::Certain } else { Confidence::Likely },
        format!("{} rendezvous on lo (127.0.0.1): {why}", first.host),
        "no other host can reach a loopback address; a user's exclusion list replaces NCCL's own \
         exclusion of lo and docker",
        "unset NCCL_SOCKET_IFNAME, or name the interface (NCCL_SOCKET_IFNAME==eth0), or exclude lo \
         as well: NCCL_SOCKET_IFNAME=^docker0,lo",
        incident.exhibits(places, 4),
    ));
}
