//! Addresses as NCCL prints them: `eth0:10.0.0.1<0>`, `ip6tnl0:fe80::1%ip6tnl0<0>`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;

/// An interface and the address that NCCL took from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// Interface name, cut to 15 characters by the kernel.
    pub interface: String,
    /// Address without zone and port.
    pub ip: Option<IpAddr>,
}

/// A port of an RDMA device as NCCL lists it: `[0]mlx5_0:1/RoCE`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Port {
    /// Device, like `mlx5_0`.
    pub device: String,
    /// Port number, 0 where not printed.
    pub port: u32,
    /// `IB` or `RoCE`.
    pub layer: String,
}

/// Reads a list `[0]eth0:10.0.0.1<0> [1]eth1:…`, or one address without index.
pub fn bound_list(text: &str) -> Vec<Bound> {
    text.split_ascii_whitespace().filter_map(bound).collect()
}

/// Reads `[0]eth0:10.0.0.1<0>`.
pub fn bound(text: &str) -> Option<Bound> {
    let text = match text.strip_prefix('[') {
        Some(rest) => &rest[rest.find(']')? + 1..],
        None => text,
    };
    let (interface, address) = text.split_once(':')?;
    if interface.is_empty() || !interface.bytes().all(|b| b.is_ascii_graphic()) {
        return None;
    }
    Some(Bound { interface: interface.to_owned(), ip: ip(address) })
}

/// Reads an address before its port: `10.0.0.1<0>`, `fe80::1%eth0<0>`, `[::1]:80`, `10.0.0.1:80`.
pub fn ip(text: &str) -> Option<IpAddr> {
    let end = text.find(['<', '%', '&', ' ', ',']).unwrap_or(text.len());
    let bare = text[..end].trim_matches(['[', ']', '\'', '"', '.']);
    bare.parse().ok().or_else(|| bare.rsplit_once(':')?.0.trim_end_matches(']').parse().ok())
}

/// Reads the list of RDMA ports before `; OOB`.
pub fn ports(text: &str) -> Vec<Port> {
    text.split_ascii_whitespace()
        .filter_map(|word| {
            let rest = word.strip_prefix('[')?;
            let rest = &rest[rest.find(']')? + 1..];
            let (name, layer) = rest.split_once('/').unwrap_or((rest, ""));
            let (device, port) = name.split_once(':').unwrap_or((name, "0"));
            let layer = layer.split('/').next().unwrap_or("");
            (!device.is_empty()).then(|| Port {
                device: device.to_owned(),
                port: port.parse().unwrap_or(0),
                layer: layer.to_owned(),
            })
        })
        .collect()
}

/// An IPv4 address, also inside a GID (`::ffff:10.0.0.1`).
pub fn v4(ip: IpAddr) -> Option<Ipv4Addr> {
    match ip {
        IpAddr::V4(v4) => Some(v4),
        IpAddr::V6(v6) => v6.to_ipv4_mapped(),
    }
}

/// Link-local: 169.254/16 or fe80::/10. Such an address exists on every machine again.
pub fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => is_fe80(v6),
    }
}

fn is_fe80(v6: Ipv6Addr) -> bool {
    v6.segments()[0] & 0xffc0 == 0xfe80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_every_version() {
        let names = |text| bound_list(text).iter().map(|b| b.interface.clone()).collect::<Vec<_>>();
        assert_eq!(names("eth0:10.0.0.1<0>"), ["eth0"]);
        assert_eq!(
            names("[0]ip6tnl0:fe80::1%ip6tnl0<0> [1]veth0:2001:db8::a<0>"),
            ["ip6tnl0", "veth0"]
        );
        let tunnel = bound("[0]ip6tnl0:fe80::1%ip6tnl0<0>").unwrap();
        assert!(is_link_local(tunnel.ip.unwrap()));
        assert_eq!(bound("veth0:2001:db8::a<0>").unwrap().ip, "2001:db8::a".parse().ok());
        assert_eq!(bound("[0]"), None);
    }

    #[test]
    fn rdma_ports() {
        let list = ports("[0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/RoCE [RO]");
        assert_eq!(list.len(), 2);
        assert_eq!((list[0].device.as_str(), list[0].layer.as_str()), ("mlx5_0", "IB"));
        assert_eq!((list[1].port, list[1].layer.as_str()), (1, "RoCE"));
    }
}
