//! `socket-ifname-not-found`: the named interface does not exist on a host.
//!
//! ## What
//!
//! NCCL found no interface that fits NCCL_SOCKET_IFNAME (or NCCL_OOB_NET_IFNAME).
//!
//! ## Why
//!
//! The value is a list of prefixes, or of exact names after `=`; `*` is no wildcard but a letter,
//! spaces are not trimmed. An interface must be up and have an address. Some versions go on with an
//! empty address and fail later with a garbage address family.
//!
//! ## Example
//!
//! `tw2207 has no interface that fits NCCL_SOCKET_IFNAME=eth2`
//!
//! ## Remedy
//!
//! Name an interface that exists on every host (`ip -br addr`), use a common prefix, or unset the
//! variable.
//!
//! ## Source
//!
//! NCCL src/misc/socket.cc, src/bootstrap.cc; messages of 2.4 to 2.32.

use ncclctl_facts::Facts;
use ncclctl_nccl::log::Signal;
use ncclctl_nccl::log::address;

use crate::documents::Documents;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;
use ncclctl_nccl::doubt::interface;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new(
        "socket-ifname-not-found",
        Severity::Error,
        "the named interface does not exist on a host",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[interface::not_found], findings);
}

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let missing = incident.notices(&[
        "no socket interface found",
        "no interface found",
        "No IP interface found",
        "verify NCCL_OOB_NET_IFNAME",
        "matching NCCL_OOB_NET_IFNAME",
    ]);
    let garbled = incident.log.signal(Signal::AddressFamily);
    let garbled_notice = incident.notices(&["is neither AF_INET"]);
    let mut places: Vec<_> = missing.iter().chain(&garbled_notice).map(|n| &n.at).collect();
    places.extend(garbled);
    if places.is_empty() {
        return;
    }
    // the process that failed, else the one that never chose an interface
    let process = missing
        .first()
        .and_then(|n| incident.process(n))
        .or_else(|| incident.log.processes.iter().find(|p| !p.bootstrap.is_seen()));
    let named = process.and_then(|p| {
        ["NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME", "NCCL_SOCKET_FAMILY"]
            .iter()
            .find_map(|n| Some((*n, p.setting(n)?)))
    });
    if missing.is_empty() && named.is_none() {
        return;
    }
    if named.is_some_and(|(_, s)| address::ip(&s.value).is_some()) {
        return;
    }
    let host = process.map_or("a host", |p| p.host.as_str());
    let (message, remedy) = match named {
        Some((name, s)) if s.value.contains('*') => (
            format!("{host} has no interface that fits {name}={}: NCCL has no wildcards", s.value),
            format!(
                "write the prefix without `*`: {name}={}",
                s.value.split(',').map(|v| v.trim_end_matches('*')).collect::<Vec<_>>().join(",")
            ),
        ),
        Some((name, s)) => (
            format!("{host} has no interface that fits {name}={}", s.value),
            format!(
                "name an interface that exists, is up and has an address on {host} (`ip -br \
                 addr`), or unset {name}"
            ),
        ),
        None => (
            format!("{host} has no interface that NCCL may use"),
            "check NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY in the container, and that an \
             interface is up with an address (`ip -br addr`)"
                .to_owned(),
        ),
    };
    places.extend(named.map(|(_, s)| &s.at));
    findings.push(RULE.found(
        if named.is_some() { Confidence::Certain } else { Confidence::Likely },
        message,
        "the value is a list of prefixes (exact after `=`); nothing on this host matches, so \
         there is no address to meet the other ranks on",
        remedy,
        incident.exhibits(places, 4),
    ));
}

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    for node in nodes.iter().filter(|n| !n.interfaces.is_empty()) {
        let Some(value) = node.environment.get("NCCL_SOCKET_IFNAME") else { continue };
        let Some(Err(none)) = crate::nodes::chosen(node) else { continue };
        findings.push(
            RULE.found(
                Confidence::Certain,
                format!("{}: {}", node.name, none.why),
                "NCCL finds no interface at all and ends in init",
                none.hint
                    .clone()
                    .unwrap_or_else(|| format!("name one of these: {}", none.here.join(", "))),
                vec![Exhibit::fact(format!("{}.environment.NCCL_SOCKET_IFNAME", node.name), value)],
            ),
        );
    }
}
