//! `ip -br addr`, `ip addr`, `ip route`, `ethtool`.

use std::net::IpAddr;

use super::Node;
use crate::net::{Address, Kind};

/// States that `ip -br` prints.
const STATES: [&str; 6] = ["UP", "DOWN", "UNKNOWN", "LOWERLAYERDOWN", "DORMANT", "NOTPRESENT"];

/// What a name alone says about the kind: not much, and never that something is physical.
pub(super) fn kind_by_name(name: &str) -> Kind {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|p| name.starts_with(p));
    if name == "lo" {
        Kind::Loopback
    } else if starts(&["veth", "cali", "lxc", "azv", "eni"]) {
        Kind::Veth
    } else if starts(&["docker", "br-", "virbr", "cni", "kube-bridge", "lxdbr"]) {
        Kind::Bridge
    } else if starts(&[
        "flannel",
        "vxlan",
        "tunl",
        "wg",
        "tailscale",
        "cilium",
        "kube-ipvs",
        "nodelocaldns",
    ]) {
        Kind::Tunnel
    } else if starts(&["bond"]) && !name.contains('.') {
        Kind::Bond
    } else if name.contains('.') {
        Kind::Vlan
    } else if starts(&["ib"]) {
        Kind::Ipoib
    } else {
        Kind::Other
    }
}

/// `eth0@if411  UP  10.233.71.14/32 fe80::1/64`
pub(super) fn brief(node: &mut Node, line: &str) -> bool {
    let mut words = line.split_whitespace();
    let (Some(name), Some(state)) = (words.next(), words.next()) else { return false };
    if !STATES.contains(&state) || name.contains(':') {
        return false;
    }
    let (name, peer) = name.split_once('@').map_or((name, None), |(n, p)| (n, Some(p)));
    let addresses: Vec<Address> = words.filter_map(address).collect();
    let kind = match (kind_by_name(name), peer) {
        // the other end of a pair that lies in another namespace
        (Kind::Other, Some(p)) if p.starts_with("if") && name == "eth0" => Kind::Veth,
        (kind, _) => kind,
    };
    let interface = node.interface(name);
    interface.kind = kind;
    interface.running = matches!(state, "UP" | "UNKNOWN");
    interface.addresses = addresses;
    true
}

/// `2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1500 qdisc …`
pub(super) fn is_link_line(line: &str) -> bool {
    let mut parts = line.splitn(3, ": ");
    let number =
        parts.next().is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    number && parts.next().is_some() && parts.next().is_some_and(|r| r.starts_with('<'))
}

/// `ip addr` in full.
pub(super) fn full(node: &mut Node, line: &str) -> bool {
    if is_link_line(line) {
        let mut parts = line.splitn(3, ": ");
        let index = parts.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        let name = parts.next().unwrap_or_default();
        let name = name.split('@').next().unwrap_or(name).to_owned();
        let rest = parts.next().unwrap_or_default();
        let flags = rest.split('>').next().unwrap_or_default();
        let value = |key: &str| {
            let mut words = rest.split_whitespace().skip_while(|w| *w != key);
            words.next();
            words.next().map(str::to_owned)
        };
        node.place.interface.clone_from(&name);
        let interface = node.interface(&name);
        interface.index = index;
        interface.running = flags.contains("LOWER_UP");
        interface.mtu = value("mtu").and_then(|m| m.parse().ok()).unwrap_or(0);
        interface.master = value("master");
        return true;
    }
    let mut words = line.split_whitespace();
    let known = matches!(words.next(), Some("inet" | "inet6"));
    if !known || node.place.interface.is_empty() {
        return false;
    }
    let Some(found) = words.next().and_then(address) else { return false };
    let name = node.place.interface.clone();
    node.interface(&name).addresses.push(found);
    true
}

/// `default via 10.0.0.1 dev eth0 proto static`
pub(super) fn route(node: &mut Node, line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("default ") else { return false };
    let mut words = rest.split_whitespace().skip_while(|w| *w != "dev");
    let Some(name) = words.nth(1) else { return false };
    if node.facts.default_route.is_none() {
        node.facts.default_route = Some(name.to_owned());
    }
    true
}

/// `Settings for eth0:` and what follows.
pub(super) fn ethtool(node: &mut Node, line: &str) -> bool {
    let text = line.trim();
    if let Some(name) = text.strip_prefix("Settings for ") {
        name.trim_end_matches(':').clone_into(&mut node.place.interface);
        return true;
    }
    let Some((key, value)) = text.split_once(": ") else { return false };
    if node.place.interface.is_empty() {
        return false;
    }
    let name = node.place.interface.clone();
    match key {
        "Speed" => {
            let digits = value.trim_end_matches("Mb/s");
            node.interface(&name).reported_mbits = digits.parse().ok();
        }
        "Duplex" => node.interface(&name).half_duplex = value.eq_ignore_ascii_case("half"),
        "Link detected" => node.interface(&name).running = value == "yes",
        _ => return false,
    }
    true
}

fn address(text: &str) -> Option<Address> {
    let (ip, prefix) = text.split_once('/')?;
    Some(Address { ip: ip.parse::<IpAddr>().ok()?, prefix: prefix.parse().ok()? })
}
