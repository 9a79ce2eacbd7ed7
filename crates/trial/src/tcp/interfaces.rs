//! The interfaces of this network namespace, until they come from `ncclctl_facts`.

#![allow(unsafe_code, reason = "getifaddrs hands out a linked list of C structures")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ncclctl_facts::net::{Address, Interface};

/// Lists interfaces with their addresses in the kernel's order.
pub(super) fn list() -> Vec<Interface> {
    let mut found: Vec<Interface> = Vec::new();
    let mut head = std::ptr::null_mut();
    // SAFETY: `head` is a valid place for the list, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut head) } != 0 {
        return found;
    }
    let mut at = head;
    while !at.is_null() {
        // SAFETY: `at` is an entry of the list that getifaddrs made and nobody has freed.
        let entry = unsafe { &*at };
        at = entry.ifa_next;
        if entry.ifa_addr.is_null() || entry.ifa_netmask.is_null() {
            continue;
        }
        // SAFETY: the name of an entry is a C string that lives as long as the list.
        let name = unsafe { std::ffi::CStr::from_ptr(entry.ifa_name) };
        let (Some(ip), Some(mask)) = (address(entry.ifa_addr), address(entry.ifa_netmask)) else {
            continue;
        };
        let prefix = match mask {
            IpAddr::V4(m) => m.to_bits().count_ones(),
            IpAddr::V6(m) => m.to_bits().count_ones(),
        };
        let name_text = name.to_string_lossy().into_owned();
        let address = Address { ip, prefix: prefix as u8 };
        match found.iter_mut().find(|i| i.name == name_text) {
            Some(interface) => interface.addresses.push(address),
            None => found.push(Interface {
                // SAFETY: the name is a C string.
                index: unsafe { libc::if_nametoindex(entry.ifa_name) },
                name: name_text,
                running: entry.ifa_flags & libc::IFF_RUNNING as u32 != 0,
                addresses: vec![address],
                ..Interface::default()
            }),
        }
    }
    // SAFETY: the list came from getifaddrs and is not used any more.
    unsafe { libc::freeifaddrs(head) };
    found
}

fn address(raw: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller passes a non-null address of an entry; its family says which it is.
    match i32::from(unsafe { (*raw).sa_family }) {
        libc::AF_INET => {
            // SAFETY: an AF_INET address is a sockaddr_in.
            let four = unsafe { &*raw.cast::<libc::sockaddr_in>() };
            Some(IpAddr::V4(Ipv4Addr::from_bits(u32::from_be(four.sin_addr.s_addr))))
        }
        libc::AF_INET6 => {
            // SAFETY: an AF_INET6 address is a sockaddr_in6.
            let six = unsafe { &*raw.cast::<libc::sockaddr_in6>() };
            Some(IpAddr::V6(Ipv6Addr::from(six.sin6_addr.s6_addr)))
        }
        _ => None,
    }
}
