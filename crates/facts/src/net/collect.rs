//! Collecting interfaces: links and addresses by netlink, so that what is told is true of the network
//! namespace that this process is in; sysfs only adds what it tells of the same interface.

use std::collections::BTreeMap;
use std::io;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoBond, InfoData, InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
    State,
};

use super::{Address, Interface, Kind};
use crate::netlink::ask;
use crate::root::Root;

/// Drivers whose devices share their rate with others, so that what they report proves nothing.
const SHARED_DRIVERS: [&str; 7] =
    ["virtio_net", "ena", "gve", "hv_netvsc", "mana", "vmxnet3", "xen-netfront"];

/// All interfaces of this network namespace, in the kernel's order.
pub fn interfaces(root: &Root) -> io::Result<Vec<Interface>> {
    let links = ask(RouteNetlinkMessage::GetLink(LinkMessage::default()), true)?;
    let addresses = ask(RouteNetlinkMessage::GetAddress(AddressMessage::default()), true)?;
    let mut found: Vec<(Interface, Option<u32>)> = links
        .into_iter()
        .filter_map(|message| match message {
            RouteNetlinkMessage::NewLink(link) => Some(read_link(root, &link)),
            _ => None,
        })
        .collect();
    for message in addresses {
        let RouteNetlinkMessage::NewAddress(message) = message else { continue };
        let Some(address) = read_address(&message) else { continue };
        if let Some((interface, _)) =
            found.iter_mut().find(|(interface, _)| interface.index == message.header.index)
        {
            interface.addresses.push(address);
        }
    }
    let names: BTreeMap<u32, String> =
        found.iter().map(|(interface, _)| (interface.index, interface.name.clone())).collect();
    Ok(found
        .into_iter()
        .map(|(mut interface, master)| {
            interface.master = master.and_then(|index| names.get(&index).cloned());
            interface
        })
        .collect())
}

