//! Interfaces that the ranks could have used instead.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ncclctl_facts::net::{Interface, Kind};

use crate::evidence::Evidence;

/// Interfaces worth a short measurement of their own: on every host under one name, running, in
/// one network that all of them share, and not in use. Names of bridges and tunnels are left out,
/// and so is everything where speeds are known without measuring.
///
/// A measured ceiling sinks together with the result when the wrong interface was chosen; streams
/// over the others show it.
pub fn other_interfaces(evidence: &Evidence) -> Vec<String> {
    if evidence.hosts.len() < 2 {
        return Vec::new();
    }
    let used: BTreeSet<&str> =
        evidence.ranks.iter().flat_map(|r| &r.interfaces).map(|i| i.name.as_str()).collect();
    let Some(first) = evidence.hosts.first() else { return Vec::new() };
    let known = |name: &str| {
        evidence
            .hosts
            .iter()
            .all(|h| h.interfaces.iter().any(|i| i.name == name && i.line_rate_bits().is_some()))
    };
    let all_known = !used.is_empty() && used.iter().all(|name| known(name));
    first
        .interfaces
        .iter()
        .filter(|i| !used.contains(i.name.as_str()))
        .filter(|i| !matches!(i.kind, Kind::Loopback | Kind::Bridge | Kind::Tunnel))
        .filter(|i| !(all_known && known(&i.name)))
        .filter(|i| {
            let networks: Vec<BTreeSet<(IpAddr, u8)>> = evidence
                .hosts
                .iter()
                .map(|h| {
                    let same = h.interfaces.iter().filter(|o| o.name == i.name);
                    same.flat_map(networks).collect()
                })
                .collect();
            let shared = networks
                .iter()
                .skip(1)
                .fold(networks[0].clone(), |a, b| a.intersection(b).copied().collect());
            !shared.is_empty()
        })
        .map(|i| i.name.clone())
        .collect()
}

fn networks(i: &Interface) -> Vec<(IpAddr, u8)> {
    if !i.running {
        return Vec::new();
    }
    i.addresses
        .iter()
        .filter(|a| crate::rules::usable(&a.ip))
        .map(|a| (crate::rules::network(a.ip, a.prefix), a.prefix))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{GIGABIT, hosts, interface, local};

    #[test]
    fn only_what_reaches_every_host() {
        let mut e = hosts(3, GIGABIT);
        assert!(other_interfaces(&e).is_empty());
        assert!(other_interfaces(&local(2, 1e9)).is_empty());
        for (h, host) in e.hosts.iter_mut().enumerate() {
            let ip = |net: u8| format!("10.{net}.0.{}", h + 1);
            host.interfaces.push(interface("mgmt", Kind::Veth, &ip(9)));
            host.interfaces.push(interface("docker0", Kind::Bridge, &ip(17)));
            host.interfaces.push(interface("private", Kind::Veth, &format!("10.{}.1.1", 50 + h)));
            let mut down = interface("eth7", Kind::Veth, &ip(7));
            down.running = false;
            host.interfaces.push(down);
            host.interfaces.push(interface("usb0", Kind::Other, "169.254.3.1"));
        }
        e.hosts[1].interfaces.push(interface("extra", Kind::Veth, "10.8.0.2"));
        assert_eq!(other_interfaces(&e), ["mgmt"]);
    }
}
