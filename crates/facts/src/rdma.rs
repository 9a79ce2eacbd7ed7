//! RDMA devices, by sysfs: no library is needed, and none can be asked in a captured tree.

use std::net::Ipv6Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::live::Live;
use crate::root::Root;

/// Most entries of a partition table that are read.
const PKEYS: usize = 128;

/// Most entries of a GID table that are read.
const GIDS: usize = 256;

/// One RDMA device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RdmaDevice {
    /// Name, like `mlx5_0`.
    pub name: String,
    /// PCI address.
    pub pci: Option<String>,
    /// NUMA node.
    pub numa: Option<u32>,
    /// Driver, like `mlx5_core`, `efa`.
    pub driver: Option<String>,
    /// Firmware version.
    pub firmware: Option<String>,
    /// Board or card type, like `MT4129`.
    pub board: Option<String>,
    /// A virtual function of another device.
    pub virtual_function: bool,
    /// Device node that programs open, like `/dev/infiniband/uverbs0`.
    pub node: Option<String>,
    /// What opening it said: `ok`, or why not; `None` where there is no node to open.
    pub opened: Option<String>,
    /// Ports.
    pub ports: Vec<Port>,
}

/// One port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Port {
    /// Number, from 1.
    pub number: u32,
    /// `ACTIVE`, `DOWN`, `INIT`, `ARMED`.
    pub state: String,
    /// `InfiniBand`, `Ethernet`, or what the driver says.
    pub link_layer: String,
    /// Signalling rate, megabits per second.
    pub mbits: Option<u64>,
    /// Local identifier; 0 without a subnet manager.
    pub lid: Option<u32>,
    /// Partition keys, without the empty entries.
    pub pkeys: Vec<String>,
    /// Interface that belongs to the port, where it is in this namespace.
    pub netdev: Option<String>,
    /// GID table without empty entries.
    pub gids: Vec<Gid>,
    /// Entries of the GID table that could not be read: they belong to other namespaces.
    pub unreadable_gids: u32,
    /// Counters that tell of trouble, where they are not zero.
    pub counters: std::collections::BTreeMap<String, u64>,
}

/// One entry of a GID table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gid {
    /// Index.
    pub index: u32,
    /// The address, IPv4 mapped where it stands for one.
    pub gid: Ipv6Addr,
    /// `IB/RoCE v1`, `RoCE v2`; empty where it is not told.
    #[serde(default)]
    pub kind: String,
    /// Interface of the entry.
    #[serde(default)]
    pub netdev: Option<String>,
}

impl RdmaDevice {
    /// Amazon's adapter: verbs, but no InfiniBand transport; NCCL needs a plug-in for it.
    pub fn is_efa(&self) -> bool {
        self.driver.as_deref() == Some("efa") || self.name.starts_with("rdmap")
    }
}

impl Port {
    /// Whether it carries traffic.
    pub fn active(&self) -> bool {
        self.state == "ACTIVE"
    }

    /// RDMA over Ethernet.
    pub fn is_roce(&self) -> bool {
        self.link_layer == "Ethernet"
    }
}

impl Gid {
    /// Whether it is a RoCE v2 entry.
    pub fn is_v2(&self) -> bool {
        self.kind.to_ascii_lowercase().contains("v2")
    }

    /// Whether peers outside of the link can be reached by it.
    pub fn is_routable(&self) -> bool {
        match self.gid.to_ipv4_mapped() {
            Some(four) => !four.is_link_local() && !four.is_unspecified(),
            None => (self.gid.segments()[0] & 0xffc0) != 0xfe80 && !self.gid.is_unspecified(),
        }
    }
}

/// Counters that stay zero on a healthy fabric, or nearly so.
const TROUBLE: [&str; 18] = [
    "link_downed",
    "link_error_recovery",
    "symbol_error",
    "port_rcv_errors",
    "port_xmit_discards",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "local_ack_timeout_err",
    "out_of_sequence",
    "packet_seq_err",
    "out_of_buffer",
    "rnr_nak_retry_err",
    "implied_nak_seq_err",
    "np_cnp_sent",
    "rp_cnp_handled",
    "np_ecn_marked_roce_packets",
    "roce_slow_restart",
    "rx_icrc_encapsulated",
];

/// Fills the RDMA part.
pub(crate) fn collect(root: &Root, live: &Live, facts: &mut Facts) {
    let nodes: Vec<(String, String)> = root
        .list("/sys/class/infiniband_verbs")
        .into_iter()
        .filter_map(|node| {
            Some((root.line(&format!("/sys/class/infiniband_verbs/{node}/ibdev"))?, node))
        })
        .collect();
    let mut names = root.list("/sys/class/infiniband");
    names.sort_by_cached_key(|name| natural(name));
    for name in names {
        let base = format!("/sys/class/infiniband/{name}");
        let node = nodes
            .iter()
            .find(|(device, _)| *device == name)
            .map(|(_, node)| format!("/dev/infiniband/{node}"));
        let opened = node.as_ref().map(|node| {
            live.opened
                .get(node)
                .cloned()
                .unwrap_or_else(|| "not there in this container".to_owned())
        });
        facts.rdma.push(RdmaDevice {
            pci: root.link_name(&format!("{base}/device")).filter(|n| n.contains(':')),
            numa: root.number(&format!("{base}/device/numa_node")),
            driver: root.link_name(&format!("{base}/device/driver")),
            firmware: root.line(&format!("{base}/fw_ver")),
            board: root.line(&format!("{base}/hca_type")),
            virtual_function: root.link(&format!("{base}/device/physfn")).is_some(),
            node,
            opened,
            ports: ports(root, &base),
            name,
        });
    }
}

