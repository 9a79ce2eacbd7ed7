//! `memlock-limit`: locked-memory limit too small for registration.
//!
//! ## What
//!
//! The kernel refused to pin memory for RDMA: `Cannot allocate memory`.
//!
//! ## Why
//!
//! RDMA needs locked pages; the container's RLIMIT_MEMLOCK (often 64 KiB) is the bound, unless the
//! process is root with IPC_LOCK.
//!
//! ## Example
//!
//! `h1: ibv_create_cq failed: Cannot allocate memory`
//!
//! ## Remedy
//!
//! docker `--ulimit memlock=-1`; in Kubernetes set the runtime's default limit, or run as root with
//! IPC_LOCK.
//!
//! ## Source
//!
//! ibv_reg_mr(3), ibv_create_cq(3); libibverbs warns `RLIMIT_MEMLOCK is N bytes`.

use ncclctl_facts::Facts;
use ncclctl_nccl::log::Signal;

use crate::documents::{Documents, Platform};
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new("memlock-limit", Severity::Error, "locked-memory limit too small for registration")
};

/// Docker gives a container little locked memory unless told; with Kubernetes the node's runtime
/// decides, which no manifest shows, so that it is for information there.
fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        if container.privileged.is_some() {
            continue;
        }
        let lock = container.capabilities.iter().any(|c| {
            matches!(c.text.trim_start_matches("CAP_"), "IPC_LOCK" | "ALL" | "SYS_RESOURCE")
        });
        if lock {
            continue;
        }
        match pod.platform {
            Platform::Compose => {
                let Some(device) =
                    container.devices.iter().find(|d| d.text.contains("/dev/infiniband"))
                else {
                    continue;
                };
                let unlimited = container.memlock.as_ref().is_some_and(|m| {
                    m.text == "-1" || m.text.parse::<u64>().is_ok_and(|n| n > 1 << 34)
                });
                if unlimited {
                    continue;
                }
                findings.push(
                    set.say(
                        &RULE,
                        Confidence::Likely,
                        &device.at,
                        format!("{} has RDMA devices and no right to lock memory", container.name.text),
                        "verbs lock the memory that they register; a container's limit is small unless \
                         told otherwise: ibv_reg_mr fails, or NCCL takes sockets",
                        if pod.is_command() {
                            "add `--ulimit memlock=-1 --cap-add IPC_LOCK`"
                        } else {
                            "write `ulimits: {memlock: -1}` and `cap_add: [IPC_LOCK]` in the service"
                        },
                    )
                    .at(Severity::Warning),
                );
            }
            Platform::Kubernetes => {
                let Some(rdma) = container.rdma() else { continue };
                findings.push(
                    set.say(
                        &RULE,
                        Confidence::Possible,
                        &rdma.name.at,
                        format!("{} has RDMA devices and no IPC_LOCK", container.name.text),
                        "verbs lock the memory that they register; the limit is what the node's container \
                         runtime gives (often unlimited, `ulimit -l` in the pod shows it), and root with \
                         IPC_LOCK is above it",
                        "where the limit is small: `LimitMEMLOCK=infinity` in the unit of containerd, or \
                         `securityContext: {capabilities: {add: [IPC_LOCK]}}` for a container that runs \
                         as root",
                    )
                    .at(Severity::Info),
                );
            }
        }
    }
}

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let calls = incident.notices(&[
        "ibv_reg_mr",
        "ibv_create_cq",
        "ibv_create_qp",
        "ibv_alloc_pd",
        "ibv_reg_dmabuf_mr",
        "fi_mr_reg",
        "register memory",
    ]);
    let refused: Vec<_> =
        calls.iter().filter(|n| n.text.contains("Cannot allocate memory")).collect();
    let limits: Vec<_> = incident
        .log
        .signal(Signal::MemlockLimit)
        .iter()
        .filter(|at| at.text.contains("RLIMIT_MEMLOCK"))
        .collect();
    if (refused.is_empty() && limits.is_empty()) || incident.memlock_unlimited() {
        return;
    }
    let host =
        refused.first().and_then(|n| incident.process(n)).map_or("a host", |p| p.host.as_str());
    let call = refused
        .first()
        .and_then(|n| ncclctl_nccl::log::failure::call(&n.text))
        .map_or("memory registration".to_owned(), |(name, _)| name.to_owned());
    let mut places: Vec<_> = refused.iter().map(|n| &n.at).collect();
    places.extend(limits.iter().copied());
    findings.push(RULE.found(
        if limits.is_empty() { Confidence::Likely } else { Confidence::Certain },
        format!("{host}: {call} was refused for lack of locked memory"),
        "RDMA pins its buffers; the container's locked-memory limit (`ulimit -l`, often 64 KiB) is \
         too small",
        "docker `--ulimit memlock=-1:-1`; Kubernetes: raise the runtime's LimitMEMLOCK, or run as \
         root with capability IPC_LOCK (it does nothing for a non-root user)",
        incident.exhibits(places, 4),
    ));
}

/// Enough for the buffers of any number of connections that a job makes (NCCL registers some MiB for
/// each).
const ENOUGH: u64 = 1 << 30;

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    for node in nodes {
        let Some(limit) = node.container.memlock.filter(|l| *l < ENOUGH) else { continue };
        let usable = node
            .rdma
            .iter()
            .any(|d| d.opened.as_deref() == Some("ok") && d.ports.iter().any(|p| p.active()));
        let exempt = node.container.capabilities.iter().any(|c| c == "IPC_LOCK");
        if !usable || exempt || node.gpus().is_empty() {
            continue;
        }
        findings.push(
            RULE.found(
                Confidence::Likely,
                format!(
                    "{}: only {} of memory may be locked, and RDMA registers its buffers",
                    node.name,
                    ncclctl_facts::difference::size(limit)
                ),
                "ibv_reg_mr fails when the limit is reached, and init with it; IPC_LOCK helps root only",
                "docker --ulimit memlock=-1, `ulimits: memlock: -1` in Compose; in a pod the limit is the \
                 runtime's (LimitMEMLOCK=infinity of containerd)",
                vec![Exhibit::fact(
                    format!("{}.container.memlock", node.name),
                    ncclctl_facts::difference::size(limit),
                )],
            )
            .at(Severity::Warning),
        );
    }
}
