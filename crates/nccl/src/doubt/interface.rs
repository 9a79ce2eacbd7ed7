//! Lists of interfaces and devices: `NCCL_SOCKET_IFNAME`, `NCCL_OOB_NET_IFNAME`, `NCCL_IB_HCA`, and
//! the names that Gloo and PyTorch's TensorPipe take.

use std::net::IpAddr;
use std::ops::Range;

use super::{Doubt, Part, Setting, Weight, Write};
use crate::ifname::Filter;

/// Lists in NCCL's grammar.
const LISTS: [&str; 3] = ["NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME", "NCCL_IB_HCA"];

/// Lists of whole names.
const WHOLE_NAMES: [&str; 2] = ["GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"];

/// Beginnings of names of interfaces that lead to no other host, with what they are.
const VIRTUAL: [(&str, &str); 13] = [
    ("docker", "Docker's bridge"),
    ("br-", "a Docker bridge"),
    ("veth", "the host's end of a container"),
    ("cni", "the node's pod bridge"),
    ("cbr", "the node's pod bridge"),
    ("virbr", "libvirt's bridge"),
    ("cali", "the host's end of a pod"),
    ("lxc", "the host's end of a pod"),
    ("flannel", "a pod network's tunnel"),
    ("tunl", "a tunnel"),
    ("dummy", "an interface without a wire"),
    ("kube-ipvs", "an interface without a wire"),
    ("nodelocaldns", "an interface without a wire"),
];

fn is_list(name: &str) -> bool {
    LISTS.contains(&name)
}

/// The bytes of an entry.
fn place(value: &str, entry: &str) -> Range<usize> {
    let start = (entry.as_ptr() as usize).wrapping_sub(value.as_ptr() as usize);
    if start <= value.len() { start..start + entry.len() } else { 0..value.len() }
}

/// A name with `*`, `?` or `[`: `socket-ifname-not-found`.
pub fn not_found(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if !is_list(s.name) || s.open() {
        return;
    }
    let Some(filter) = Filter::parse(s.value) else { return };
    let Some(first) = filter.entries.iter().find(|e| e.contains(['*', '?', '[', '+'])) else {
        return;
    };
    let plain: Vec<&str> = filter
        .entries
        .iter()
        .map(|e| e.split(['*', '?', '[', '+']).next().unwrap_or_default().trim())
        .filter(|e| !e.is_empty())
        .collect();
    let marks = format!("{}{}", if filter.exclude { "^" } else { "" }, plain.join(","));
    let other = if s.name == "NCCL_IB_HCA" { "device" } else { "interface" };
    let all = filter.entries.iter().all(|e| e.contains(['*', '?', '[', '+']));
    let effect = match (filter.exclude, all, s.name) {
        (true, ..) => "it excludes nothing",
        (false, true, "NCCL_IB_HCA") => "no device is left, and NCCL takes sockets instead",
        (false, true, _) => "no interface is left: `Bootstrap : no socket interface found`",
        (false, false, _) => "it takes nothing",
    };
    let rule = match s.name {
        "NCCL_IB_HCA" => "hca-list-syntax",
        _ => "socket-ifname-not-found",
    };
    let at = place(s.value, first);
    found.push(
        s.doubt(
            rule,
            if filter.exclude { Weight::Warning } else { Weight::Error },
            format!("{}: no {other} is called {first}", s.name),
            format!(
                "NCCL knows no wildcards, in no release: an entry is the start of a name, and `*` \
                 matches only a real asterisk; {effect}"
            ),
            format!("write {}={marks}", s.name),
        )
        .on(Part::In(at))
        .writing(Write::Value { value: marks, safe: true }),
    );
}

