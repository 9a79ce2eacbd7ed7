//! `ib-device-not-visible`: RDMA device nodes are not in the container.
//!
//! ## What
//!
//! NCCL sees an RDMA device in sysfs but can not open it, or finds none although RDMA is asked for.
//!
//! ## Why
//!
//! /sys is the host's, /dev is the container's own: the HCA shows up in /sys/class/infiniband, but
//! /dev/infiniband/uverbs* is not there, or its use is not allowed.
//!
//! ## Example
//!
//! `ds-worker-1 can not open mlx5_bond_0`
//!
//! ## Remedy
//!
//! Docker: `--device=/dev/infiniband --ulimit memlock=-1`; Kubernetes: a resource of the RDMA
//! device plugin.
//!
//! ## Source
//!
//! NCCL src/transport/net_ib (ncclIbInitDevices), src/misc/ibvwrap.cc.

use ncclctl_facts::Facts;
use ncclctl_nccl::log::Process;

use crate::documents::{Documents, Platform, Source};
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new(
        "ib-device-not-visible",
        Severity::Error,
        "RDMA device nodes are not in the container",
    )
};

/// Settings that only make sense with a verbs device.
const MEANT: [&str; 3] = ["NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_IB_TIMEOUT"];

/// Speaks where a container with GPUs sets a device of verbs, and nothing in the document could
/// give it one.
fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        let Some(block) = set.settings(container) else { continue };
        if container.gpu_spot().is_none() || container.privileged.is_some() {
            continue;
        }
        let meant = block
            .settings
            .iter()
            .find(|s| MEANT.contains(&s.name.text.as_str()) && !s.value.text.is_empty())
            .or_else(|| block.get("NCCL_NET").filter(|s| s.value.text.eq_ignore_ascii_case("IB")));
        let Some(meant) = meant else { continue };
        if block.get("NCCL_IB_DISABLE").is_some_and(|s| s.value.text != "0") {
            continue;
        }
        // another network by a plug-in, or a claim whose devices are not said here
        let other = container.efa().is_some()
            || !container.claims.is_empty()
            || !pod.claims.is_empty()
            || block.starting(&["NCCL_FASTRAK_", "NCCL_GPUDIRECTTCPX_", "FI_"]).is_some();
        let networks = pod
            .annotations
            .iter()
            .any(|(k, _)| k.text.contains("networks") || k.text.contains("interfaces"));
        let by_path = match pod.platform {
            Platform::Kubernetes => pod.volumes.iter().any(|v| {
                matches!(&v.source, Source::HostPath(p) if p.text.trim_end_matches('/') == "/dev" || p.text.starts_with("/dev/infiniband"))
            }),
            Platform::Compose => {
                container.devices.iter().any(|d| d.text.contains("/dev/infiniband") || d.text == "/dev")
                    || container.mounts.iter().any(|m| m.volume.starts_with("/dev"))
            }
        };
        // an extended resource that is not known may be the one
        let unknown = container.limits.iter().any(|r| {
            r.name.text.contains('/')
                && !r.name.text.starts_with("nvidia.com/gpu")
                && !r.name.text.starts_with("nvidia.com/mig")
                && !r.name.text.starts_with("hugepages")
        });
        if other || networks || by_path || unknown || container.rdma().is_some() {
            continue;
        }
        let remedy = match pod.platform {
            Platform::Kubernetes => {
                "ask for the resource of the node's RDMA device plug-in, like \
                 `limits: {rdma/hca_shared_devices_a: 1}` (kubectl describe node names it), or take the \
                 setting out"
            }
            Platform::Compose if pod.is_command() => {
                "add `--device /dev/infiniband --cap-add IPC_LOCK --ulimit memlock=-1`, or take the \
                 setting out"
            }
            Platform::Compose => {
                "write `devices: [/dev/infiniband:/dev/infiniband]`, `cap_add: [IPC_LOCK]` and \
                 `ulimits: {memlock: -1}`, or take the setting out"
            }
        };
        findings.push(
            set.say(
                &RULE,
                Confidence::Likely,
                &meant.name.at,
                format!("{} is set, and {} gets no RDMA device", meant.name.text, container.name.text),
                "device nodes are not in a container unless it asks for them; NCCL finds no device and \
                 takes sockets without a warning",
                remedy,
            )
            .at(Severity::Warning),
        );
    }
}

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let refused = incident.notices(&["Unable to open device", "ibv_open_device"]);
    if let Some(last) = refused.last() {
        let host = incident.process(last).map_or("a host", |p| p.host.as_str());
        let device = last
            .text
            .split("Unable to open device ")
            .nth(1)
            .map_or("its RDMA device", |d| d.split(' ').next().unwrap_or(d));
        findings.push(RULE.found(
            Confidence::Certain,
            format!("{host} can not open {device}"),
            "the device is in /sys, but its node under /dev/infiniband is not in the container or \
             may not be used",
            "map the nodes: docker `--device=/dev/infiniband --ulimit memlock=-1`, Kubernetes a \
             resource of the RDMA device plugin (such as rdma/hca)",
            incident.exhibits(refused.iter().map(|n| &n.at), 4),
        ));
        return;
    }
    // RDMA is forced or filtered for, and nothing is there
    let forced = incident.notices(&["Failed to initialize any NET plugin", "network IB not found"]);
    if !incident.notices(&["Failed to open libibverbs"]).is_empty() {
        return;
    }
    let lacks = |p: &&Process| p.no_rdma.is_some();
    let process = incident.log.processes.iter().find(|p| lacks(p) && asked(p).is_some());
    // NCCL_NET is not echoed: only its effect shows that sockets were not even tried
    let process = process.or_else(|| {
        let p = incident.process(forced.first()?).filter(lacks)?;
        (!p.sockets.is_seen()).then_some(p)
    });
    let Some(p) = process else { return };
    let Some(at) = &p.no_rdma else { return };
    let asked = asked(p);
    let why = asked.map_or(" although the settings allow nothing else".to_owned(), |(n, v, _)| {
        format!(" although {n}={v} asks for one")
    });
    let mut places = vec![at];
    places.extend(asked.map(|(_, _, set)| set));
    places.extend(forced.iter().map(|n| &n.at));
    findings.push(RULE.found(
        Confidence::Likely,
        format!("{} finds no RDMA device{why}", p.host),
        "/dev/infiniband is not in the container, the ports are down, or NCCL_IB_HCA names devices \
         of another machine",
        "compare `ls /sys/class/infiniband` with `ls /dev/infiniband` in the container; map \
         /dev/infiniband (or ask for the RDMA resource), and correct NCCL_IB_HCA",
        incident.exhibits(places, 4),
    ));
}

