//! Which interfaces NCCL's socket code uses: `NCCL_SOCKET_IFNAME`, `NCCL_SOCKET_FAMILY`, the
//! subnet of `NCCL_COMM_ID`, else the automatic order.
//!
//! Source: NCCL 2.30.7 `misc/socket.cc` (`ncclFindInterfaces`, `findInterfaces`,
//! `findInterfaceMatchSubnet`) and `misc/utils.cc` (`parseStringList`, `matchIfList`).
//! Version notes: until 2.28.2 an interface that is not running was a candidate too, and `virbr*`
//! had no group of its own.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Interfaces that the socket code keeps, and entries that the list may have (`MAX_IFS`).
pub const MAX_INTERFACES: usize = 16;

/// Automatic groups after `ib*` and the subnet of `NCCL_COMM_ID`, first hit wins.
const GROUPS: [&str; 4] = ["^docker,lo,virbr", "docker", "lo", "virbr"];

/// An interface of this network namespace, as far as the choice needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Name.
    pub name: String,
    /// Up and with carrier.
    pub running: bool,
    /// Addresses with prefix lengths, in the kernel's order.
    pub addresses: Vec<(IpAddr, u8)>,
}

/// The settings that take part; `None` is unset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request<'a> {
    /// `NCCL_SOCKET_IFNAME`.
    pub ifname: Option<&'a str>,
    /// `NCCL_SOCKET_FAMILY`.
    pub family: Option<&'a str>,
    /// `NCCL_COMM_ID`.
    pub comm_id: Option<&'a str>,
}

/// An interface that NCCL would use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Name.
    pub name: String,
    /// The one address of it that is used.
    pub address: IpAddr,
    /// The rule that chose it, in words.
    pub rule: String,
}

/// A value of `NCCL_SOCKET_IFNAME`, read as NCCL reads it. Nothing is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter<'a> {
    /// `^`: everything but the entries.
    pub exclude: bool,
    /// `=`: whole names, not prefixes.
    pub exact: bool,
    /// Names or prefixes; a `:port` behind a name is dropped.
    pub entries: Vec<&'a str>,
}

/// No interface can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}{}{}", Hint(.hint.as_deref()), Here(.here))]
pub struct NoInterface {
    /// What was asked and did not match.
    pub why: String,
    /// What to write instead, where it can be told.
    pub hint: Option<String>,
    /// What is there, like `eth0 10.0.0.1`.
    pub here: Vec<String>,
}

struct Hint<'a>(Option<&'a str>);
struct Here<'a>(&'a [String]);

impl<'a> Filter<'a> {
    /// Reads a value; `None` where NCCL treats it as unset (at most one character).
    pub fn parse(value: &'a str) -> Option<Self> {
        if value.len() <= 1 {
            return None;
        }
        let rest = value.strip_prefix('^');
        let (exclude, value) = (rest.is_some(), rest.unwrap_or(value));
        let rest = value.strip_prefix('=');
        let (exact, value) = (rest.is_some(), rest.unwrap_or(value));
        let entries = value
            .split(',')
            .map(|entry| entry.split(':').next().unwrap_or_default())
            .filter(|name| !name.is_empty())
            .take(MAX_INTERFACES)
            .collect();
        Some(Self { exclude, exact, entries })
    }

    /// Whether an interface of this name is a candidate. An empty list matches everything.
    pub fn admits(&self, name: &str) -> bool {
        let listed = self.entries.is_empty()
            || self
                .entries
                .iter()
                .any(|e| if self.exact { name == *e } else { name.starts_with(e) });
        listed != self.exclude
    }
}

