//! `nic-below-rated-speed`: a NIC runs slower than it should.
//!
//! ## What
//!
//! A physical NIC in use negotiated less than the same NIC of most other hosts, less than the line
//! rate that the user stated, or no more than 100 Mbit/s.
//!
//! ## Why
//!
//! A bad cable, dirty optics or a wrong switch setting make two ports agree on a lower speed. Every
//! ring through that port runs at its pace.
//!
//! ## Example
//!
//! `eth0 of h3 runs at 10 Gbit/s, 100 Gbit/s on the other hosts`
//!
//! ## Remedy
//!
//! `ethtool eth0` on the host (advertised and partner's modes), then cable, optics, switch port.
//!
//! ## Source
//!
//! The driver's own report of the negotiated speed.

use ncclctl_facts::Facts;
use std::collections::BTreeMap;

use crate::evidence::Evidence;
use crate::figures::line_rate;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::paths::host_name;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    trial: Some(look),
    ..Rule::new("nic-below-rated-speed", Severity::Warning, "a NIC negotiated too low a speed")
};

/// No NIC meant for this work is slower.
const LEAST_BITS: u64 = 100_000_000;

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    let used = super::chosen_nics(evidence);
    let mut rates: BTreeMap<u64, usize> = BTreeMap::new();
    for (_, nic) in &used {
        if let Some(rate) = nic.line_rate_bits() {
            *rates.entry(rate).or_default() += 1;
        }
    }
    let usual = rates.iter().max_by_key(|(rate, count)| (**count, **rate)).map(|(rate, _)| *rate);
    for (host, nic) in &used {
        let Some(rate) = nic.line_rate_bits() else { continue };
        let (wanted, whose) = match (evidence.stated_line_rate_bits, usual) {
            (Some(stated), _) if rate < stated => (stated, "stated for this run"),
            (_, Some(usual)) if rate < usual => (usual, "on the other hosts"),
            _ if rate <= LEAST_BITS => (10 * LEAST_BITS, "the least that is sold today"),
            _ => continue,
        };
        let name = host_name(evidence, *host);
        let finding = RULE.found(
            Confidence::Certain,
            format!(
                "{} of {name} runs at {}, {} {whose}",
                nic.name,
                line_rate(rate),
                line_rate(wanted)
            ),
            "the port agreed on a lower speed: cable, optics, or the switch port's setting",
            format!("ethtool {} on {name}, then cable, optics and switch port", nic.name),
            vec![Exhibit::nic(&nic.name, &name, line_rate(rate))],
        );
        findings.push(super::between_hosts(evidence, finding));
    }
}

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    for node in nodes {
        for device in &node.pci {
            let Some(now) = device.link else { continue };
            let port: u64 = node
                .rdma
                .iter()
                .filter(|d| d.pci.as_deref() == Some(&device.address))
                .flat_map(|d| &d.ports)
                .filter(|p| p.active())
                .filter_map(|p| p.mbits)
                .sum();
            // headers take some 5% of a slot's payload at 4 KiB requests
            if port == 0 || now.mbits() as f64 * 0.95 >= port as f64 * 0.98 {
                continue;
            }
            let name = device.names.first().cloned().unwrap_or_else(|| device.address.clone());
            findings.push(RULE.found(
                Confidence::Certain,
                format!(
                    "{}: {name} has a port of {} Gbit/s in a slot of {} Gbit/s ({} GT/s x{})",
                    node.name,
                    port / 1000,
                    now.mbits() / 1000,
                    now.gts,
                    now.width
                ),
                "a NIC is worth the lower of its port and its slot",
                "reseat the card or move it to a wider slot; look at the kernel log for link training \
                 (`lspci -vv`, LnkSta against LnkCap)",
                vec![Exhibit::nic(&name, &node.name, format!("{} GT/s x{}", now.gts, now.width))],
            ));
        }
    }
}
