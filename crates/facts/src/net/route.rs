//! Which device and source address the kernel would use to reach a peer.

use std::io;
use std::net::IpAddr;

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
    fn an_own_address_goes_over_loopback() {
        let route = to(IpAddr::from([127, 0, 0, 1])).unwrap();
        assert_eq!(route.device, 1, "lo is always the first interface");
        assert!(route.local);
    }
}