/// Chooses as NCCL does: the first group with a hit is used whole.
pub fn choose(
    request: Request<'_>,
    interfaces: &[Candidate],
) -> Result<Vec<Choice>, Box<NoInterface>> {
    let family = match request.family {
        Some("AF_INET") => Some("AF_INET"),
        Some("AF_INET6") => Some("AF_INET6"),
        _ => None,
    };
    let usable = usable(interfaces, family);
    if let Some(value) = request.ifname
        && let Some(filter) = Filter::parse(value)
    {
        let rule = format!("NCCL_SOCKET_IFNAME={value}");
        let hits = take(&usable, &rule, |name, _| filter.admits(name));
        return if hits.is_empty() {
            Err(Box::new(explain(&filter, &rule, interfaces, &usable, family)))
        } else {
            Ok(hits)
        };
    }
    let prefix = |p: &str, usable: &[Usable<'_>], rule: &str| {
        let filter = Filter::parse(p);
        take(usable, rule, |name, _| filter.as_ref().is_some_and(|f| f.admits(name)))
    };
    let hits = prefix("ib", &usable, "automatic: names that start with ib come first");
    if !hits.is_empty() {
        return Ok(hits);
    }
    if let Some(root) = request.comm_id.and_then(comm_id_address) {
        let rule = format!("automatic: in the subnet of NCCL_COMM_ID ({root})");
        let mut hits = take(&usable, &rule, |_, (ip, bits)| same_subnet(*ip, root, *bits));
        // the match by subnet looks for one interface only
        hits.truncate(1);
        if hits.is_empty() {
            return Err(Box::new(NoInterface {
                why: format!("no interface is in the subnet of NCCL_COMM_ID ({root})"),
                hint: Some("set NCCL_SOCKET_IFNAME to the interface that reaches it".to_owned()),
                here: here(&usable),
            }));
        }
        return Ok(hits);
    }
    let rules = [
        "automatic: all but docker, lo and virbr",
        "automatic: nothing but docker was left",
        "automatic: nothing but the loopback was left",
        "automatic: nothing but virbr was left",
    ];
    for (group, rule) in GROUPS.into_iter().zip(rules) {
        let hits = prefix(group, &usable, rule);
        if !hits.is_empty() {
            return Ok(hits);
        }
    }
    Err(Box::new(NoInterface {
        why: match family {
            Some(family) => {
                format!("no running interface has an address of NCCL_SOCKET_FAMILY={family}")
            }
            None => "no running interface has an IP address".to_owned(),
        },
        hint: None,
        here: here_all(interfaces),
    }))
}

type Usable<'a> = (&'a str, (IpAddr, u8));

/// Every address that may be used, in NCCL's order (getifaddrs: all IPv4, then all IPv6), one an
/// interface.
fn usable<'a>(interfaces: &'a [Candidate], family: Option<&str>) -> Vec<Usable<'a>> {
    let mut found: Vec<Usable<'a>> = Vec::new();
    for six in [false, true] {
        if family.is_some_and(|f| (f == "AF_INET6") != six) {
            continue;
        }
        for interface in interfaces.iter().filter(|i| i.running) {
            let address = interface.addresses.iter().find(|(ip, _)| {
                ip.is_ipv6() == six && *ip != IpAddr::V6(std::net::Ipv6Addr::LOCALHOST)
            });
            if let Some(address) = address
                && !found.iter().any(|(name, _)| *name == interface.name)
            {
                found.push((&interface.name, *address));
            }
        }
    }
    found
}

fn take(
    usable: &[Usable<'_>],
    rule: &str,
    admits: impl Fn(&str, &(IpAddr, u8)) -> bool,
) -> Vec<Choice> {
    usable
        .iter()
        .filter(|(name, address)| admits(name, address))
        .take(MAX_INTERFACES)
        .map(|(name, (address, _))| Choice {
            name: (*name).to_owned(),
            address: *address,
            rule: rule.to_owned(),
        })
        .collect()
}

/// The address of `ip:port`, `[ip]:port` or `[ip%if]:port`; a host name is not resolved here.
fn comm_id_address(value: &str) -> Option<IpAddr> {
    if let Ok(address) = value.parse::<SocketAddr>() {
        return Some(address.ip());
    }
    let (host, _) = value.strip_prefix('[')?.split_once(']')?;
    host.split('%').next()?.parse().ok()
}

fn same_subnet(a: IpAddr, b: IpAddr, bits: u8) -> bool {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            a.to_bits() & mask == b.to_bits() & mask
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            a.to_bits() & mask == b.to_bits() & mask
        }
        _ => false,
    }
}

