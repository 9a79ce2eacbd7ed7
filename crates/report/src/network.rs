//! Which interface each rank used and by which rule, and what a firewall must let through.

use std::collections::BTreeMap;

use ncclctl_findings::Evidence;

use crate::text::wrap;

/// The lines, each with `prefix`.
pub fn render(evidence: &Evidence, width: usize, prefix: &str) -> String {
    let mut out = String::new();
    // ranks that chose alike share a line
    let mut chosen: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (index, rank) in evidence.ranks.iter().enumerate() {
        let host = evidence.hosts.get(rank.host).map_or("?", |host| host.name.as_str());
        for interface in &rank.interfaces {
            let key = (interface.name.clone(), interface.rule.clone());
            let who = format!("{index} ({host} {})", interface.address);
            chosen.entry(key).or_default().push(who);
        }
    }
    for ((name, rule), who) in chosen {
        let shown = if who.len() > 8 {
            format!("{}, … {} in all", who[..8].join(", "), who.len())
        } else {
            who.join(", ")
        };
        let text = format!("{name} by {rule}: rank {shown}");
        wrap(
            &mut out,
            width,
            &format!("{prefix}interface  "),
            &format!("{prefix}           "),
            &text,
        );
    }
    if evidence.hosts.len() > 1 {
        // one rule for all hosts: the widest of their ranges
        let ranges = evidence.hosts.iter().filter_map(|host| host.port_range);
        let low = ranges.clone().map(|range| range.0).min();
        let range = match (low, ranges.map(|range| range.1).max()) {
            (Some(low), Some(high)) => format!("{low}-{high} (ip_local_port_range)"),
            _ => "the range in /proc/sys/net/ipv4/ip_local_port_range".to_owned(),
        };
        let text = format!(
            "TCP {range} between all hosts, both directions, and the coordinator's port from all workers"
        );
        wrap(
            &mut out,
            width,
            &format!("{prefix}firewall   "),
            &format!("{prefix}           "),
            &text,
        );
    }
    out
}