fn ports(root: &Root, base: &str) -> Vec<Port> {
    let mut ports: Vec<Port> = root
        .list(&format!("{base}/ports"))
        .into_iter()
        .filter_map(|number| {
            let at = format!("{base}/ports/{number}");
            let number: u32 = number.parse().ok()?;
            let state = root.line(&format!("{at}/state")).unwrap_or_default();
            let (gids, unreadable_gids) = gids(root, &at);
            let of_gids = gids.iter().find_map(|g| g.netdev.clone());
            Some(Port {
                number,
                // `4: ACTIVE`
                state: state.rsplit(": ").next().unwrap_or_default().to_owned(),
                link_layer: root.line(&format!("{at}/link_layer")).unwrap_or_default(),
                mbits: root.line(&format!("{at}/rate")).and_then(|text| mbits(&text)),
                pkeys: pkeys(root, &at),
                lid: root
                    .line(&format!("{at}/lid"))
                    .and_then(|t| u32::from_str_radix(t.trim_start_matches("0x"), 16).ok()),
                netdev: of_gids
                    .or_else(|| root.list(&format!("{base}/device/net")).into_iter().next()),
                gids,
                unreadable_gids,
                counters: counters(root, &at),
            })
        })
        .collect();
    ports.sort_by_key(|p| p.number);
    ports
}

/// A name by its letters and numbers: `mlx5_9` before `mlx5_10`.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts: Vec<(String, u64)> = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(end);
        parts.push((text.to_owned(), number.parse().unwrap_or(0)));
        rest = tail;
    }
    parts
}

/// Entries of the partition table, as the kernel writes them (`0xffff`).
fn pkeys(root: &Root, port: &str) -> Vec<String> {
    let mut indexes: Vec<u32> =
        root.list(&format!("{port}/pkeys")).iter().filter_map(|n| n.parse().ok()).collect();
    indexes.sort_unstable();
    indexes
        .into_iter()
        .take(PKEYS)
        .filter_map(|index| root.line(&format!("{port}/pkeys/{index}")))
        .filter(|key| key != "0x0000")
        .collect()
}

/// `400 Gb/sec (4X NDR)` in megabits per second.
pub(crate) fn mbits(text: &str) -> Option<u64> {
    let rate: f64 = text.split_whitespace().next()?.parse().ok()?;
    (rate > 0.0).then_some((rate * 1000.0) as u64)
}

fn gids(root: &Root, port: &str) -> (Vec<Gid>, u32) {
    let mut indexes: Vec<u32> =
        root.list(&format!("{port}/gids")).iter().filter_map(|n| n.parse().ok()).collect();
    indexes.sort_unstable();
    let mut found = Vec::new();
    let mut unreadable = 0;
    for index in indexes.into_iter().take(GIDS) {
        let Some(text) = root.line(&format!("{port}/gids/{index}")) else {
            unreadable += 1;
            continue;
        };
        let Ok(gid) = text.parse::<Ipv6Addr>() else { continue };
        let empty = gid.is_unspecified() || gid.segments()[4..] == [0; 4];
        if empty {
            continue;
        }
        found.push(Gid {
            index,
            gid,
            kind: root.line(&format!("{port}/gid_attrs/types/{index}")).unwrap_or_default(),
            netdev: root.line(&format!("{port}/gid_attrs/ndevs/{index}")),
        });
    }
    (found, unreadable)
}

fn counters(root: &Root, port: &str) -> std::collections::BTreeMap<String, u64> {
    let mut out = std::collections::BTreeMap::new();
    for folder in ["counters", "hw_counters"] {
        for name in root.list(&format!("{port}/{folder}")) {
            if !TROUBLE.contains(&name.as_str()) {
                continue;
            }
            if let Some(value) = root.number::<u64>(&format!("{port}/{folder}/{name}"))
                && value > 0
            {
                out.insert(name, value);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_in_the_order_that_people_count() {
        let mut names = ["mlx5_10", "mlx5_9", "rdmap144s27", "rdmap16s27", "mlx5_bond_0", "mlx5_0"];
        names.sort_by_cached_key(|n| natural(n));
        assert_eq!(
            names,
            ["mlx5_0", "mlx5_9", "mlx5_10", "mlx5_bond_0", "rdmap16s27", "rdmap144s27"]
        );
    }

    #[test]
    fn rates_as_the_kernel_writes_them() {
        assert_eq!(mbits("400 Gb/sec (4X NDR)"), Some(400_000));
        assert_eq!(mbits("2.5 Gb/sec (1X SDR)"), Some(2_500));
        assert_eq!(mbits("0 Gb/sec"), None);
        assert_eq!(mbits(""), None);
    }
}
