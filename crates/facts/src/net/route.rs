//! Which device and source address the kernel would use to reach a peer.

use std::io;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::netlink::ask;
use crate::root::Root;

/// A route to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Kernel's index of the device that it leaves by; loopback for an own address.
    pub device: u32,
    /// Address that it leaves with.
    pub source: Option<IpAddr>,
    /// Whether the peer is an address of this very namespace.
    pub local: bool,
}

/// Asks the kernel (RTM_GETROUTE).
pub fn to(peer: IpAddr) -> io::Result<Route> {
    let mut request = RouteMessage::default();
    request.header.address_family =
        if peer.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    request.header.destination_prefix_length = if peer.is_ipv4() { 32 } else { 128 };
    request.attributes.push(RouteAttribute::Destination(RouteAddress::from(peer)));
    for answer in ask(RouteNetlinkMessage::GetRoute(request), false)? {
        let RouteNetlinkMessage::NewRoute(route) = answer else { continue };
        let mut device = None;
        let mut source = None;
        for attribute in &route.attributes {
            match attribute {
                RouteAttribute::Oif(index) => device = Some(*index),
                RouteAttribute::PrefSource(RouteAddress::Inet(ip)) => source = Some((*ip).into()),
                RouteAttribute::PrefSource(RouteAddress::Inet6(ip)) => source = Some((*ip).into()),
                _ => {}
            }
        }
        if let Some(device) = device {
            return Ok(Route { device, source, local: route.header.kind == RouteType::Local });
        }
    }
    Err(io::Error::new(io::ErrorKind::HostUnreachable, format!("no route to {peer}")))
}

/// A line of the kernel's IPv4 routing table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Network that it leads to, like `10.1.0.0/16`; `default` for all others.
    pub to: String,
    /// Gateway; `None` where the network is on the link.
    pub via: Option<IpAddr>,
    /// Interface that it leaves by.
    pub interface: String,
    /// Metric: the least one wins.
    pub metric: u32,
}

/// Most lines of the table that are told: nodes of a mesh have one for each peer.
const LINES: usize = 64;

/// The main IPv4 table, default routes first.
pub fn table(root: &Root) -> Vec<Line> {
    let text = root.read("/proc/self/net/route").unwrap_or_default();
    let address = |hex: &str| {
        // the kernel prints network byte order as a number of this machine's order
        u32::from_str_radix(hex, 16).ok().map(|n| std::net::Ipv4Addr::from(n.to_le_bytes()))
    };
    let mut lines: Vec<(bool, Line)> = text
        .lines()
        .skip(1)
        .filter_map(|line| {
            let f: Vec<&str> = line.split_whitespace().collect();
            let (to, via) = (address(f.get(1)?)?, address(f.get(2)?)?);
            let bits = u32::from_str_radix(f.get(7)?, 16).ok()?.count_ones();
            let default = bits == 0;
            let to = if default { "default".to_owned() } else { format!("{to}/{bits}") };
            let via = (!via.is_unspecified()).then_some(IpAddr::V4(via));
            let interface = (*f.first()?).to_owned();
            Some((!default, Line { to, via, interface, metric: f.get(6)?.parse().ok()? }))
        })
        .collect();
    lines.sort_by_key(|(later, line)| (*later, line.metric));
    lines.into_iter().map(|(_, line)| line).take(LINES).collect()
}

/// Interface of the default route with the least metric: the kernel's own table, IPv4 first.
pub fn default_interface(root: &Root) -> Option<String> {
    let table = root.read("/proc/self/net/route").unwrap_or_default();
    let four = table.lines().skip(1).filter_map(|line| {
        let f: Vec<&str> = line.split_whitespace().collect();
        let default = *f.get(1)? == "00000000" && *f.get(7)? == "00000000";
        default.then_some((f.get(6)?.parse::<u64>().ok()?, (*f.first()?).to_owned()))
    });
    if let Some((_, name)) = four.min() {
        return Some(name);
    }
    let table = root.read("/proc/self/net/ipv6_route").unwrap_or_default();
    let zeros = "0".repeat(32);
    table
        .lines()
        .filter_map(|line| {
            let f: Vec<&str> = line.split_whitespace().collect();
            let name = *f.get(9)?;
            let default = *f.first()? == zeros && *f.get(1)? == "00" && *f.get(4)? != zeros;
            (default && name != "lo")
                .then_some((u64::from_str_radix(f.get(5)?, 16).ok()?, name.to_owned()))
        })
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("proc/self/net");
        std::fs::create_dir_all(&at).unwrap();
        let text = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
                    eth1\t0000010A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
                    eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                    cut";
        std::fs::write(at.join("route"), text).unwrap();
        let root = Root::captured(folder.path(), std::collections::BTreeMap::new());
        let said: Vec<String> = table(&root)
            .iter()
            .map(|l| format!("{} via {:?} on {} metric {}", l.to, l.via, l.interface, l.metric))
            .collect();
        insta::assert_snapshot!(said.join("\n"), @r"
        default via Some(192.168.1.1) on eth0 metric 100
        10.1.0.0/16 via None on eth1 metric 0
        ");
    }

    #[test]
    fn an_own_address_goes_over_loopback() {
        let route = to(IpAddr::from([127, 0, 0, 1])).unwrap();
        assert_eq!(route.device, 1, "lo is always the first interface");
        assert!(route.local);
    }
}
