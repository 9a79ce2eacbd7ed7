//! `socket-ifname-is-address`: an address instead of an interface name.
//!
//! ## What
//!
//! NCCL_SOCKET_IFNAME (or GLOO_SOCKET_IFNAME) holds an IP address.
//!
//! ## Why
//!
//! The variable takes interface names; an address is compared as a name, matches nothing, and no
//! interface is left.
//!
//! ## Example
//!
//! `NCCL_SOCKET_IFNAME=10.0.0.5 is an address, not an interface`
//!
//! ## Remedy
//!
//! Write the name of the interface that has the address: `ip -br addr | grep 10.0.0.5`.
//!
//! ## Source
//!
//! NCCL src/misc/socket.cc parseStringList.

use ncclctl_nccl::log::address;

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;
use ncclctl_nccl::doubt::interface;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new(
        "socket-ifname-is-address",
        Severity::Error,
        "an address instead of an interface name",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[interface::address], findings);
}

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    for p in &incident.log.processes {
        for name in ["NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME"] {
            let Some(setting) = p.setting(name) else { continue };
            let value = setting.value.trim_start_matches(['^', '=']);
            if value.split(',').any(|v| address::ip(v.trim()).is_some()) {
                findings.push(RULE.found(
                    Confidence::Certain,
                    format!(
                        "{name}={} on {} is an address, not an interface",
                        setting.value, p.host
                    ),
                    "the value is compared with interface names, so an address matches nothing",
                    format!("write the interface that has it: `ip -br addr | grep {value}`"),
                    incident.exhibits([&setting.at], 1),
                ));
                return;
            }
        }
    }
}