/// Marks, blanks and separators in wrong places: `ifname-list-syntax` and `hca-list-syntax`.
pub fn syntax(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if !is_list(s.name) || s.value.len() < 2 || s.open() {
        return;
    }
    // quotes are a matter of their own
    let mut value = s.value.trim();
    if value.starts_with(['"', '\'']) {
        return;
    }
    let marks = value.len() - value.trim_start_matches(['^', '=', '!']).len();
    let (head, body) = value.split_at(marks);
    let mut problems = Vec::new();
    if head.contains('!') {
        problems.push("exclusion is written `^`");
    }
    if head == "=^" {
        problems.push("`=^` is read as an exact name that begins with `^`; the order is `^=`");
    } else if head.len() > 2 || head == "^^" || head == "==" {
        problems.push("each mark stands once, before the list");
    }
    let separated = body.contains([' ', '\t', ';']);
    if separated {
        problems
            .push("entries are separated by a comma and nothing else; a blank is part of a name");
    }
    if body.split([',', ' ', ';']).any(|e| e.starts_with(['^', '=', '!'])) {
        problems.push("`^` and `=` stand once, before the whole list, and hold for all of it");
    }
    if s.value != value {
        problems.push("blanks around it are part of a name");
    }
    if head == "^" && body.is_empty() {
        return;
    }
    let Some(first) = problems.first() else { return };
    value = body;
    let mut entries: Vec<&str> = Vec::new();
    let mut excluded: Vec<&str> = Vec::new();
    for entry in value.split([',', ' ', '\t', ';']).filter(|e| !e.is_empty()) {
        let bare = entry.trim_start_matches(['^', '=', '!']);
        if bare.is_empty() {
            continue;
        }
        if entry.starts_with(['^', '!']) && !head.contains(['^', '!']) {
            excluded.push(bare);
        } else {
            entries.push(bare);
        }
    }
    let exact = head.contains('=') || value.split(',').any(|e| e.trim().starts_with('='));
    let equals = if exact { "=" } else { "" };
    // a list that takes and excludes at once: what it takes is enough
    let written = if entries.is_empty() {
        format!("^{equals}{}", excluded.join(","))
    } else if head.contains(['^', '!']) {
        format!("^{equals}{}", entries.join(","))
    } else {
        format!("{equals}{}", entries.join(","))
    };
    let rule = if s.name == "NCCL_IB_HCA" { "hca-list-syntax" } else { "ifname-list-syntax" };
    found.push(
        s.doubt(
            rule,
            Weight::Error,
            format!("{} is not read as it looks", s.shown()),
            *first,
            format!("write {}={written}", s.name),
        )
        .writing(Write::Value { value: written, safe: excluded.is_empty() }),
    );
}

/// An address: `socket-ifname-is-address`.
pub fn address(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if !s.name.ends_with("_SOCKET_IFNAME") || s.open() {
        return;
    }
    let bare = s.value.trim_start_matches(['^', '=']);
    let address = bare.split(',').find(|entry| {
        let entry = entry.split('/').next().unwrap_or_default();
        entry.parse::<IpAddr>().is_ok()
            || entry.split_once(':').is_some_and(|(ip, _)| ip.parse::<IpAddr>().is_ok())
    });
    if let Some(address) = address {
        found.push(
            s.doubt(
                "socket-ifname-is-address",
                Weight::Error,
                format!("{} holds an address: {address}", s.name),
                "it takes names of interfaces; no interface is called like that, so none is found",
                format!("write the name of the interface that has {address} (ip -br addr)"),
            )
            .on(Part::In(place(s.value, address))),
        );
    }
}

/// Loopback: `socket-ifname-loopback`.
pub fn loopback(s: Setting<'_>, found: &mut Vec<Doubt>) {
    let list = is_list(s.name) && s.name != "NCCL_IB_HCA" || WHOLE_NAMES.contains(&s.name);
    if !list || s.open() {
        return;
    }
    let Some(filter) = Filter::parse(s.value) else { return };
    let Some(lo) = filter.entries.iter().find(|e| **e == "lo") else { return };
    if filter.exclude {
        return;
    }
    let alone = filter.entries.len() == 1;
    found.push(
        s.doubt(
            "socket-ifname-loopback",
            if alone { Weight::Warning } else { Weight::Error },
            format!("{} takes the loopback interface", s.shown()),
            if alone {
                "ranks on other hosts can not be reached over lo; within one host it works"
            } else {
                "lo stands first in the kernel's list, and the bootstrap takes the first match: ranks \
                 on other hosts are not reached"
            },
            match alone {
                true => format!("take {} out, or name the interface to the other hosts", s.name),
                false => "take lo out of the list".to_owned(),
            },
        )
        .on(Part::In(place(s.value, lo))),
    );
}

