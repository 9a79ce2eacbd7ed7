//! The interface of the bootstrap and, with sockets, of the data: physical over virtual, in a network
//! that all nodes share.

use std::net::IpAddr;

use ncclctl_facts::net::{Address, Interface, Kind, Purpose};
use ncclctl_nccl::ifname::{Candidate, Filter, Request, choose};

use super::Rule;
use crate::draft::{Because, Draft};
use crate::look::Look;
use crate::node::Node;
use crate::result::Transport;

pub(super) const RULE: Rule =
    Rule { id: "interface", about: "NCCL_SOCKET_IFNAME: bootstrap, and data over sockets", plan };

const NAME: &str = "NCCL_SOCKET_IFNAME";

/// Names of interfaces that container networks and hypervisors make for themselves.
const PLUMBING: [&str; 22] = [
    "docker",
    "br-",
    "veth",
    "virbr",
    "cni",
    "flannel",
    "cali",
    "cilium",
    "lxc",
    "lxd",
    "kube-",
    "nodelocal",
    "tunl",
    "vxlan",
    "geneve",
    "weave",
    "podman",
    "dummy",
    "ovs",
    "genev",
    "nerdctl",
    "tailscale",
];

/// What speaks for an interface, best last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    Tunnel,
    Bridge,
    Veth,
    Ipoib,
    Stacked,
    Virtual,
    Physical,
}

fn plan(look: &Look<'_>, draft: &mut Draft) {
    if look.nodes.is_empty() || look.transport == Transport::Tcpx {
        return;
    }
    let chosen: Vec<Option<(&Interface, Network)>> = choose_all(look);
    let mut wanted: Vec<(&Node, &Interface, Network)> = Vec::new();
    for (node, choice) in look.nodes.iter().zip(&chosen) {
        match choice {
            Some((interface, network)) => wanted.push((node, interface, *network)),
            None => {
                draft.leave(
                    NAME,
                    format!(
                        "{} has no running interface with an address that its peers could reach",
                        node.name
                    ),
                );
                return;
            }
        }
    }
    let v6 = wanted.iter().all(|(.., network)| network.ip.is_ipv6());
    if v6 && wanted.iter().any(|(_, i, _)| i.addresses.iter().any(|a| a.ip.is_ipv4())) {
        draft.set(
            "NCCL_SOCKET_FAMILY",
            "AF_INET6",
            Because {
                reason: "the network that all nodes share is IPv6".into(),
                without:
                    "the IPv4 address of the same interface is taken, which peers do not reach"
                        .into(),
                facts: wanted.iter().map(fact).collect(),
            },
        );
    }
    let socket = look.transport == Transport::Socket;
    if wanted.iter().all(|(node, interface, _)| automatic_is(node, interface, socket)) {
        let (_, first, _) = &wanted[0];
        let same = wanted.iter().all(|(_, i, _)| i.name == first.name);
        let what = if same { first.name.as_str() } else { "the right interface" };
        draft.leave(NAME, format!("NCCL takes {what} by itself on every node"));
        return;
    }
    let because = Because {
        reason: reason(&wanted, look),
        without: without(&wanted, socket),
        facts: wanted.iter().map(fact).collect(),
    };
    match common_value(&wanted) {
        Some(value) => draft.set(NAME, value, because),
        None => {
            for (at, (node, interface, network)) in wanted.iter().enumerate() {
                let value = value_for(node, &interface.name);
                let facts = vec![fact(&(*node, *interface, *network))];
                draft.set_on(at, NAME, value, Because { facts, ..because.clone() });
            }
        }
    }
}

/// A network prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    ip: IpAddr,
    prefix: u8,
}

impl Network {
    fn of(address: &Address) -> Self {
        let ip = match address.ip {
            IpAddr::V4(v4) => {
                let bits = u32::from(v4);
                let mask =
                    u32::MAX.checked_shl(32 - u32::from(address.prefix.min(32))).unwrap_or(0);
                IpAddr::V4((bits & mask).into())
            }
            IpAddr::V6(v6) => {
                let bits = u128::from(v6);
                let mask =
                    u128::MAX.checked_shl(128 - u32::from(address.prefix.min(128))).unwrap_or(0);
                IpAddr::V6((bits & mask).into())
            }
        };
        Self { ip, prefix: address.prefix }
    }

    /// One host only: says nothing about who shares it.
    fn is_host(&self) -> bool {
        self.prefix >= if self.ip.is_ipv4() { 31 } else { 127 }
    }
}

