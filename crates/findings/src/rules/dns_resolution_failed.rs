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

use crate::documents::{Documents, Pairs, Pod};
use crate::evidence::Evidence;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;
use ncclctl_nccl::log::Signal;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    incident: Some(incident),
    documents: Some(documents),
    ..Rule::new("dns-resolution-failed", Severity::Error, "a host's name does not resolve")
};

/// The Service that gives pods of a StatefulSet or Indexed Job their names. One that is not in the
/// set may be elsewhere, so that its absence is for information.
fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    without_subdomain(set, findings);
    for pod in &set.pods {
        let Some(wanted) = pod.service_name.as_ref().or(pod.subdomain.as_ref()) else { continue };
        if wanted.text.is_empty() || wanted.text.contains(['$', '{']) || !pod.several(set) {
            continue;
        }
        let service = set
            .services
            .iter()
            .find(|s| s.name.text == wanted.text && s.namespace == pod.namespace);
        let Some(service) = service else {
            // JobSet and LeaderWorkerSet make theirs
            if matches!(pod.kind.as_str(), "StatefulSet" | "Job") {
                findings.push(
                    set.say(
                        &RULE,
                        Confidence::Possible,
                        &wanted.at,
                        format!("no Service {} in these files", wanted.text),
                        "names of pods resolve only while a headless Service of that name selects them",
                        format!("add a Service {} with `clusterIP: None` and the pods' labels as selector", wanted.text),
                    )
                    .at(Severity::Info),
                );
            }
            continue;
        };
        let headless = service.cluster_ip.as_ref().is_some_and(|c| c.text == "None");
        if !headless {
            let at = service.cluster_ip.as_ref().map_or(&service.name.at, |c| &c.at);
            findings.push(
                set.say(
                    &RULE,
                    Confidence::Certain,
                    at,
                    format!("Service {} of {} is not headless", service.name.text, pod.title()),
                    "only a headless Service gives each pod a name of its own; with a cluster IP, \
                     connections to it reach any pod",
                    "write `clusterIP: None`",
                )
                .at(Severity::Warning),
            );
        }
        if let Some((key, value)) = unmatched(&service.selector, pod) {
            findings.push(
                set.say(
                    &RULE,
                    Confidence::Certain,
                    &value.at,
                    format!(
                        "Service {} selects {}={}, which {} does not have",
                        service.name.text,
                        key.text,
                        value.text,
                        pod.title()
                    ),
                    "a Service that selects no pod gives none a name",
                    "write the labels of the pod template as the selector",
                )
                .at(Severity::Error),
            );
        }
        let waits = pod.containers.iter().any(|c| c.readiness);
        if headless && !service.publishes_not_ready && waits {
            findings.push(
                set.say(
                    &RULE,
                    Confidence::Likely,
                    &service.name.at,
                    format!("Service {} hides pods that are not ready", service.name.text),
                    "ranks look each other up before any of them is ready: with a readiness probe the \
                     names are missing until it passes, and it passes only after they have met",
                    "write `publishNotReadyAddresses: true` in the Service",
                )
                .at(Severity::Warning),
            );
        }
    }
}

/// An address of the form JOB-0.NAME in a Job whose pods have no subdomain, or another one.
fn without_subdomain(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        if pod.kind != "Job" || !pod.several(set) || pod.on_host_network() {
            continue;
        }
        let Some(setting) = set.value(container, "MASTER_ADDR") else { continue };
        let mut parts = setting.value.text.split('.');
        let first = format!("{}-0", pod.owner.text);
        let (Some(host), Some(domain)) = (parts.next(), parts.next()) else { continue };
        if pod.owner.text.is_empty() || host != first {
            continue;
        }
        let has = pod.subdomain.as_ref().map(|s| s.text.as_str());
        if has == Some(domain) {
            continue;
        }
        findings.push(
            set.say(
                &RULE,
                Confidence::Certain,
                &setting.value.at,
                format!(
                    "MASTER_ADDR={}, and the pods' subdomain is {}",
                    setting.value.text,
                    has.unwrap_or("not set")
                ),
                "a pod of a Job has a name in DNS only with `subdomain`, and a headless Service of that \
                 name that selects it",
                format!(
                    "write `subdomain: {domain}` in the pod's spec, and add a Service {domain} with \
                     `clusterIP: None` and selector job-name: {}",
                    pod.owner.text
                ),
            )
            .at(Severity::Error),
        );
    }
}

/// A label of the selector that the pod has otherwise, or not. Labels that an operator adds are not
/// known: only those are held against it that the template could have.
fn unmatched<'a>(
    selector: &'a Pairs,
    pod: &Pod,
) -> Option<&'a (crate::documents::Text, crate::documents::Text)> {
    selector.iter().find(|(key, value)| {
        let own = pod.labels.iter().find(|(k, _)| k.text == key.text);
        let added = key.text.contains('/') || key.text == "job-name";
        own.map_or(!added, |(_, v)| v.text != value.text)
    })
}

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
