//! What was looked at and is fine: the other half of an answer.

use std::collections::BTreeSet;

use ncclctl_nccl::log::Transport;

use crate::finding::{Finding, Severity};
use crate::incident::Incident;

/// One line for each thing that was looked at and found in order.
pub(crate) fn of(incident: &Incident, findings: &[Finding]) -> Vec<String> {
    let log = &incident.log;
    let clear = |rules: &[&str]| {
        !findings.iter().any(|f| f.severity > Severity::Info && rules.contains(&f.rule.as_str()))
    };
    let mut out = Vec::new();
    let complete: usize =
        log.communicators.iter().map(|c| c.members.values().filter(|m| m.complete).count()).sum();
    if complete > 0 && clear(&["init-stuck"]) {
        out.push(format!("set-up finished on {complete} ranks"));
    }
    let versions: BTreeSet<_> = log.processes.iter().filter_map(|p| p.version).collect();
    if let (1, Some(version)) = (versions.len(), versions.first()) {
        out.push(format!("one NCCL version: {version}"));
    }
    let networks: BTreeSet<&str> =
        log.processes.iter().map(|p| p.network.value.as_str()).filter(|n| !n.is_empty()).collect();
    if let (1, Some(network)) = (networks.len(), networks.first())
        && clear(&["silent-tcp-fallback", "transport-mixed", "efa-provider-missing"])
    {
        out.push(format!("one network on every rank seen: {network}"));
    }
    let edges = || log.processes.iter().flat_map(|p| &p.edges);
    let net = edges().filter(|e| matches!(e.transport, Transport::Net { .. })).count();
    let gdr = edges().filter(|e| e.gdr).count();
    if net > 0 && gdr == net {
        out.push(format!("GPUDirect RDMA on all {net} network connections"));
    }
    if edges().any(|e| matches!(e.transport, Transport::P2p(_)))
        && !edges().any(|e| e.transport == Transport::Shm)
        && clear(&["p2p-broken"])
    {
        out.push("peer-to-peer between the GPUs of a node".to_owned());
    }
    if log.warnings().next().is_none() && log.nccl_lines > 0 {
        out.push("no warning of NCCL".to_owned());
    }
    out
}
