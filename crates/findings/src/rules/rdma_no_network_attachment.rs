//! `rdma-no-network-attachment`: RoCE resource without an addressed interface in the pod.
//!
//! ## What
//!
//! A pod asks for an RDMA resource whose name says RoCE or SR-IOV Ethernet (a warning) or does not say
//! (for information), and has neither hostNetwork nor a secondary network. Silent for InfiniBand.
//!
//! ## Why
//!
//! The GIDs of RoCE are the addresses of the device's interface, and the kernel shows them only in the
//! interface's network namespace: without it the table in the pod is empty. Native InfiniBand needs none.
//!
//! ## Example
//!
//! `rdma/roce_a without a network attachment: the GID table in the pod is empty`
//!
//! ## Remedy
//!
//! Annotate the template `k8s.v1.cni.cncf.io/networks: NAME`, once for each device, or use hostNetwork.
//!
//! ## Source
//!
//! Linux RDMA, network namespace mode; NVIDIA network operator.

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "rdma-no-network-attachment",
        Severity::Warning,
        "RoCE resource without an addressed interface in the pod",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        let Some(rdma) = container.rdma() else { continue };
        let attached = pod.annotations.iter().any(|(key, _)| {
            key.text.ends_with("/networks")
                || key.text.ends_with("/interfaces")
                || key.text.contains("multus")
        });
        if pod.on_host_network() || attached || !pod.claims.is_empty() {
            continue;
        }
        let name = rdma.name.text.to_ascii_lowercase();
        let short = name.split_once('/').map_or(name.as_str(), |(_, s)| s);
        let infiniband = short == "ib"
            || short.starts_with("ib_")
            || short.starts_with("ib-")
            || short.ends_with("_ib")
            || short.ends_with("-ib")
            || short.contains("_ib_")
            || short.contains("ibp")
            || short.contains("infiniband");
        let roce = short.contains("roce")
            || short.contains("eth")
            || short.contains("sriov")
            || short.contains("macvlan");
        if infiniband && !roce {
            continue;
        }
        findings.push(
            set.say(
                &RULE,
                if roce { Confidence::Likely } else { Confidence::Possible },
                &rdma.name.at,
                if roce {
                    format!("{} without a network attachment: the GID table in the pod is empty", rdma.name.text)
                } else {
                    format!("{} without a network attachment: right on InfiniBand, not on RoCE", rdma.name.text)
                },
                "GIDs of RoCE are addresses of the device's interface, and are only seen in that \
                 interface's network namespace",
                "on RoCE annotate the template `k8s.v1.cni.cncf.io/networks: NAME` for each device, or use \
                 hostNetwork with `dnsPolicy: ClusterFirstWithHostNet`",
            )
            .at(if roce { Severity::Warning } else { Severity::Info }),
        );
    }
}