fn usable_address(address: &Address) -> bool {
    match address.ip {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local() && !v4.is_unspecified(),
        IpAddr::V6(v6) => !v6.is_loopback() && (v6.segments()[0] & 0xffc0) != 0xfe80,
    }
}

/// How much an interface is worth; `None`: never.
fn worth(interface: &Interface, node: &Node) -> Option<Worth> {
    let name = interface.name.to_ascii_lowercase();
    if !interface.running
        || interface.kind == Kind::Loopback
        || interface.purpose() == Some(Purpose::Management)
        || interface.master.as_ref().is_some_and(|m| {
            node.interface(m).is_some_and(|m| matches!(m.kind, Kind::Bond | Kind::Bridge))
        })
        || !interface.addresses.iter().any(usable_address)
    {
        return None;
    }
    // in a pod eth0 is a veth, and all that there is; on a host names tell what is plumbing
    if PLUMBING.iter().any(|p| name.starts_with(p)) {
        return None;
    }
    Some(match interface.kind {
        Kind::Physical | Kind::Bond => Worth::Physical,
        Kind::Virtual => Worth::Virtual,
        Kind::Vlan | Kind::Macvlan | Kind::Ipvlan => Worth::Stacked,
        Kind::Ipoib => Worth::Ipoib,
        Kind::Veth | Kind::Other => Worth::Veth,
        Kind::Bridge => Worth::Bridge,
        Kind::Tunnel => Worth::Tunnel,
        Kind::Loopback => return None,
    })
}