fn explain(
    filter: &Filter<'_>,
    rule: &str,
    interfaces: &[Candidate],
    usable: &[Usable<'_>],
    family: Option<&str>,
) -> NoInterface {
    let named: Vec<_> = interfaces.iter().filter(|i| filter.admits(&i.name)).collect();
    let here = if usable.is_empty() { here_all(interfaces) } else { here(usable) };
    let why = |text: &str| format!("{rule} matches no interface: {text}");
    if let Some(first) = named.first() {
        let text = if !first.running {
            format!("{} is not running (down or no carrier)", first.name)
        } else if let Some(family) = family {
            format!("{} has no address of NCCL_SOCKET_FAMILY={family}", first.name)
        } else {
            format!("{} has no IP address", first.name)
        };
        return NoInterface { why: why(&text), hint: None, here };
    }
    if filter.exclude {
        let text = if filter.entries.is_empty() {
            "an empty exclusion excludes everything"
        } else {
            "every interface is excluded"
        };
        return NoInterface { why: why(text), hint: None, here };
    }
    let list = |parts: &[&str]| parts.join(",");
    let hits = |parts: &[&str]| -> Vec<&str> {
        usable
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| parts.iter().any(|p| !p.is_empty() && name.starts_with(p)))
            .collect()
    };
    if filter.entries.iter().any(|e| e.contains(['*', '?', '[', '.', '+'])) {
        let stems: Vec<&str> = filter
            .entries
            .iter()
            .map(|e| e.split(['*', '?', '[', '.', '+']).next().unwrap_or_default())
            .filter(|stem| !stem.is_empty())
            .collect();
        let would = hits(&stems);
        let hint = (!would.is_empty())
            .then(|| format!("write {} (matches {})", list(&stems), would.join(", ")));
        return NoInterface { why: why("NCCL has no wildcards, a name is a prefix"), hint, here };
    }
    if filter.entries.iter().any(|e| e.trim() != *e) {
        let trimmed: Vec<&str> = filter.entries.iter().map(|e| e.trim()).collect();
        let would = hits(&trimmed);
        let hint = (!would.is_empty()).then(|| {
            format!("write {} without spaces (matches {})", list(&trimmed), would.join(", "))
        });
        return NoInterface { why: why("spaces are part of the name"), hint, here };
    }
    if let Some(inner) = filter.entries.iter().find(|e| e.starts_with(['^', '='])) {
        let text = format!("`{inner}` is taken as a name, ^ and = stand once, before the list");
        return NoInterface { why: why(&text), hint: None, here };
    }
    if filter.exact {
        let would = hits(&filter.entries);
        if !would.is_empty() {
            return NoInterface {
                why: why("`=` asks for whole names"),
                hint: Some(format!(
                    "without `=`, {} matches {}",
                    list(&filter.entries),
                    would.join(", ")
                )),
                here,
            };
        }
    }
    NoInterface { why: why("no name starts so"), hint: None, here }
}

