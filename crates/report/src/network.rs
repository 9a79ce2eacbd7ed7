//! Which interface each rank used and by which rule, and what a firewall must let through.

use std::collections::BTreeMap;

use ncclctl_findings::Evidence;

use crate::text::wrap;

/// The lines, each with `prefix`.
pub fn render(
    evidence: &Evidence,
    control: Option<&str>,
    ports: Option<(u16, u16)>,
    width: usize,
    prefix: &str,
) -> String {
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
        let range = ports.map_or_else(
            || "the range in /proc/sys/net/ipv4/ip_local_port_range".to_owned(),
            |(low, high)| format!("{low}-{high} (ip_local_port_range)"),
        );
        let mut text = format!("TCP {range} between all hosts, both directions");
        if let Some(control) = control {
            text.push_str(&format!("; TCP to the coordinator at {control}"));
        }
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
