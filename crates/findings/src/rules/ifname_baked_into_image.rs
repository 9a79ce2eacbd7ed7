//! `ifname-baked-into-image`: an interface's name is fixed in an image.
//!
//! ## What
//!
//! A Dockerfile sets NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME or NCCL_OOB_NET_IFNAME to names.
//!
//! ## Why
//!
//! An image runs where interfaces have other names: eth0 in a pod is ens5, bond0 or enp1s0f0 on a host.
//! Where no name matches, init fails.
//!
//! ## Example
//!
//! `NCCL_SOCKET_IFNAME=eth0 is fixed in the image`
//!
//! ## Remedy
//!
//! Take the line out, and set it per cluster (ConfigMap, env file, /etc/nccl.conf of the node); NCCL's own
//! choice leaves docker and lo out already.
//!
//! ## Source
//!
//! NCCL src/misc/socket.cc.

use crate::documents::{Documents, Origin};
use crate::finding::{Confidence, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    documents: Some(documents),
    ..Rule::new(
        "ifname-baked-into-image",
        Severity::Warning,
        "an interface's name is fixed in an image",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for block in set.blocks.iter().filter(|b| b.origin == Origin::Image) {
        for setting in block.settings.iter().filter(|s| !s.open) {
            let value = setting.value.text.as_str();
            let list = matches!(
                setting.name.text.as_str(),
                "NCCL_SOCKET_IFNAME"
                    | "GLOO_SOCKET_IFNAME"
                    | "NCCL_OOB_NET_IFNAME"
                    | "TP_SOCKET_IFNAME"
            );
            if !list || value.len() < 2 || value.starts_with('^') || value.contains(['*', '$']) {
                continue;
            }
            findings.push(set.say(
                &RULE,
                Confidence::Likely,
                &setting.name.at,
                format!("{}={value} is fixed in the image", setting.name.text),
                "names of interfaces are a matter of the node: eth0 in a pod, ens5 or bond0 on its host. \
                 Where none matches, `Bootstrap : no socket interface found` ends the job",
                format!(
                    "take it out of the image and set it per cluster; NCCL leaves docker and lo out by \
                     itself. To exclude more for every cluster: {}=^docker,lo,veth",
                    setting.name.text
                ),
            ));
        }
    }
}
