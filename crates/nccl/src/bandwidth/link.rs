//! From line rate to payload.

/// What carries the bytes between nodes, as far as the payload share depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Link {
    /// InfiniBand, MTU 4096; the nominal rate is already net of encoding.
    InfiniBand,
    /// RoCE v2 with an Ethernet MTU in bytes.
    Roce {
        /// MTU of the network device, bytes.
        mtu: u32,
    },
    /// TCP over Ethernet with an MTU in bytes.
    Tcp {
        /// MTU of the network device, bytes.
        mtu: u32,
    },
    /// A cloud's own transport over Ethernet frames of about 9000 bytes (EFA, gVNIC RDMA).
    Cloud,
}

/// Bytes of an Ethernet frame that are no IP packet: preamble 8, header 14, check 4, gap 12.
/// Source: IEEE 802.3.
const ETHERNET: f64 = 38.0;
/// IPv4 and TCP header with time stamps, which Linux sends by default (RFC 791, 9293, 7323).
const TCP_IP: f64 = 52.0;
/// Bytes that a RoCE v2 packet adds to its payload on the wire, Ethernet included.
const ROCE: f64 = 82.0;
/// Bytes that an InfiniBand packet adds to its payload (local route 8, transport 12, checks 6).
const INFINIBAND: f64 = 26.0;

impl Link {
    /// Share of the line rate that can be payload.
    pub fn payload_share(self) -> f64 {
        match self {
            Self::InfiniBand => 4096.0 / (4096.0 + INFINIBAND),
            Self::Roce { mtu } => {
                let payload = roce_mtu(mtu);
                payload / (payload + ROCE)
            }
            Self::Tcp { mtu } => {
                let mtu = f64::from(mtu.clamp(576, 65_536));
                (mtu - TCP_IP) / (mtu + ETHERNET)
            }
            // one header stack per 8 KiB message part: close to RoCE with 4096
            Self::Cloud => 0.98,
        }
    }
}

/// Payload bytes of a RoCE packet: the greatest verbs MTU that fits into the Ethernet MTU with its
/// headers (verbs knows 256, 512, 1024, 2048 and 4096).
fn roce_mtu(ethernet: u32) -> f64 {
    [4096, 2048, 1024, 512].into_iter().find(|m| m + 58 <= ethernet).map_or(256.0, f64::from)
}

/// Payload rate of a link in GB/s.
pub fn line_rate_payload(line_rate_bits: u64, link: Link) -> f64 {
    line_rate_bits as f64 / 8e9 * link.payload_share()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_usual_links() {
        for (link, share) in [
            (Link::InfiniBand, 0.99),
            (Link::Roce { mtu: 4200 }, 0.98),
            (Link::Roce { mtu: 9000 }, 0.98),
            (Link::Roce { mtu: 1500 }, 0.93),
            (Link::Tcp { mtu: 1500 }, 0.94),
            (Link::Tcp { mtu: 9000 }, 0.99),
        ] {
            assert!((link.payload_share() - share).abs() < 0.006, "{link:?}");
        }
    }

    #[test]
    fn gigabit() {
        let rate = line_rate_payload(1_000_000_000, Link::Tcp { mtu: 1500 });
        assert!((rate - 0.1177).abs() < 1e-4, "{rate}");
    }
}