/// Bridges, tunnels and the like: `wrong-interface-virtual`.
pub fn virtual_one(s: Setting<'_>, found: &mut Vec<Doubt>) {
    let list = is_list(s.name) && s.name != "NCCL_IB_HCA" || WHOLE_NAMES.contains(&s.name);
    if !list || s.open() {
        return;
    }
    let Some(filter) = Filter::parse(s.value) else { return };
    if filter.exclude {
        return;
    }
    let hit = filter.entries.iter().find_map(|e| {
        VIRTUAL.iter().find(|(start, _)| e.starts_with(start)).map(|(_, what)| (e, what))
    });
    let Some((entry, what)) = hit else { return };
    found.push(
        s.doubt(
            "wrong-interface-virtual",
            Weight::Warning,
            format!("{} names {entry}: {what}", s.name),
            "no other host is reached over it; its address is the same on every node",
            match WHOLE_NAMES.contains(&s.name) {
                true => "write the whole name of the interface to the other hosts".to_owned(),
                false => format!(
                    "write {}=^docker,lo, or the name of the interface to the other hosts",
                    s.name
                ),
            },
        )
        .on(Part::In(place(s.value, entry))),
    );
}

/// A list that takes or leaves more than meant: `ifname-prefix-too-wide`.
pub fn prefix(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if s.name != "NCCL_SOCKET_IFNAME" || s.open() {
        return;
    }
    let Some(filter) = Filter::parse(s.value) else { return };
    if filter.exclude || filter.exact || s.value.contains(['*', ' ']) {
        return;
    }
    // `e` or `en` is the start of every wired interface's name
    let Some(short) = filter.entries.iter().find(|e| e.len() <= 2 && **e != "lo" && **e != "ib")
    else {
        return;
    };
    found.push(
        s.doubt(
            "ifname-prefix-too-wide",
            Weight::Info,
            format!("{}: {short} takes every interface whose name begins so", s.name),
            "without `=` an entry is a prefix; the socket transport uses all matches, the bootstrap \
             the first one, and hosts may choose different networks",
            "write more of the name, or the exact form NCCL_SOCKET_IFNAME==NAME",
        )
        .on(Part::In(place(s.value, short))),
    );
}

/// NCCL's grammar for Gloo: `gloo-ifname-syntax`.
pub fn gloo(s: Setting<'_>, found: &mut Vec<Doubt>) {
    if !WHOLE_NAMES.contains(&s.name) || s.value.is_empty() || s.open() {
        return;
    }
    let marked = s.value.starts_with(['^', '=', '!']) || s.value.contains(['*', '?']);
    // no kernel calls an interface so: all of these are followed by a number or a path
    const STEMS: [&str; 9] = ["eth", "en", "ens", "eno", "enp", "ib", "bond", "ibp", "e"];
    let stem = s.value.split(',').find(|e| STEMS.contains(e));
    let cause = match (marked, stem) {
        (true, _) => {
            "Gloo takes whole names; `^`, `=` and `*` are no part of its grammar: \
                      `Unable to find address for`"
        }
        (false, Some(_)) => {
            "Gloo takes whole names, not the start of one as NCCL does: \
                             `Unable to find address for`"
        }
        _ => return,
    };
    let bare = s.value.trim_start_matches(['=', '!']);
    let doubt = s.doubt(
        "gloo-ifname-syntax",
        Weight::Error,
        s.shown(),
        cause,
        format!(
            "write the whole name of one interface, like {}=eth0, or take it out: Gloo then takes \
             the one that the host name leads to",
            s.name
        ),
    );
    let plain = !bare.contains(['^', '*', '?', '=']) && stem.is_none();
    found.push(match plain {
        true => doubt.writing(Write::Value { value: bare.to_owned(), safe: true }),
        false => doubt,
    });
}