fn read_link(root: &Root, link: &LinkMessage) -> (Interface, Option<u32>) {
    let mut interface = Interface { index: link.header.index, ..Interface::default() };
    let mut master = None;
    let mut kind = None;
    let mut oper_up = true;
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => interface.name.clone_from(name),
            LinkAttribute::Mtu(mtu) => interface.mtu = *mtu,
            LinkAttribute::Controller(index) => master = Some(*index),
            LinkAttribute::ParentDevName(name) => interface.pci = Some(name.clone()),
            LinkAttribute::OperState(state) => {
                // loopback and tunnels say Unknown while they work
                oper_up = matches!(state, State::Up | State::Unknown | State::Dormant);
            }
            LinkAttribute::LinkInfo(infos) => {
                for info in infos {
                    match info {
                        LinkInfo::Kind(k) => kind = Some(k.clone()),
                        LinkInfo::Data(InfoData::Bond(all)) => {
                            interface.bond_mode = all.iter().find_map(|one| match one {
                                InfoBond::Mode(mode) => Some(mode.to_string()),
                                _ => None,
                            });
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let flags = link.header.flags;
    interface.running =
        flags.contains(LinkFlags::Up) && flags.contains(LinkFlags::Running) && oper_up;
    add_sysfs(root, &mut interface, hardware_address(link).as_deref());
    interface.kind = match kind {
        None if flags.contains(LinkFlags::Loopback) => Kind::Loopback,
        None if link.header.link_layer_type == LinkLayerType::Infiniband => Kind::Ipoib,
        None => match &interface.driver {
            Some(driver) if SHARED_DRIVERS.contains(&driver.as_str()) => Kind::Virtual,
            Some(_) if interface.function_of.is_some() => Kind::Virtual,
            Some(_) => Kind::Physical,
            None if interface.pci.is_some() => Kind::Physical,
            None => Kind::Other,
        },
        Some(kind) => match kind {
            InfoKind::Bond => Kind::Bond,
            InfoKind::Bridge => Kind::Bridge,
            InfoKind::Veth | InfoKind::Netkit => Kind::Veth,
            InfoKind::MacVlan | InfoKind::MacVtap => Kind::Macvlan,
            InfoKind::IpVlan | InfoKind::IpVtap => Kind::Ipvlan,
            InfoKind::Vlan => Kind::Vlan,
            InfoKind::Ipoib => Kind::Ipoib,
            InfoKind::Tun
            | InfoKind::Vxlan
            | InfoKind::GreTap
            | InfoKind::GreTap6
            | InfoKind::IpIp
            | InfoKind::Ip6Tnl
            | InfoKind::SitTun
            | InfoKind::GreTun
            | InfoKind::GreTun6
            | InfoKind::Vti
            | InfoKind::Vti6
            | InfoKind::Geneve
            | InfoKind::Wireguard => Kind::Tunnel,
            _ => Kind::Other,
        },
    };
    // drivers that call themselves Unknown in duplex leave it so; virtual ones report nonsense
    if !matches!(interface.kind, Kind::Physical | Kind::Bond | Kind::Vlan) {
        interface.half_duplex = false;
    }
    (interface, master)
}

/// Adds what sysfs tells, where its entry is this very interface: /sys shows the namespace it was
/// mounted in, which need not be ours.
fn add_sysfs(root: &Root, interface: &mut Interface, address: Option<&str>) {
    let base = format!("/sys/class/net/{}", interface.name);
    // name and index of a pod's eth0 may be those of the host's by chance, the hardware address is not
    if root.number::<u32>(&format!("{base}/ifindex")) != Some(interface.index)
        || root.line(&format!("{base}/address")).as_deref() != address
    {
        return;
    }
    interface.driver = root.link_name(&format!("{base}/device/driver"));
    if interface.pci.is_none() {
        interface.pci = root.link_name(&format!("{base}/device")).filter(|name| name.contains(':'));
    }
    interface.function_of = root.link_name(&format!("{base}/device/physfn"));
    interface.functions = root.number(&format!("{base}/device/sriov_numvfs"));
    interface.numa = root.number(&format!("{base}/device/numa_node"));
    interface.reported_mbits =
        root.number::<i64>(&format!("{base}/speed")).and_then(|speed| u64::try_from(speed).ok());
    interface.half_duplex = root.line(&format!("{base}/duplex")).as_deref() == Some("half");
}

/// Hardware address as sysfs writes it.
fn hardware_address(link: &LinkMessage) -> Option<String> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Address(bytes) if !bytes.is_empty() => {
            let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            Some(pairs.join(":"))
        }
        _ => None,
    })
}

/// An address that can be bound: one whose uniqueness is still being checked, or was refuted, can not.
fn read_address(message: &AddressMessage) -> Option<Address> {
    if message
        .header
        .flags
        .intersects(AddressHeaderFlags::Tentative | AddressHeaderFlags::Dadfailed)
        && !message.header.flags.contains(AddressHeaderFlags::Optimistic)
    {
        return None;
    }
    let mut address = None;
    let mut local = None;
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Address(ip) => address = Some(*ip),
            AddressAttribute::Local(ip) => local = Some(*ip),
            _ => {}
        }
    }
    // on a point-to-point link IFA_ADDRESS is the peer and IFA_LOCAL is ours
    Some(Address { ip: local.or(address)?, prefix: message.header.prefix_len })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_of_this_machine_is_there() {
        let all = interfaces(&Root::live()).unwrap();
        let lo = all.iter().find(|i| i.name == "lo").unwrap();
        assert_eq!(lo.kind, Kind::Loopback);
        assert!(lo.line_rate_bits().is_none());
    }

    #[test]
    fn a_tree_of_another_namespace_says_nothing_of_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join("sys/class/net/eth0").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("ifindex", "2\n");
        write("address", "02:00:00:00:00:01\n");
        write("speed", "100000\n");
        let root = Root::captured(folder.path(), BTreeMap::new());
        let mut eth0 = Interface { index: 2, name: "eth0".to_owned(), ..Interface::default() };
        add_sysfs(&root, &mut eth0, Some("02:00:00:00:00:99"));
        assert_eq!(eth0.reported_mbits, None);
        add_sysfs(&root, &mut eth0, Some("02:00:00:00:00:01"));
        assert_eq!(eth0.reported_mbits, Some(100_000));
    }
}
