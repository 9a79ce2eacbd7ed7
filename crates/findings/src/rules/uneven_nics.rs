//! `uneven-nics`: the NICs of a host carry very different amounts.
//!
//! ## What
//!
//! Several NICs of a host carry data and the busiest moves more than 1.5 times as much as the
//! idlest.
//!
//! ## Why
//!
//! All rails wait for the busiest: channels were not spread evenly, or one NIC is slower than its
//! siblings (speed, PCIe slot, congestion) and the others are throttled by it. With ports that are
//! fused and balanced by their speed (`NCCL_IB_EVENT_BASED_LB=1`) an uneven load can be right.
//!
//! ## Example
//!
//! `NICs of h1 are loaded unevenly: mlx5_0 21 GB/s, mlx5_3 12 GB/s`
//!
//! ## Remedy
//!
//! Compare speed, PCIe width and error counters of the idle one with the others'.
//!
//! ## Source
//!
//! Byte counters of each NIC over the steady part.

use crate::evidence::Evidence;
use crate::figures::gbs;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::paths::host_name;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    ..Rule::new("uneven-nics", Severity::Warning, "NICs of one host carry different amounts")
};

const UNEVEN: f64 = 1.5;

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    for host in 0..evidence.hosts.len() {
        let rates = super::nic_rates(evidence, host);
        let Some(busiest) = rates.first() else { continue };
        let Some(idlest) = rates.last() else { continue };
        // one that carries next to nothing is another finding
        if rates.len() < 2
            || idlest.1 < super::IDLE_SHARE * busiest.1
            || busiest.1 < UNEVEN * idlest.1
        {
            continue;
        }
        let name = host_name(evidence, host);
        let load_balanced =
            evidence.settings.get("NCCL_IB_EVENT_BASED_LB").is_some_and(|v| v.trim() == "1");
        let finding = RULE.found(
            Confidence::Likely,
            format!(
                "NICs of {name} are loaded unevenly: {} {}, {} {}",
                busiest.0,
                gbs(busiest.1 / 1e9),
                idlest.0,
                gbs(idlest.1 / 1e9)
            ),
            "channels are not spread evenly, or the idle one is slower than its siblings",
            format!("compare speed, PCIe width and errors of {} with {}", idlest.0, busiest.0),
            rates.iter().map(|(nic, rate)| Exhibit::nic(nic, &name, gbs(rate / 1e9))).collect(),
        );
        findings.push(if load_balanced { finding.at(Severity::Info) } else { finding });
    }
}