#[cfg(test)]
mod tests {
    use super::super::{Part, Write, doubts_of};

    fn of(name: &str, value: &str) -> Vec<String> {
        doubts_of(&[(name, value)], None)
            .into_iter()
            .map(|d| {
                let write = match d.write {
                    Some(Write::Value { value, safe }) => format!(" -> {value} {safe}"),
                    _ => String::new(),
                };
                let at = match d.part {
                    Part::In(range) => format!(" `{}`", &value[range]),
                    _ => String::new(),
                };
                format!("{}{at}{write}", d.rule)
            })
            .collect()
    }

    #[test]
    fn lists_of_interfaces() {
        for (value, want) in [
            ("eno*,eth*,ib*,enp*", "socket-ifname-not-found `eno*` -> eno,eth,ib,enp true"),
            ("^docker*,lo", "socket-ifname-not-found `docker*` -> ^docker,lo true"),
            ("eth0, eth1", "ifname-list-syntax -> eth0,eth1 true"),
            ("eth0;eth1", "ifname-list-syntax -> eth0,eth1 true"),
            ("!docker0", "ifname-list-syntax -> ^docker0 true"),
            ("=^eth0", "ifname-list-syntax -> ^=eth0 true"),
            ("^lo,^docker0", "ifname-list-syntax -> ^lo,docker0 true"),
            ("eth0,^docker0", "ifname-list-syntax -> eth0 false"),
            ("=eth0,=eth1", "ifname-list-syntax -> =eth0,eth1 true"),
            ("10.0.0.0/24", "socket-ifname-is-address `10.0.0.0/24`"),
            ("lo", "socket-ifname-loopback `lo`"),
            ("eth0,lo", "socket-ifname-loopback `lo`"),
            ("docker0", "wrong-interface-virtual `docker0`"),
            ("en", "ifname-prefix-too-wide `en`"),
            ("", "env-empty-value"),
        ] {
            assert_eq!(of("NCCL_SOCKET_IFNAME", value), [want], "{value}");
        }
        for value in [
            "eth0",
            "eth",
            "=eth0",
            "^docker,lo",
            "^=docker0,lo",
            "ib0,eth0",
            "bond0",
            "^lo",
            "eth0:50000",
            "${IFACE}",
            "enp1s0f1np1",
            "ib",
        ] {
            assert_eq!(of("NCCL_SOCKET_IFNAME", value), [""; 0], "{value}");
        }
    }

    #[test]
    fn lists_of_devices() {
        assert_eq!(of("NCCL_IB_HCA", "mlx5_*"), ["hca-list-syntax `mlx5_*` -> mlx5_ true"]);
        assert_eq!(
            of("NCCL_IB_HCA", "=mlx5_0:1, mlx5_3:1"),
            ["hca-list-syntax -> =mlx5_0:1,mlx5_3:1 true"]
        );
        for value in ["mlx5", "=mlx5_0:1,mlx5_1:1", "^mlx5_bond_0", "=mlx5_0::0:1", "ibp"] {
            assert_eq!(of("NCCL_IB_HCA", value), [""; 0], "{value}");
        }
    }

    #[test]
    fn gloo_takes_whole_names() {
        assert_eq!(of("GLOO_SOCKET_IFNAME", "=eth0"), ["gloo-ifname-syntax -> eth0 true"]);
        assert_eq!(of("GLOO_SOCKET_IFNAME", "^lo,docker0"), ["gloo-ifname-syntax"]);
        assert_eq!(of("GLOO_SOCKET_IFNAME", "eth"), ["gloo-ifname-syntax"]);
        assert_eq!(of("GLOO_SOCKET_IFNAME", "eth0,eth1"), [""; 0]);
        assert_eq!(of("TP_SOCKET_IFNAME", "eth0"), [""; 0]);
    }
}
