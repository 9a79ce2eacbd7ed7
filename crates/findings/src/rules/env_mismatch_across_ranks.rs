//! `env-mismatch-across-ranks`: NCCL variables differ between hosts.
//!
//! ## What
//!
//! A variable that NCCL reads is set on some hosts and not on others, or to another value. Those
//! that rightly differ by host (interface and device lists, files, CPU sets) are for information.
//!
//! ## Why
//!
//! Many settings must be the same on every rank: otherwise ranks choose different algorithms or
//! transports, and the run hangs in initialisation or gives errors that name another cause.
//!
//! ## Example
//!
//! `NCCL_IB_TIMEOUT differs: 22 on h2, not set on h1`
//!
//! ## Remedy
//!
//! Set it for the whole job in one place, or nowhere.
//!
//! ## Source
//!
//! The catalogue of variables: its mark `equal on every rank`.

use std::collections::{BTreeMap, BTreeSet};

use ncclctl_nccl::params;

use crate::documents::{Documents, Origin};
use crate::evidence::Evidence;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::paths::host_name;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    incident: Some(incident),
    documents: Some(documents),
    ..Rule::new(
        "env-mismatch-across-ranks",
        Severity::Warning,
        "NCCL variables differ between hosts",
    )
};

/// Containers of one job whose settings differ, where NCCL needs them equal. What a launcher that
/// is no rank sets is another matter.
fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    env_files(set, findings);
    for (index, pod) in set.pods.iter().enumerate() {
        if pod.role.eq_ignore_ascii_case("launcher") {
            continue;
        }
        for other in set.pods[index + 1..].iter().filter(|o| {
            o.file == pod.file && o.object == pod.object && !o.role.eq_ignore_ascii_case("launcher")
        }) {
            let pair = pod.containers.first().zip(other.containers.first());
            let Some((a, b)) = pair else { continue };
            if a.gpu_spot().is_none() || b.gpu_spot().is_none() || a.foreign_env || b.foreign_env {
                continue;
            }
            let (Some(a), Some(b)) = (set.settings(a), set.settings(b)) else { continue };
            for setting in a.settings.iter().chain(&b.settings).filter(|s| !s.open) {
                let name = setting.name.text.as_str();
                if !params::get(name).is_some_and(params::Param::must_match) {
                    continue;
                }
                let (left, right) = (a.get(name), b.get(name));
                let same = left.map(|s| &s.value.text) == right.map(|s| &s.value.text);
                // each pair once: from the first that has it
                if same || (left.is_some() && !left.is_some_and(|l| l == setting)) {
                    continue;
                }
                let says = |s: Option<&crate::documents::Setting>| {
                    s.map_or("not set".to_owned(), |s| s.value.text.clone())
                };
                let mut found = set.say(
                    &RULE,
                    Confidence::Certain,
                    &setting.name.at,
                    format!("{name} is {} in {} and {} in {}", says(left), pod.role, says(right), other.role),
                    "NCCL needs it equal on every rank: otherwise ranks choose differently and hang or fail",
                    format!("set {name} in both, or in neither"),
                );
                if let Some(r) = right.filter(|r| *r != setting) {
                    found.evidence.push(set.exhibit(&r.value.at));
                }
                findings.push(found);
            }
        }
    }
}

