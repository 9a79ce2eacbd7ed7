//! `imex-channel-missing`: multi-node NVLink without an IMEX channel device.
//!
//! ## What
//!
//! NCCL uses multi-node NVLink, and the container has no IMEX channel, or the IMEX domain is not
//! up.
//!
//! ## Why
//!
//! Memory is shared between nodes through /dev/nvidia-caps-imex-channels/channel*; in Kubernetes a
//! ComputeDomain provides it.
//!
//! ## Example
//!
//! `gb-01: no IMEX channel in the container`
//!
//! ## Remedy
//!
//! Map /dev/nvidia-caps-imex-channels/channel0, or add a ComputeDomain claim; `nvidia-imex-ctl -N`.
//!
//! ## Source
//!
//! NCCL src/mnnvl.cc (2.25.1, 2.27.3 and later).

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new(
        "imex-channel-missing",
        Severity::Error,
        "multi-node NVLink without an IMEX channel device",
    )
};

/// Speaks where the pod is bound to machines of an NVLink domain over several hosts, or insists on
/// multi-node NVLink, in a job of several pods, and claims no IMEX channel.
fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        if !pod.several(set) || (container.gpu_spot().is_none() && container.claims.is_empty()) {
            continue;
        }
        let rack = ["GB200", "GB300", "gb200", "gb300", "NVL72", "nvl72", "a4x"];
        let bound = pod.node_labels.iter().find(|(_, v)| rack.iter().any(|r| v.text.contains(r)));
        let asked = set.value(container, "NCCL_MNNVL_ENABLE").filter(|s| s.value.text == "1");
        let (at, why) = match (bound, asked) {
            (_, Some(s)) => (s.value.at.clone(), "NCCL_MNNVL_ENABLE=1".to_owned()),
            (Some((_, v)), None) => (v.at.clone(), v.text.clone()),
            _ => continue,
        };
        if set.value(container, "NCCL_MNNVL_ENABLE").is_some_and(|s| s.value.text == "0") {
            continue;
        }
        let channel = pod.claims.iter().any(|(name, template)| {
            set.channel_templates.contains(&template.text)
                || ["imex", "channel", "compute-domain"]
                    .iter()
                    .any(|w| name.text.contains(w) || template.text.contains(w))
        });
        if channel {
            continue;
        }
        findings.push(
            set.say(
                &RULE,
                Confidence::Likely,
                &at,
                format!("{} ({why}) claims no IMEX channel", pod.title()),
                "memory of another host's GPU is only imported through an IMEX channel device, which a \
                 ComputeDomain hands out: without it multi-node NVLink and NVLS fail with CUDA error 801, \
                 or the network is used",
                "add a ComputeDomain and claim its template: `resourceClaims: [{name: channel, \
                 resourceClaimTemplateName: TEMPLATE}]` and `resources: {claims: [{name: channel}]}`; to do \
                 without, NCCL_MNNVL_ENABLE=0",
            )
            .at(Severity::Warning),
        );
    }
}

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let said = incident.notices(&[
        "Check the IMEX channel configuration",
        "Check the IMEX configuration",
        "IMEX channel",
        "CUDA_ERROR_NOT_PERMITTED",
        "Cuda failure 800",
    ]);
    let said: Vec<_> = said
        .into_iter()
        .filter(|n| n.level == ncclctl_nccl::log::Level::Warn)
        .filter(|n| n.text.contains("IMEX") || mnnvl(incident))
        .collect();
    let Some(first) = said.first() else { return };
    let host = incident.process(first).map_or("a host", |p| p.host.as_str());
    findings.push(RULE.found(
        if first.text.contains("IMEX channel") { Confidence::Certain } else { Confidence::Likely },
        format!("{host}: multi-node NVLink is on, and no IMEX channel can be used"),
        "the container lacks /dev/nvidia-caps-imex-channels/channel*, or nvidia-imex is not up on \
         every node of the domain",
        "map the channel device (Kubernetes: a ComputeDomain claim), check `nvidia-imex-ctl -N`; \
         NCCL_MNNVL_ENABLE=0 goes on without multi-node NVLink",
        incident.exhibits(said.iter().map(|n| &n.at), 3),
    ));
}

fn mnnvl(incident: &Incident) -> bool {
    // a GPU outside of a domain has an empty fabric id
    let domain = incident
        .notices(&["fabric UUID"])
        .iter()
        .any(|n| !n.text.contains("UUID 0.0 ") && !n.text.contains("state 0"));
    domain
        || incident.log.communicators.iter().any(|c| c.mnnvl)
        || incident.setting("NCCL_MNNVL_ENABLE").is_some_and(|(v, _)| v != "0")
}
