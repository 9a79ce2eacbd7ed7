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
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
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
