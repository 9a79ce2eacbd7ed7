//! Ports that firewalls and network policies must let through.

use ncclctl_nccl::version::Version;

use super::Rule;
use crate::draft::Draft;
use crate::look::Look;
use crate::result::Transport;

pub(super) const RULE: Rule = Rule { id: "ports", about: "ports between the nodes", plan };

/// Kernel's default of `net.ipv4.ip_local_port_range`.
const EPHEMERAL: (u16, u16) = (32768, 60999);

/// RAS listens from this release on.
const RAS: Version = Version::new(2, 24, 3);

fn plan(look: &Look<'_>, draft: &mut Draft) {
    let ranges = look.nodes.iter().map(|n| n.ports.unwrap_or(EPHEMERAL));
    let range = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or(EPHEMERAL);
    let data = match look.transport {
        Transport::Socket => "bootstrap, RAS mesh and data",
        _ => "bootstrap and RAS mesh",
    };
    draft.port("tcp", range, data, false);
    if look.transport == Transport::Roce {
        draft.port("udp", (4791, 4791), "RoCE v2", false);
    }
    if look.nccl >= RAS {
        draft.port("tcp", (28028, 28028), "RAS, for its clients", true);
    }
}
