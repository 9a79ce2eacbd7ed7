//! `rdma-device-by-host-path`: RDMA devices by a path of the host instead of a resource.
//!
//! ## What
//!
//! A pod mounts /dev/infiniband (or all of /dev) from the host, and asks for no RDMA resource.
//!
//! ## Why
//!
//! A mount shows the files, but the device cgroup forbids to open them unless the container is
//! privileged. A resource gives both, counts the devices, and keeps two jobs apart.
//!
//! ## Example
//!
//! `/dev/infiniband by hostPath, container not privileged: the devices can not be opened`
//!
//! ## Remedy
//!
//! Ask for the resource of the RDMA device plug-in, like `rdma/hca_shared_devices_a: 1`, and take volume
//! and privilege out.
//!
//! ## Source
//!
//! Kubernetes: device plug-ins; Mellanox/k8s-rdma-shared-dev-plugin.

use crate::documents::{Documents, Platform, Source};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "rdma-device-by-host-path",
        Severity::Warning,
        "RDMA devices by a path of the host instead of a resource",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for pod in
        set.pods.iter().filter(|p| p.platform == Platform::Kubernetes && p.kind != "DaemonSet")
    {
        for volume in &pod.volumes {
            let Source::HostPath(path) = &volume.source else { continue };
            if !path.text.trim_end_matches('/').starts_with("/dev/infiniband") {
                continue;
            }
            let users: Vec<_> = pod
                .containers
                .iter()
                .filter(|c| c.mounts.iter().any(|m| m.volume == volume.name.text))
                .collect();
            // beside an EFA resource another rule speaks
            if users.iter().any(|c| c.efa().is_some() || c.rdma().is_some()) {
                continue;
            }
            let closed = users.iter().find(|c| c.privileged.is_none());
            let found = match closed {
                Some(container) => set
                    .say(
                        &RULE,
                        Confidence::Certain,
                        &path.at,
                        format!(
                            "{} by hostPath, {} not privileged: the devices can not be opened",
                            path.text, container.name.text
                        ),
                        "a mount shows the device files; the device cgroup lets a container open only \
                         those that a device plug-in gave it",
                        "ask for the resource of the RDMA device plug-in, like \
                         `limits: {rdma/hca_shared_devices_a: 1}`, and take the volume out",
                    )
                    .at(Severity::Error),
                None => set.say(
                    &RULE,
                    Confidence::Certain,
                    &path.at,
                    format!("{} by hostPath", path.text),
                    "it works only because the container is privileged; devices are not counted, and \
                     two jobs of a node share them unseen",
                    "ask for the resource of the RDMA device plug-in, like \
                     `limits: {rdma/hca_shared_devices_a: 1}`, and take volume and privilege out",
                ),
            };
            findings.push(found);
        }
    }
}
