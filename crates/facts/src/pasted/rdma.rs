//! `show_gids`, `ibstat`, `ibv_devinfo`, `rdma link`, files of /sys/class/infiniband.

use std::net::Ipv6Addr;

use super::Node;
use crate::rdma::{Gid, mbits};

/// `mlx5_4  1  5  0000:…:ac16:0501  172.22.5.1  v2  net1`
pub(super) fn gid_table(node: &mut Node, line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [device, port, index, gid, rest @ ..] = words.as_slice() else { return false };
    let (Ok(port), Ok(index), Ok(gid)) =
        (port.parse::<u32>(), index.parse::<u32>(), gid.parse::<Ipv6Addr>())
    else {
        return false;
    };
    let version = rest.iter().find(|w| matches!(**w, "v1" | "v2"));
    let kind = match version {
        Some(&"v2") => "RoCE v2",
        Some(_) => "IB/RoCE v1",
        None => "",
    };
    let netdev = rest
        .last()
        .filter(|w| !matches!(**w, "v1" | "v2") && w.parse::<std::net::IpAddr>().is_err())
        .map(|w| (*w).to_owned());
    let at = node.port(device, port);
    if version.is_some() {
        "Ethernet".clone_into(&mut at.link_layer);
    }
    if at.netdev.is_none() {
        at.netdev.clone_from(&netdev);
    }
    at.gids.push(Gid { index, gid, kind: kind.to_owned(), netdev });
    true
}

/// `CA 'mlx5_0'`, `Port 1:`, `State: Active`, …
pub(super) fn ibstat(node: &mut Node, line: &str) -> bool {
    let text = line.trim();
    if let Some(name) = text.strip_prefix("CA '").and_then(|r| r.strip_suffix('\'')) {
        name.clone_into(&mut node.place.device);
        node.place.port = 0;
        node.device(name);
        return true;
    }
    if node.place.device.is_empty() {
        return false;
    }
    let device = node.place.device.clone();
    if let Some(number) =
        text.strip_prefix("Port ").and_then(|r| r.trim_end_matches(':').parse().ok())
    {
        node.place.port = number;
        node.port(&device, number);
        return true;
    }
    let Some((key, value)) = text.split_once(':') else { return false };
    let value = value.trim();
    let number = node.place.port;
    match (key, number) {
        ("CA type", 0) => node.device(&device).board = Some(value.to_owned()),
        ("Firmware version", 0) => node.device(&device).firmware = Some(value.to_owned()),
        ("State", 1..) => node.port(&device, number).state = value.to_ascii_uppercase(),
        ("Rate", 1..) => node.port(&device, number).mbits = mbits(value),
        ("Base lid", 1..) => node.port(&device, number).lid = value.parse().ok(),
        ("Link layer", 1..) => value.clone_into(&mut node.port(&device, number).link_layer),
        _ => return false,
    }
    true
}

/// `hca_id: mlx5_0`, `port: 1`, `state: PORT_ACTIVE (4)`, …
pub(super) fn ibv_devinfo(node: &mut Node, line: &str) -> bool {
    let Some((key, value)) = line.trim().split_once(':') else { return false };
    let value = value.trim();
    if key == "hca_id" {
        value.clone_into(&mut node.place.device);
        node.place.port = 0;
        node.device(value);
        return true;
    }
    if node.place.device.is_empty() {
        return false;
    }
    let device = node.place.device.clone();
    let first = value.split_whitespace().next().unwrap_or_default();
    match (key, node.place.port) {
        ("port", _) => {
            let Ok(number) = first.parse() else { return false };
            node.place.port = number;
            node.port(&device, number);
        }
        ("fw_ver", 0) => node.device(&device).firmware = Some(value.to_owned()),
        ("state", number @ 1..) => {
            first.trim_start_matches("PORT_").clone_into(&mut node.port(&device, number).state);
        }
        ("link_layer", number @ 1..) => {
            value.clone_into(&mut node.port(&device, number).link_layer)
        }
        ("port_lid", number @ 1..) => node.port(&device, number).lid = value.parse().ok(),
        _ => return false,
    }
    true
}

/// `link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth2`
pub(super) fn rdma_link(node: &mut Node, line: &str) -> bool {
    let Some(rest) = line.trim().strip_prefix("link ") else { return false };
    let mut words = rest.split_whitespace();
    let Some((device, port)) = words.next().and_then(|w| w.split_once('/')) else { return false };
    let Ok(number) = port.parse() else { return false };
    let rest: Vec<&str> = words.collect();
    let value = |key: &str| rest.iter().position(|w| *w == key).and_then(|i| rest.get(i + 1));
    let at = node.port(device, number);
    if let Some(state) = value("state") {
        (*state).clone_into(&mut at.state);
    }
    if let Some(netdev) = value("netdev") {
        at.netdev = Some((*netdev).to_owned());
        "Ethernet".clone_into(&mut at.link_layer);
    }
    true
}

/// `grep "" /sys/class/infiniband/…` with its `path:value`, or `cat` of one file with the value alone.
pub(super) fn sysfs(node: &mut Node, line: &str) -> bool {
    let (path, value) = match line.trim().split_once(':') {
        Some((path, value)) if path.starts_with("/sys/class/infiniband/") => {
            (path.to_owned(), value.trim().to_owned())
        }
        _ => {
            let named =
                node.command.split_whitespace().find(|w| w.starts_with("/sys/class/infiniband/"));
            let Some(path) = named.filter(|p| !p.contains('*')) else { return false };
            (path.to_owned(), line.trim().to_owned())
        }
    };
    let parts: Vec<&str> = path.trim_start_matches("/sys/class/infiniband/").split('/').collect();
    match parts.as_slice() {
        [device, "device", "numa_node"] => {
            node.device(device).numa = value.parse().ok();
            true
        }
        [device, "ports", port, "counters" | "hw_counters", name] => {
            let (Ok(port), Ok(value)) = (port.parse::<u32>(), value.parse::<u64>()) else {
                return false;
            };
            let at = node.port(device, port);
            if value > 0 {
                at.counters.insert((*name).to_owned(), value);
            }
            true
        }
        [device, "ports", port, "gids", index] => {
            let (Ok(port), Ok(index), Ok(gid)) =
                (port.parse::<u32>(), index.parse(), value.parse::<Ipv6Addr>())
            else {
                return false;
            };
            if !gid.is_unspecified() {
                node.port(device, port).gids.push(Gid {
                    index,
                    gid,
                    kind: String::new(),
                    netdev: None,
                });
            }
            true
        }
        [device, "ports", port, "gid_attrs", "types", index] => {
            let (Ok(port), Ok(index)) = (port.parse::<u32>(), index.parse::<u32>()) else {
                return false;
            };
            let at = node.port(device, port);
            let Some(gid) = at.gids.iter_mut().find(|g| g.index == index) else { return false };
            value.clone_into(&mut gid.kind);
            "Ethernet".clone_into(&mut at.link_layer);
            true
        }
        [device, "ports", port, field] => {
            let Ok(port) = port.parse::<u32>() else { return false };
            let at = node.port(device, port);
            match *field {
                "state" => value.rsplit(": ").next().unwrap_or(&value).clone_into(&mut at.state),
                "rate" => at.mbits = mbits(&value),
                "link_layer" => at.link_layer = value,
                _ => return false,
            }
            true
        }
        _ => false,
    }
}
