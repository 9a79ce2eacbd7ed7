//! `bootstrap-unreachable`: a peer's address can not be reached.
//!
//! ## What
//!
//! A worker or rank was lost because a connection was refused, had no route or got no answer.
//!
//! ## Why
//!
//! A firewall or network policy between the hosts (all of NCCL's ports are ephemeral), an address of
//! a network that is not routed, or a process that is not there.
//!
//! ## Example
//!
//! `rank 2 on h3: 10.0.1.7:41233: no route to host`
//!
//! ## Remedy
//!
//! Let the ranks' ports through (`net.ipv4.ip_local_port_range` on every host), and choose an
//! interface that all hosts share.
//!
//! ## Source
//!
//! NCCL 2.30.7 `src/misc/socket.cc`: refused, timed out and unreachable are tried 34 times.

use super::dns_resolution_failed::is_dns;
use crate::documents::{Documents, Pairs, Pod};
use crate::evidence::{Evidence, Failure};
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::incident::is_virtual_interface;
use crate::rule::Rule;
use ncclctl_nccl::log::Signal;
use ncclctl_nccl::log::address::is_link_local;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    incident: Some(incident),
    documents: Some(documents),
    ..Rule::new("bootstrap-unreachable", Severity::Error, "a peer's address can not be reached")
};

/// A NetworkPolicy of the set that selects pods of a job and lets in no traffic from each other, or
/// only on named ports.
fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for policy in set.policies.iter().filter(|p| !p.partly_read) {
        let Some(pod) = set.pods.iter().find(|pod| {
            pod.namespace == policy.namespace
                && pod.several(set)
                && pod.containers.iter().any(|c| c.gpu_spot().is_some())
                && selects(&policy.selector, pod)
        }) else {
            continue;
        };
        // policies add up: another one may open what this one does not
        let opened =
            set.policies
                .iter()
                .filter(|p| {
                    p.namespace == policy.namespace && (p.partly_read || selects(&p.selector, pod))
                })
                .any(|p| {
                    p.partly_read
                        || p.ingress.iter().any(|rule| {
                            (!rule.ports || rule.wide)
                                && rule.from.as_ref().is_none_or(|from| {
                                    from.iter().any(|labels| selects(labels, pod))
                                })
                        })
                });
        if opened {
            continue;
        }
        let some = policy.ingress.iter().any(|r| r.ports);
        findings.push(
            set.say(
                &RULE,
                Confidence::Likely,
                &policy.name.at,
                format!(
                    "NetworkPolicy {} lets pods of {} reach each other {}",
                    policy.name.text,
                    pod.title(),
                    if some { "on some ports only" } else { "not at all" }
                ),
                "NCCL's sockets listen on ports that the kernel chooses (net.ipv4.ip_local_port_range); \
                 only the rendezvous port is known beforehand",
                "add an ingress rule without `ports` whose `from` is a podSelector with the job's own labels",
            )
            .at(Severity::Error),
        );
    }
}

fn selects(selector: &Pairs, pod: &Pod) -> bool {
    selector.iter().all(|(key, value)| {
        pod.labels.iter().any(|(k, v)| k.text == key.text && v.text == value.text)
    })
}

/// What the kernel says, in lower case, with what it means.
const SIGNS: &[(&str, &str)] = &[
    ("no route to host", "no route, or a firewall that rejects"),
    ("network is unreachable", "this host has no route into that network"),
    ("unreachable", "the address can not be reached from there"),
    ("connection refused", "the host is there, but nothing listens on the port"),
    ("refused", "the host is there, but nothing listens on the port"),
    ("timed out", "packets are dropped on the way: a firewall or network policy"),
];

fn meaning(failure: &Failure) -> Option<&'static str> {
    let seen = failure.seen.to_lowercase();
    let connecting =
        ["rendezvous", "connect", "join", "start"].iter().any(|p| failure.phase.starts_with(p));
    SIGNS
        .iter()
        .find(|(sign, _)| seen.contains(sign))
        .map(|(_, meaning)| *meaning)
        .filter(|_| connecting || seen.contains("route") || seen.contains("unreachable"))
}

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    for failure in evidence.failures.iter().filter(|f| !is_dns(&f.seen)) {
        let Some(meaning) = meaning(failure) else { continue };
        let who = match failure.rank {
            Some(rank) => format!("rank {rank} on {}", failure.host),
            None => failure.host.clone(),
        };
        findings.push(RULE.found(
            Confidence::Likely,
            format!("{who}: {}", failure.seen),
            meaning,
            "let TCP through on the port range of net.ipv4.ip_local_port_range between all hosts, \
             and choose an interface that they share (NCCL_SOCKET_IFNAME)",
            vec![Exhibit::measured(format!("{who} in phase {}", failure.phase), &failure.seen)],
        ));
    }
}

fn incident(incident: &Incident, findings: &mut Vec<Finding>) {
    // an address that nobody can reach is its own cause
    let wrong = incident.log.processes.iter().any(|p| {
        p.bootstrap.value.first().is_some_and(|b| {
            b.ip.is_some_and(|ip| is_link_local(ip) || ip.is_loopback())
                || is_virtual_interface(&b.interface)
        })
    });
    if wrong {
        return;
    }
    let failures = incident.socket_failures();
    let blocked = failures.iter().find(|(f, n)| {
        f.connecting
            && !incident.process(n).is_some_and(|p| {
                p.bootstrap.value.first().is_some_and(|b| b.interface.starts_with("ib"))
            })
    });
    if let Some((failure, notice)) = blocked {
        let host = incident.process(notice).map_or("a rank", |p| p.host.as_str());
        let peer = failure.peer.map_or("its peer".to_owned(), |p| p.to_string());
        // after set-up a refusal only says that the peer is gone
        let late = incident.process(notice).is_some_and(|p| p.complete);
        let refused = failure.error == "Connection refused";
        findings.push(RULE.found(
            if refused || late { Confidence::Possible } else { Confidence::Likely },
            format!("{host} can not reach {peer}: {}", failure.error),
            if refused {
                "the host answers but nobody listens there: the peer has ended, or something \
                     between them refuses the port"
            } else {
                "a firewall, network policy or missing route stops NCCL's ephemeral TCP ports \
                     between the hosts (a rejecting firewall also shows as no route)"
            },
            "open all TCP ports between the hosts, or fix net.ipv4.ip_local_port_range and open \
                 that range; test the path alone with `ncclctl bench --engine tcp`",
            incident.exhibits([&notice.at], 3),
        ));
        return;
    }
    let store = incident.log.signal(Signal::StoreUnreachable);
    let resolved = incident.log.signal(Signal::NameResolution).is_empty();
    if let Some(first) = store.first()
        && resolved
    {
        findings.push(RULE.found(
            Confidence::Likely,
            "a rank can not reach the rendezvous store of rank 0",
            "MASTER_ADDR:MASTER_PORT does not answer from this host: blocked, not routed, or rank 0 \
             has not started",
            "check that rank 0 runs, and that its port answers from here (`nc -vz MASTER_ADDR \
             MASTER_PORT`)",
            incident.exhibits([first], 3),
        ));
    }
}