/// Variables that may differ from host to host in a healthy job.
const BY_HOST: &[&str] = &[
    "NCCL_SOCKET_IFNAME",
    "NCCL_OOB_NET_IFNAME",
    "NCCL_IB_HCA",
    "NCCL_HOSTID",
    "NCCL_TOPO_FILE",
    "NCCL_GRAPH_FILE",
    "NCCL_CONF_FILE",
    "NCCL_DEBUG_FILE",
    "NCCL_TOPO_DUMP_FILE",
    "NCCL_GRAPH_DUMP_FILE",
    "NCCL_DEBUG",
    "NCCL_DEBUG_SUBSYS",
    "NCCL_IGNORE_CPU_AFFINITY",
];

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    if evidence.hosts.len() < 2 {
        return;
    }
    let names: BTreeSet<&String> =
        evidence.hosts.iter().flat_map(|h| h.environment.keys()).collect();
    for name in names.into_iter().filter(|n| n.starts_with("NCCL_")) {
        // what the trial sets itself is the same everywhere
        if evidence.settings.contains_key(name) {
            continue;
        }
        let mut values: BTreeMap<Option<&String>, Vec<usize>> = BTreeMap::new();
        for (index, host) in evidence.hosts.iter().enumerate() {
            values.entry(host.environment.get(name)).or_default().push(index);
        }
        if values.len() < 2 {
            continue;
        }
        let param = params::get(name);
        let secret = param.is_some_and(params::Param::secret);
        let show = |value: Option<&String>| match value {
            None => "not set".to_owned(),
            Some(_) if secret => "[redacted]".to_owned(),
            Some(v) if v.is_empty() => "empty".to_owned(),
            Some(v) => v.clone(),
        };
        let mut parts: Vec<String> = values
            .iter()
            .map(|(value, hosts)| {
                let first = host_name(evidence, hosts[0]);
                let more = match hosts.len() {
                    1 => String::new(),
                    n => format!(" and {} more", n - 1),
                };
                format!("{} on {first}{more}", show(*value))
            })
            .collect();
        // the value that is there says more than its absence
        parts.reverse();
        let exhibits = evidence
            .hosts
            .iter()
            .enumerate()
            .map(|(i, h)| {
                Exhibit::fact(
                    format!("{}.environment.{name}", host_name(evidence, i)),
                    show(h.environment.get(name)),
                )
            })
            .collect();
        let must = param.is_some_and(params::Param::must_match);
        let finding = RULE.found(
            Confidence::Certain,
            format!("{name} differs: {}", parts.join(", ")),
            if must {
                "NCCL needs it equal on every rank: otherwise they choose differently and hang or \
                 fail"
            } else {
                "hosts of one job behave differently, and the slowest or strictest decides for all"
            },
            format!("set {name} for the whole job in one place, or nowhere"),
            exhibits,
        );
        let by_host = BY_HOST.contains(&name.as_str());
        findings.push(if by_host { finding.at(Severity::Info) } else { finding });
    }
}

/// Env files that are named after hosts or ranks.
fn env_files(set: &Documents, findings: &mut Vec<Finding>) {
    const HOSTS: [&str; 8] = ["node", "host", "rank", "worker", "head", "master", "pod", "gpu"];
    let file = |b: &crate::documents::Block| set.files.get(b.file).map_or("", |f| f.name.as_str());
    let blocks: Vec<_> = set
        .blocks
        .iter()
        .filter(|b| b.origin == Origin::EnvFile && HOSTS.iter().any(|h| file(b).contains(h)))
        .collect();
    let Some((first, others)) = blocks.split_first() else { return };
    for other in others {
        for setting in first.settings.iter().filter(|s| s.name.text.starts_with("NCCL_")) {
            let name = setting.name.text.as_str();
            let Some(theirs) = other.get(name).filter(|t| t.value.text != setting.value.text)
            else {
                continue;
            };
            if setting.open || params::get(name).is_some_and(params::Param::secret) {
                continue;
            }
            let mut found = set.say(
                &RULE,
                Confidence::Likely,
                &setting.value.at,
                format!(
                    "{name} is {} in {} and {} in {}",
                    setting.value.text,
                    file(first),
                    theirs.value.text,
                    file(other)
                ),
                "ranks of one job that are set differently choose differently: they hang, fail, or \
                 the slowest decides for all",
                format!("set {name} for the whole job in one place, or nowhere"),
            );
            found.evidence.push(set.exhibit(&theirs.value.at));
            let by_host =
                BY_HOST.contains(&name) || name.contains("DEBUG") || name.contains("FILE");
            findings.push(if by_host { found.at(Severity::Info) } else { found });
        }
    }
}

/// Settings that may or must differ from host to host.
const OWN: &[&str] = &[
    "NCCL_HOSTID",
    "NCCL_SOCKET_IFNAME",
    "NCCL_OOB_NET_IFNAME",
    "NCCL_IB_HCA",
    "NCCL_IB_GID_INDEX",
    "NCCL_COMM_ID",
    "NCCL_PSK",
    "NCCL_CONF_FILE",
];

fn incident(incident: &Incident, findings: &mut Vec<Finding>) {
    let mut seen: std::collections::BTreeMap<&str, (&str, &str, &ncclctl_nccl::log::At)> =
        std::collections::BTreeMap::new();
    for p in incident.log.processes.iter().filter(|p| !p.host.is_empty()) {
        for (name, setting) in &p.settings {
            if OWN.contains(&name.as_str())
                || name.contains("DEBUG")
                || name.contains("FILE")
                || name.contains("DUMP")
            {
                continue;
            }
            let entry = *seen.entry(name).or_insert((&p.host, &setting.value, &setting.at));
            let (host, value, at) = entry;
            if value != setting.value && host != p.host {
                findings.push(RULE.found(
                    Confidence::Certain,
                    format!("{name} is {value} on {host} and {} on {}", setting.value, p.host),
                    "the ranks assume that this setting is equal on all of them; unequal values \
                     hang, fail or give wrong data",
                    format!("set {name} in one place for all ranks, or unset it"),
                    incident.exhibits([at, &setting.at], 2),
                ));
                return;
            }
        }
    }
}
