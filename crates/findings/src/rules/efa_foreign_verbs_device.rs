//! `efa-foreign-verbs-device`: RDMA devices that are not EFA are exposed or counted among the EFA devices.
//!
//! ## What
//!
//! The OFI plugin groups the RDMA devices by GPU and found a number that does not fit the instance.
//!
//! ## Why
//!
//! Other verbs devices (mlx5, irdma) in /dev/infiniband, or EFA devices of which only some are
//! mapped, break its grouping.
//!
//! ## Example
//!
//! `p5-3: Unexpected group size 0`
//!
//! ## Remedy
//!
//! Map only and all EFA devices (`vpc.amazonaws.com/efa: 32` on p5), no hostPath of /dev/infiniband
//! beside it.
//!
//! ## Source
//!
//! aws-ofi-nccl topology grouping.

use crate::documents::{Documents, Source};
use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new(
        "efa-foreign-verbs-device",
        Severity::Error,
        "RDMA devices that are not EFA are exposed or counted among the EFA devices",
    )
};

/// /dev/infiniband of the host beside an EFA resource shows devices that the plug-in did not give.
fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        if container.efa().is_none() {
            continue;
        }
        for volume in &pod.volumes {
            let Source::HostPath(path) = &volume.source else { continue };
            let mounted = container.mounts.iter().any(|m| m.volume == volume.name.text);
            if mounted && path.text.starts_with("/dev/infiniband") {
                findings.push(
                    set.say(
                        &RULE,
                        Confidence::Certain,
                        &path.at,
                        format!("{} by hostPath beside vpc.amazonaws.com/efa", path.text),
                        "the EFA device plug-in gives the container the devices that it asked for; the \
                         host's folder also shows others, which libfabric counts and can not open",
                        "take the volume out",
                    )
                    .at(Severity::Warning),
                );
            }
        }
    }
}

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let said = incident.notices(&[
        "Unexpected group size",
        "group size",
        "Wrong number of NICs",
        "unexpected number of NICs",
    ]);
    let said: Vec<_> = said
        .into_iter()
        .filter(|n| n.text.contains("NET/OFI") && n.level == ncclctl_nccl::log::Level::Warn)
        .collect();
    let Some(first) = said.first() else { return };
    let host = incident.process(first).map_or("a host", |p| p.host.as_str());
    findings.push(RULE.found(
        Confidence::Likely,
        format!("{host}: {}", first.text),
        "the plugin groups RDMA devices by GPU; devices that are not EFA, or a part of the EFA \
         devices, break the groups",
        "give the container all EFA devices and no others (`vpc.amazonaws.com/efa: 32` on p5, 16 on \
         p5en and p6), without a hostPath of /dev/infiniband beside it",
        incident.exhibits(said.iter().map(|n| &n.at), 3),
    ));
}