/// The setting that asks for RDMA.
fn asked(p: &Process) -> Option<(&'static str, &str, &ncclctl_nccl::log::At)> {
    ["NCCL_NET", "NCCL_IB_HCA", "NCCL_IB_GID_INDEX"].iter().find_map(|name| {
        let setting = p.setting(name)?;
        let verbs = *name != "NCCL_NET" || setting.value.eq_ignore_ascii_case("IB");
        verbs.then_some((*name, setting.value.as_str(), &setting.at))
    })
}

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    for node in nodes.iter().filter(|n| !n.gpus().is_empty()) {
        let active = |d: &&ncclctl_facts::rdma::RdmaDevice| d.ports.iter().any(|p| p.active());
        let closed: Vec<_> = node
            .rdma
            .iter()
            .filter(active)
            .filter(|d| d.opened.as_deref().is_some_and(|o| o != "ok"))
            .collect();
        let any = node.rdma.iter().filter(active).count();
        // one of several that was left out on purpose is no fault
        if closed.is_empty() || closed.len() < any {
            continue;
        }
        findings.push(
            RULE.found(
                Confidence::Certain,
                format!("{}: {} is ACTIVE and can not be opened here", node.name, closed[0].name),
                "sysfs shows the host's RDMA devices in every container; their device nodes are not \
                 given to this one, so NCCL falls back to sockets",
                "docker --device /dev/infiniband; in a pod the resource of the RDMA device plugin",
                closed
                    .iter()
                    .map(|d| Exhibit::nic(&d.name, &node.name, d.opened.clone().unwrap_or_default()))
                    .collect(),
            )
            .at(Severity::Warning),
        );
    }
}
