//! `wrong-interface-virtual`: a bridge, tunnel or host-side veth carries the data beside a real NIC.
//!
//! ## What
//!
//! A rank chose docker0, virbr0, a CNI bridge, a tunnel or the host's end of a container's veth,
//! while the same host has a NIC that runs and has an address.
//!
//! ## Why
//!
//! NCCL's automatic choice takes the first group of names with a hit, and a list such as `^lo` lets
//! every container bridge through. Such interfaces lead nowhere, or through software at a fraction
//! of the NIC's rate; two hosts with the same docker0 subnet even connect to themselves.
//!
//! ## Example
//!
//! `h2 uses docker0 (bridge), while eth0 is there`
//!
//! ## Remedy
//!
//! Name the NIC: `NCCL_SOCKET_IFNAME==eth0`, or exclude: `NCCL_SOCKET_IFNAME=^lo,docker,veth,br-,cni`.
//!
//! ## Source
//!
//! NCCL 2.30.7 `src/misc/socket.cc`: automatic order `ib`, then all but docker, lo (and virbr from
//! 2.28.3), then docker, then lo.

use ncclctl_facts::net::{Interface, Kind};

use crate::documents::Documents;
use crate::evidence::{ChosenInterface, Evidence};
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::incident::is_virtual_interface;
use crate::paths::host_name;
use crate::rule::Rule;
use ncclctl_nccl::doubt::interface;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    incident: Some(incident),
    documents: Some(documents),
    ..Rule::new(
        "wrong-interface-virtual",
        Severity::Error,
        "a bridge, tunnel or container link carries the data beside a real NIC",
    )
};

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    set.doubts(&RULE, &[interface::virtual_one], findings);
}

/// Names of the host's own ends of container links, by the tools that make them.
const HOST_ENDS: &[&str] = &["veth", "cali", "lxc", "cilium", "vnet", "tap"];
/// Names of bridges and tunnels that lead to containers of this host or through software.
const SOFTWARE: &[&str] = &[
    "docker",
    "virbr",
    "br-",
    "cni",
    "flannel",
    "vxlan",
    "tun",
    "wg",
    "tailscale",
    "kube-",
    "nerdctl",
];

fn starts(name: &str, with: &[&str]) -> bool {
    with.iter().any(|p| name.starts_with(p))
}

/// Whether this interface is one that should not carry data where a better one exists.
fn suspicious(i: &Interface, all: &[Interface]) -> bool {
    // a bridge over a NIC is how hypervisors and some sites give hosts their address
    let over_nic = all.iter().any(|o| {
        o.master.as_deref() == Some(i.name.as_str())
            && matches!(o.kind, Kind::Physical | Kind::Bond | Kind::Virtual)
    });
    match i.kind {
        Kind::Bridge => !over_nic,
        Kind::Tunnel => true,
        Kind::Veth => starts(&i.name, HOST_ENDS),
        Kind::Other => starts(&i.name, SOFTWARE) || starts(&i.name, HOST_ENDS),
        _ => false,
    }
}

/// An interface that could carry the data instead.
fn real(i: &Interface) -> bool {
    let kind = matches!(
        i.kind,
        Kind::Physical
            | Kind::Bond
            | Kind::Virtual
            | Kind::Ipoib
            | Kind::Vlan
            | Kind::Macvlan
            | Kind::Ipvlan
    ) || (i.kind == Kind::Veth && !starts(&i.name, HOST_ENDS));
    kind && i.running && i.addresses.iter().any(|a| super::usable(&a.ip))
}

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    for (index, host) in evidence.hosts.iter().enumerate() {
        let mut chosen: Vec<(&ChosenInterface, &Interface)> = Vec::new();
        for (i, own) in super::chosen_nics(evidence).into_iter().filter(|(h, _)| *h == index) {
            let choice = evidence.ranks.iter().filter(|r| r.host == i).flat_map(|r| &r.interfaces);
            if suspicious(own, &host.interfaces)
                && let Some(c) = choice.into_iter().find(|c| c.name == own.name)
            {
                chosen.push((c, own));
            }
        }
        let (Some((first, own)), Some(better)) =
            (chosen.first(), host.interfaces.iter().find(|i| real(i)))
        else {
            continue;
        };
        let name = host_name(evidence, index);
        let kind = format!("{:?}", own.kind).to_lowercase();
        let more = match chosen.len() {
            1 => String::new(),
            n => format!(" and {} more like it", n - 1),
        };
        let mut exhibits: Vec<Exhibit> = chosen
            .iter()
            .map(|(c, _)| Exhibit::nic(&c.name, &name, format!("{} by {}", c.address, c.rule)))
            .collect();
        exhibits.push(Exhibit::nic(&better.name, &name, "runs and has an address"));
        let finding = RULE.found(
            Confidence::Certain,
            format!("{name} uses {} ({kind}){more}, while {} is there", own.name, better.name),
            format!("chosen by {}; names are prefixes, and this one was let through", first.rule),
            format!("NCCL_SOCKET_IFNAME=={}", better.name),
            exhibits,
        );
        findings.push(super::between_hosts(evidence, finding));
    }
}

fn incident(incident: &Incident, findings: &mut Vec<Finding>) {
    if incident.finished() {
        return;
    }
    let bad = incident.log.processes.iter().find(|p| {
        p.bootstrap.value.first().is_some_and(|b| {
            // a tunnel's link-local address is the more telling cause
            let tunnel = b.interface.starts_with("ip6tnl") || b.interface.starts_with("tun");
            is_virtual_interface(&b.interface)
                && !(tunnel && b.ip.is_some_and(ncclctl_nccl::log::address::is_link_local))
        })
    });
    let Some(p) = bad else { return };
    let interface = &p.bootstrap.value[0].interface;
    let other = incident
        .log
        .processes
        .iter()
        .filter(|o| o.host != p.host)
        .find_map(|o| o.bootstrap.value.first());
    let hosts = incident.log.hosts().len();
    // one host alone can talk to itself over its bridge
    if hosts < 2 && incident.socket_failures().is_empty() {
        return;
    }
    let beside = other.map_or(String::new(), |o| format!(", the other host {}", o.interface));
    findings.push(RULE.found(
        Confidence::Certain,
        format!("{} chose {interface}{beside}", p.host),
        "this is the host's end of a container's link, a bridge or a tunnel: other hosts can not \
         reach its address, so set-up waits for ever or is refused",
        "set NCCL_SOCKET_IFNAME to the routable interface on that host, or exclude these: \
         NCCL_SOCKET_IFNAME=^veth,docker,br-,cni,cali,lo",
        incident.exhibits([&p.bootstrap.at, &p.sockets.at], 2),
    ));
}
