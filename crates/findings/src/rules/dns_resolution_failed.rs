//! `dns-resolution-failed`: the name of a host does not resolve.
//!
//! ## What
//!
//! A worker or rank was lost because a name had no address.
//!
//! ## Why
//!
//! In Kubernetes: the headless service is missing or does not publish addresses of pods that are
//! not ready, the search domain is missing under hostNetwork, or DNS itself is down. Outside: a
//! typing error, or /etc/hosts that is not the same everywhere.
//!
//! ## Example
//!
//! `worker-3 did not come: name worker-3.job does not resolve`
//!
//! ## Remedy
//!
//! `getent hosts NAME` on the host that failed; in Kubernetes a headless service with
//! `publishNotReadyAddresses: true`, and `dnsPolicy: ClusterFirstWithHostNet` with hostNetwork.
//!
//! ## Source
//!
//! getaddrinfo(3): EAI_NONAME, EAI_AGAIN.

use crate::evidence::Evidence;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;
use ncclctl_nccl::log::Signal;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    incident: Some(incident),
    ..Rule::new("dns-resolution-failed", Severity::Error, "a host's name does not resolve")
};

/// What resolvers say, in lower case.
const SIGNS: &[&str] = &[
    "does not resolve",
    "name or service not known",
    "name resolution",
    "no address associated",
    "nodename nor servname",
    "could not resolve",
    "nxdomain",
];

pub(super) fn is_dns(seen: &str) -> bool {
    let seen = seen.to_lowercase();
    SIGNS.iter().any(|s| seen.contains(s))
}

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    for failure in evidence.failures.iter().filter(|f| is_dns(&f.seen)) {
        findings.push(RULE.found(
            Confidence::Certain,
            format!("{}: {}", failure.host, failure.seen),
            format!("a name had no address in phase {}", failure.phase),
            "getent hosts NAME there; in Kubernetes a headless service with \
             publishNotReadyAddresses: true, and with hostNetwork dnsPolicy: \
             ClusterFirstWithHostNet",
            vec![Exhibit::measured(
                format!("{} in phase {}", failure.host, failure.phase),
                &failure.seen,
            )],
        ));
    }
}

fn incident(incident: &Incident, findings: &mut Vec<Finding>) {
    let notices = incident.notices(&["error encountered when getting address info"]);
    let mut places: Vec<_> = notices.iter().map(|n| &n.at).collect();
    for at in incident.log.signal(Signal::NameResolution) {
        // an early try that later succeeded is how launchers work
        let started = incident
            .log
            .processes
            .iter()
            .any(|p| p.first.source == at.source && p.first.line > at.line);
        let later =
            match name(&at.text) {
                Some(host) => {
                    let short = host.split('.').next().unwrap_or(host);
                    incident.log.processes.iter().any(|p| p.host == short)
                        || incident.log.signal(Signal::HostKnown).iter().any(|k| {
                            k.source == at.source && k.line > at.line && k.text.contains(host)
                        })
                }
                // the line was cut: that the job started is enough
                None => started,
            };
        if !later {
            places.push(at);
        }
    }
    let Some(first) = places.first() else { return };
    let nccl = incident.log.processes.iter().any(|p| p.complete);
    if nccl && notices.is_empty() {
        return;
    }
    let who = name(&first.text).unwrap_or("a host name");
    findings.push(RULE.found(
        Confidence::Certain,
        format!("{who} does not resolve"),
        "the headless service or its record is not there (yet), has another name, or this pod's DNS \
         policy does not ask the cluster's DNS",
        "wait for the service and retry; check its selector and publishNotReadyAddresses; with \
         hostNetwork set dnsPolicy ClusterFirstWithHostNet",
        incident.exhibits(places, 3),
    ));
}

/// The name that did not resolve.
fn name(text: &str) -> Option<&str> {
    let word = ["resolve hostname ", "resolve host ", "getaddrinfo for ", "hostname "]
        .iter()
        .find_map(|k| text.split(k).nth(1))?;
    let word = word.split([' ', ':', ',', '"', '\'']).find(|w| !w.is_empty())?;
    Some(word.trim_end_matches('.'))
}