/// One interface a node, in the best network that all nodes share, else of the default route.
fn choose_all<'a>(look: &Look<'a>) -> Vec<Option<(&'a Interface, Network)>> {
    let candidates: Vec<Vec<(&'a Interface, Worth)>> = look
        .nodes
        .iter()
        .map(|node| node.interfaces.iter().filter_map(|i| Some((i, worth(i, node)?))).collect())
        .collect();
    if let Some(network) = shared(look, &candidates) {
        return candidates
            .iter()
            .map(|all| {
                all.iter()
                    .filter(|(i, _)| i.addresses.iter().any(|a| Network::of(a) == network))
                    .max_by_key(|(i, w)| (*w, speed(i)))
                    .map(|(i, _)| (*i, network))
            })
            .collect();
    }
    look.nodes
        .iter()
        .zip(&candidates)
        .map(|(node, all)| {
            let routed = node.default_route.as_deref();
            let best = all
                .iter()
                .find(|(i, _)| routed == Some(i.name.as_str()))
                .or_else(|| all.iter().max_by_key(|(i, w)| (*w, speed(i))))?;
            let address = best.0.addresses.iter().find(|a| usable_address(a))?;
            Some((best.0, Network::of(address)))
        })
        .collect()
}

fn speed(interface: &Interface) -> u64 {
    interface.line_rate_bits().unwrap_or(0)
}

/// The best network that every node has an interface in.
fn shared(look: &Look<'_>, candidates: &[Vec<(&Interface, Worth)>]) -> Option<Network> {
    // one node alone shares nothing: its default route says where its peers are
    if candidates.len() < 2 {
        return None;
    }
    let first = candidates.first()?;
    let mut networks: Vec<Network> = Vec::new();
    for (interface, _) in first {
        for address in interface.addresses.iter().filter(|a| usable_address(a)) {
            let network = Network::of(address);
            if !network.is_host() && !networks.contains(&network) {
                networks.push(network);
            }
        }
    }
    let score = |network: &Network| {
        let mut least: Option<(Worth, u64)> = None;
        let mut routed = 0;
        for (node, all) in look.nodes.iter().zip(candidates) {
            let mine = all
                .iter()
                .filter(|(i, _)| i.addresses.iter().any(|a| Network::of(a) == *network))
                .max_by_key(|(i, w)| (*w, speed(i)))?;
            routed += usize::from(node.default_route.as_deref() == Some(mine.0.name.as_str()));
            let value = (mine.1, speed(mine.0));
            least = Some(least.map_or(value, |l| l.min(value)));
        }
        // virtual networks last; over sockets the faster wins, else the one of the default route,
        // where the bootstrap does not disturb the data
        let (worth, speed) = least?;
        let fast = if look.transport == Transport::Socket { speed } else { 0 };
        Some((worth, fast, routed, u8::from(network.ip.is_ipv4())))
    };
    networks
        .into_iter()
        .filter_map(|network| Some((score(&network)?, network)))
        // the first of equals
        .rev()
        .max_by_key(|(score, _)| *score)
        .map(|(_, network)| network)
}

fn candidates_of(node: &Node) -> Vec<Candidate> {
    node.interfaces
        .iter()
        .map(|i| Candidate {
            name: i.name.clone(),
            running: i.running,
            addresses: i.addresses.iter().map(|a| (a.ip, a.prefix)).collect(),
        })
        .collect()
}

/// Whether NCCL left alone takes exactly this interface: first for the bootstrap, and over sockets
/// nothing beside it.
fn automatic_is(node: &Node, interface: &Interface, only: bool) -> bool {
    let found = choose(Request::default(), &candidates_of(node)).unwrap_or_default();
    found.first().is_some_and(|c| c.name == interface.name) && (!only || found.len() == 1)
}

/// Whether a value takes exactly this interface on a node.
fn takes_only(value: &str, node: &Node, name: &str) -> bool {
    let Some(filter) = Filter::parse(value) else { return false };
    let mut taken =
        node.interfaces.iter().filter(|i| filter.admits(&i.name)).map(|i| i.name.as_str());
    taken.next() == Some(name) && taken.next().is_none()
}

/// The shortest form that takes exactly this interface: the name, or `=name` where others start
/// with it.
fn value_for(node: &Node, name: &str) -> String {
    if takes_only(name, node, name) { name.to_owned() } else { format!("={name}") }
}

/// One value that is right on every node: the common name, the longest common beginning, or a list of
/// exact names.
fn common_value(wanted: &[(&Node, &Interface, Network)]) -> Option<String> {
    let fits = |value: &str| wanted.iter().all(|(node, i, _)| takes_only(value, node, &i.name));
    let first = &wanted.first()?.1.name;
    let common = wanted.iter().fold(first.as_str(), |prefix, (_, i, _)| {
        let same = prefix.bytes().zip(i.name.bytes()).take_while(|(a, b)| a == b).count();
        &prefix[..same]
    });
    if common.len() > 2 && fits(common) {
        return Some(common.to_owned());
    }
    let mut names: Vec<&str> = wanted.iter().map(|(_, i, _)| i.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let list = format!("={}", names.join(","));
    (names.len() <= 4 && fits(&list)).then_some(list)
}

fn fact((node, interface, _): &(&Node, &Interface, Network)) -> String {
    let address = interface.addresses.iter().find(|a| usable_address(a));
    let address = address.map_or_else(String::new, |a| format!(" {}/{}", a.ip, a.prefix));
    let rate = interface
        .line_rate_bits()
        .map_or_else(String::new, |r| format!(" {} Gb/s", r / 1_000_000_000));
    format!("{}: {}{address} {:?}{rate}", node.name, interface.name, interface.kind).to_string()
}

fn reason(wanted: &[(&Node, &Interface, Network)], look: &Look<'_>) -> String {
    let (node, interface, network) = &wanted[0];
    let shared = wanted.len() > 1 && wanted.iter().all(|(.., n)| n == network);
    let place = if shared {
        format!("{}/{} is the network that all nodes share", network.ip, network.prefix)
    } else if node.default_route.as_deref() == Some(interface.name.as_str()) {
        "the interface of the default route: it reaches the other nodes".to_owned()
    } else {
        "the best interface that is running and has an address".to_owned()
    };
    let use_of = match look.transport {
        Transport::Socket => "it carries bootstrap and data",
        _ => "it carries the bootstrap only, the data goes over RDMA",
    };
    format!("{place}; {use_of}")
}

fn without(wanted: &[(&Node, &Interface, Network)], socket: bool) -> String {
    for (node, interface, _) in wanted {
        let found = choose(Request::default(), &candidates_of(node)).unwrap_or_default();
        let others: Vec<&str> =
            found.iter().map(|c| c.name.as_str()).filter(|n| *n != interface.name).collect();
        match found.first() {
            None => return format!("NCCL finds no interface on {}", node.name),
            Some(first) if first.name != interface.name => {
                return format!("NCCL takes {} on {}", first.name, node.name);
            }
            Some(_) if socket && !others.is_empty() => {
                return format!(
                    "NCCL also sends data over {} on {}, which the peers may not reach",
                    others.join(", "),
                    node.name
                );
            }
            Some(_) => {}
        }
    }
    "NCCL takes another interface".to_owned()
}