fn here(usable: &[Usable<'_>]) -> Vec<String> {
    usable.iter().map(|(name, (ip, _))| format!("{name} {ip}")).collect()
}

fn here_all(interfaces: &[Candidate]) -> Vec<String> {
    interfaces
        .iter()
        .map(|i| {
            let state = if i.running { "" } else { " (not running)" };
            match i.addresses.first() {
                Some((ip, _)) => format!("{} {ip}{state}", i.name),
                None => format!("{} without address{state}", i.name),
            }
        })
        .collect()
}

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl fmt::Display for Here<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            f.write_str("; there is no interface at all")
        } else {
            write!(f, "; here: {}", self.0.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn host(list: &[(&str, &[&str])]) -> Vec<Candidate> {
        list.iter()
            .map(|(name, addresses)| Candidate {
                name: name.trim_start_matches('!').to_owned(),
                running: !name.starts_with('!'),
                addresses: addresses
                    .iter()
                    .map(|a| {
                        let (ip, bits) = a.split_once('/').unwrap();
                        (ip.parse().unwrap(), bits.parse().unwrap())
                    })
                    .collect(),
            })
            .collect()
    }

    fn node() -> Vec<Candidate> {
        host(&[
            ("lo", &["127.0.0.1/8", "::1/128"]),
            ("eth0", &["10.0.0.5/24", "fe80::5/64"]),
            ("eth1", &["10.1.0.5/24"]),
            ("eth10", &["fd00::5/64"]),
            ("docker0", &["172.17.0.1/16"]),
            ("!eth2", &["10.2.0.5/24"]),
        ])
    }

    fn names(request: Request<'_>, interfaces: &[Candidate]) -> String {
        match choose(request, interfaces) {
            Ok(chosen) => chosen.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        }
    }

    fn by_name(value: &str) -> String {
        names(Request { ifname: Some(value), ..Request::default() }, &node())
    }

    #[test]
    fn grammar() {
        assert_eq!(by_name("eth"), "eth0 eth1 eth10");
        assert_eq!(by_name("=eth1"), "eth1");
        assert_eq!(by_name("eth1"), "eth1 eth10");
        assert_eq!(by_name("^eth"), "lo docker0");
        assert_eq!(by_name("^=eth1"), "lo eth0 docker0 eth10");
        assert_eq!(by_name("^docker,lo"), "eth0 eth1 eth10");
        assert_eq!(by_name("eth0:50000,docker"), "eth0 docker0");
        assert_eq!(by_name(",,eth0,"), "eth0");
        // read as unset: automatic
        assert_eq!(by_name("e"), "eth0 eth1 eth10");
        assert_eq!(by_name("^"), "eth0 eth1 eth10");
        // a list that is empty behind its mark matches everything
        assert_eq!(by_name("=,"), "lo eth0 eth1 docker0 eth10");
        // the 17th entry is not read
        let many = format!("{}eth0", "x,".repeat(16));
        assert!(by_name(&many).contains("matches no interface"));
    }

    #[test]
    fn errors_say_what_would_match() {
        insta::assert_snapshot!(by_name("eno*,eth*"), @"NCCL_SOCKET_IFNAME=eno*,eth* matches no interface: NCCL has no wildcards, a name is a prefix; write eno,eth (matches eth0, eth1, eth10); here: lo 127.0.0.1, eth0 10.0.0.5, eth1 10.1.0.5, docker0 172.17.0.1, eth10 fd00::5");
        insta::assert_snapshot!(by_name("=eth"), @"NCCL_SOCKET_IFNAME==eth matches no interface: `=` asks for whole names; without `=`, eth matches eth0, eth1, eth10; here: lo 127.0.0.1, eth0 10.0.0.5, eth1 10.1.0.5, docker0 172.17.0.1, eth10 fd00::5");
        insta::assert_snapshot!(by_name("eth2"), @"NCCL_SOCKET_IFNAME=eth2 matches no interface: eth2 is not running (down or no carrier); here: lo 127.0.0.1, eth0 10.0.0.5, eth1 10.1.0.5, docker0 172.17.0.1, eth10 fd00::5");
        assert!(by_name("^=").contains("excludes everything"));
        assert!(by_name("=^eth0").contains("taken as a name"));
        assert!(by_name(" eth0").contains("spaces are part of the name"));
        assert!(by_name("bond0").contains("no name starts so"));
        let v6 = Request { ifname: Some("eth1"), family: Some("AF_INET6"), ..Request::default() };
        assert_eq!(names(v6, &node()), "eth10");
        let only = Request { ifname: Some("=eth1"), ..v6 };
        assert!(
            names(only, &node()).contains("eth1 has no address of NCCL_SOCKET_FAMILY=AF_INET6")
        );
        assert!(names(Request::default(), &[]).contains("there is no interface at all"));
    }

    #[test]
    fn automatic_order() {
        assert_eq!(names(Request::default(), &node()), "eth0 eth1 eth10");
        let ib = host(&[("eth0", &["10.0.0.1/8"]), ("ibmgmt", &["10.9.0.1/8"])]);
        assert_eq!(names(Request::default(), &ib), "ibmgmt");
        let docker = host(&[
            ("lo", &["127.0.0.1/8"]),
            ("docker0", &["172.17.0.1/16"]),
            ("virbr0", &["192.168.122.1/24"]),
        ]);
        assert_eq!(names(Request::default(), &docker), "docker0");
        assert_eq!(names(Request::default(), &docker[..1]), "lo");
        assert_eq!(names(Request::default(), &docker[2..]), "virbr0");
        let six = Request { family: Some("AF_INET6"), ..Request::default() };
        assert_eq!(names(six, &node()), "eth0 eth10");
        // other spellings are any family
        let odd = Request { family: Some("inet6"), ..Request::default() };
        assert_eq!(names(odd, &node()), "eth0 eth1 eth10");
    }

    #[test]
    fn subnet_of_comm_id() {
        let by = |id| names(Request { comm_id: Some(id), ..Request::default() }, &node());
        assert_eq!(by("10.1.0.200:5000"), "eth1");
        assert_eq!(by("[fd00::77]:5000"), "eth10");
        assert_eq!(by("[fd00::77%eth10]:5000"), "eth10");
        assert!(by("192.168.7.1:5000").contains("subnet of NCCL_COMM_ID"));
        // a host name says nothing without DNS
        assert_eq!(by("node0:5000"), "eth0 eth1 eth10");
    }

    proptest! {
        #[test]
        fn chosen_are_running_admitted_and_distinct(
            value in "[\\^=]{0,2}([a-z]{1,3}[0-9*]{0,2},?){0,20}",
            hosts in proptest::collection::vec(("[a-z]{1,3}[0-9]{0,2}", any::<bool>(), any::<[u8; 4]>()), 0..24),
        ) {
            let interfaces: Vec<Candidate> = hosts
                .into_iter()
                .map(|(name, running, ip)| Candidate { name, running, addresses: vec![(ip.into(), 24)] })
                .collect();
            let request = Request { ifname: Some(&value), ..Request::default() };
            match choose(request, &interfaces) {
                Ok(chosen) => {
                    prop_assert!(!chosen.is_empty() && chosen.len() <= MAX_INTERFACES);
                    for (i, c) in chosen.iter().enumerate() {
                        prop_assert!(interfaces.iter().any(|x| x.name == c.name && x.running));
                        prop_assert!(chosen[..i].iter().all(|x| x.name != c.name));
                        if let Some(filter) = Filter::parse(&value) {
                            prop_assert!(filter.admits(&c.name));
                        }
                    }
                }
                Err(error) => prop_assert!(!error.to_string().contains('\n')),
            }
        }

        #[test]
        fn never_panics(value in ".{0,40}", id in ".{0,40}", family in ".{0,9}") {
            let request = Request { ifname: Some(&value), family: Some(&family), comm_id: Some(&id) };
            let _ = choose(request, &node());
            let _ = choose(Request { ifname: None, ..request }, &node());
        }
    }
}
