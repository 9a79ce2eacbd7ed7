//! Counters of NICs and of TCP: read twice, their difference is what crossed the wire.

use std::collections::BTreeMap;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::netlink::ask;
use crate::root::Root;

/// Counters of one device since it came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Nic {
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Errors, both directions.
    pub errors: u64,
    /// Drops, both directions.
    pub drops: u64,
    /// Times that the other side asked this one to pause, where the device counts it.
    pub pauses: u64,
}

/// Counters of a network namespace and of its RDMA devices at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// By device name; RDMA devices as `mlx5_0/1` (device and port).
    pub nics: BTreeMap<String, Nic>,
    /// TCP segments sent by this namespace, where readable.
    pub tcp_segments: Option<u64>,
    /// TCP segments sent again, where readable.
    pub tcp_retransmits: Option<u64>,
}

impl Snapshot {
    /// Reads all counters that can be read.
    pub fn take(root: &Root) -> Self {
        let mut snapshot = Self::default();
        if root.is_live() {
            let links = ask(RouteNetlinkMessage::GetLink(LinkMessage::default()), true);
            for message in links.unwrap_or_default() {
                if let RouteNetlinkMessage::NewLink(link) = message {
                    snapshot.add_link(&link);
                }
            }
        }
        snapshot.add_rdma(root);
        snapshot.add_tcp(root);
        snapshot
    }

    /// What happened between an earlier snapshot and this one. A counter that went backwards was reset and counts from 0.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: u64, then: u64| if now >= then { now - then } else { now };
        let nics = self
            .nics
            .iter()
            .map(|(name, now)| {
                let then = earlier.nics.get(name).copied().unwrap_or_default();
                let difference = Nic {
                    rx_bytes: less(now.rx_bytes, then.rx_bytes),
                    tx_bytes: less(now.tx_bytes, then.tx_bytes),
                    errors: less(now.errors, then.errors),
                    drops: less(now.drops, then.drops),
                    pauses: less(now.pauses, then.pauses),
                };
                (name.clone(), difference)
            })
            .collect();
        let both = |now: Option<u64>, then: Option<u64>| Some(less(now?, then?));
        Self {
            nics,
            tcp_segments: both(self.tcp_segments, earlier.tcp_segments),
            tcp_retransmits: both(self.tcp_retransmits, earlier.tcp_retransmits),
        }
    }

    fn add_link(&mut self, link: &LinkMessage) {
        let mut name = None;
        let mut nic = None;
        for attribute in &link.attributes {
            match attribute {
                LinkAttribute::IfName(text) => name = Some(text.clone()),
                LinkAttribute::Stats64(stats) => {
                    nic = Some(Nic {
                        rx_bytes: stats.rx_bytes,
                        tx_bytes: stats.tx_bytes,
                        errors: stats.rx_errors + stats.tx_errors,
                        drops: stats.rx_dropped + stats.tx_dropped,
                        pauses: 0,
                    });
                }
                _ => {}
            }
        }
        if let (Some(name), Some(nic)) = (name, nic) {
            self.nics.insert(name, nic);
        }
    }

    /// RDMA traffic never passes the netdev's counters. `port_*_data` count words of 4 bytes
    /// (InfiniBand specification 1.4, PortCountersExtended); EFA counts bytes under other names.
    fn add_rdma(&mut self, root: &Root) {
        for device in root.list("/sys/class/infiniband") {
            for port in root.list(&format!("/sys/class/infiniband/{device}/ports")) {
                let base = format!("/sys/class/infiniband/{device}/ports/{port}");
                let read = |name: &str| root.number::<u64>(&format!("{base}/{name}"));
                let words =
                    |name: &str| read(&format!("counters/{name}")).map(|w| w.saturating_mul(4));
                let hardware = |name: &str| read(&format!("hw_counters/{name}")).unwrap_or(0);
                let plain = |name: &str| read(&format!("counters/{name}")).unwrap_or(0);
                let nic = Nic {
                    rx_bytes: words("port_rcv_data").unwrap_or_else(|| hardware("rx_bytes")),
                    tx_bytes: words("port_xmit_data").unwrap_or_else(|| hardware("tx_bytes")),
                    errors: plain("port_rcv_errors")
                        + plain("symbol_error")
                        + plain("link_downed")
                        + hardware("local_ack_timeout_err")
                        + hardware("packet_seq_err"),
                    drops: plain("port_xmit_discards")
                        + hardware("rx_drops")
                        + hardware("out_of_buffer"),
                    pauses: hardware("np_cnp_sent") + hardware("rp_cnp_handled"),
                };
                self.nics.insert(format!("{device}/{port}"), nic);
            }
        }
    }

    fn add_tcp(&mut self, root: &Root) {
        let text = root.read("/proc/net/snmp").unwrap_or_default();
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
        let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return };
        let find = |wanted: &str| {
            names
                .split_whitespace()
                .zip(values.split_whitespace())
                .find(|(name, _)| *name == wanted)
                .and_then(|(_, value)| value.parse().ok())
        };
        self.tcp_segments = find("OutSegs");
        self.tcp_retransmits = find("RetransSegs");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_four_bytes_and_efa_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "1000\n");
        write("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "250\n");
        write("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_discards", "3\n");
        write("sys/class/infiniband/efa_0/ports/1/hw_counters/tx_bytes", "77\n");
        write("proc/net/snmp", "Tcp: RtoMin OutSegs RetransSegs\nTcp: 200 5000 7\n");
        let root = Root::captured(folder.path(), BTreeMap::new());
        let snapshot = Snapshot::take(&root);
        let nic = snapshot.nics["mlx5_0/1"];
        assert_eq!((nic.tx_bytes, nic.rx_bytes, nic.drops), (4000, 1000, 3));
        assert_eq!(snapshot.nics["efa_0/1"].tx_bytes, 77);
        assert_eq!(snapshot.tcp_retransmits, Some(7));
    }

    #[test]
    fn a_counter_that_was_reset_counts_from_zero() {
        let with = |bytes| Snapshot {
            nics: [("eth0".to_owned(), Nic { rx_bytes: bytes, ..Nic::default() })].into(),
            ..Snapshot::default()
        };
        assert_eq!(with(150).since(&with(100)).nics["eth0"].rx_bytes, 50);
        assert_eq!(with(20).since(&with(100)).nics["eth0"].rx_bytes, 20);
    }

    #[test]
    fn this_namespace_has_counters() {
        let snapshot = Snapshot::take(&Root::live());
        assert!(snapshot.nics.contains_key("lo"));
        assert!(snapshot.tcp_segments.is_some());
    }
}
