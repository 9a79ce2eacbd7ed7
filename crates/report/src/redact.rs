//! Takes out of a text what must not leave the company: host names, addresses, user names, secrets.
//!
//! The same name becomes the same stand-in everywhere, so that the text can still be followed:
//! `host-1`, `192.0.2.1` and `2001:db8::1` (the ranges of RFC 5737 and 3849), `user-1`. What NCCL's
//! reader must still understand stays as it is: ports, interface and device names, GPU bus ids.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Replaces consistently over all texts that one of it is given.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    hosts: Vec<(String, String)>,
    addresses: BTreeMap<String, String>,
    users: BTreeMap<String, String>,
}

/// Names that belong to nobody.
const COMMON: &[&str] = &["localhost", "root", "ubuntu", "user", "users", "app", "workspace"];

impl Redactor {
    /// Knows these host names from the start.
    pub fn new<'a>(hosts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut out = Self::default();
        for host in hosts {
            let known = out.hosts.iter().any(|(name, _)| name == host);
            if host.len() > 1 && !known && !COMMON.contains(&host) {
                let stand_in = format!("host-{}", out.hosts.len() + 1);
                out.hosts.push((host.to_owned(), stand_in));
            }
        }
        // `node-10` before `node-1`
        out.hosts.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        out
    }

    /// The text with everything replaced.
    pub fn text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let start = rest.find(is_word).unwrap_or(rest.len());
            out.push_str(&rest[..start]);
            rest = &rest[start..];
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let word = &rest[..end];
            let replaced = self.word(word, &out);
            out.push_str(&replaced);
            rest = &rest[end..];
        }
        out
    }

    fn word(&mut self, word: &str, before: &str) -> String {
        if word.is_empty() {
            return String::new();
        }
        if before.ends_with("NCCL_PSK=") || before.ends_with("NCCL_PSK set by environment to ") {
            return "(redacted)".to_owned();
        }
        if ["/home/", "/Users/", "/export/home/"].iter().any(|p| before.ends_with(p)) {
            return self.user(word);
        }
        // a GID in hex holds the address
        if before.ends_with("(0/") && word.len() > 8 && word.bytes().all(|b| b.is_ascii_hexdigit())
        {
            return "redacted".to_owned();
        }
        // an address, perhaps with text of the same alphabet glued to it
        if let Some(replaced) = self.address(word) {
            return replaced;
        }
        let mut out = word.to_owned();
        for (host, stand_in) in &self.hosts {
            out = replace_name(&out, host, stand_in);
        }
        out
    }

    fn user(&mut self, name: &str) -> String {
        if COMMON.contains(&name) {
            return name.to_owned();
        }
        let next = format!("user-{}", self.users.len() + 1);
        self.users.entry(name.to_owned()).or_insert(next).clone()
    }

    fn address(&mut self, word: &str) -> Option<String> {
        let bare = word.trim_end_matches(['.', ':']);
        if let Ok(ip) = bare.parse::<IpAddr>() {
            return Some(format!("{}{}", self.stand_in(ip), &word[bare.len()..]));
        }
        // `eth0:10.0.0.1`, `10.0.0.1:29500`
        let (head, tail) = bare.split_once(':')?;
        if let Ok(ip) = tail.parse::<IpAddr>() {
            return Some(format!("{head}:{}{}", self.stand_in(ip), &word[bare.len()..]));
        }
        let (head, tail) = bare.rsplit_once(':')?;
        let ip: IpAddr = head.parse().ok()?;
        Some(format!("{}:{tail}{}", self.stand_in(ip), &word[bare.len()..]))
    }

    fn stand_in(&mut self, ip: IpAddr) -> String {
        if ip.is_loopback() || ip.is_unspecified() {
            return ip.to_string();
        }
        let count = self.addresses.len() + 1;
        let fresh = match ip {
            IpAddr::V4(v4) if v4.is_link_local() => format!("169.254.0.{}", count % 256),
            // three documentation ranges, 254 addresses each, then shared
            IpAddr::V4(_) => {
                let range = ["192.0.2", "198.51.100", "203.0.113"][(count / 254) % 3];
                format!("{range}.{}", count % 254 + 1)
            }
            IpAddr::V6(v6) if v6.segments()[0] & 0xffc0 == 0xfe80 => format!("fe80::{count:x}"),
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) => return format!("::ffff:{}", self.stand_in(IpAddr::V4(v4))),
                None => format!("2001:db8::{count:x}"),
            },
        };
        self.addresses.entry(ip.to_string()).or_insert(fresh).clone()
    }
}

/// Characters of names and addresses.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | ':' | '-' | '_')
}

/// Replaces a host name where it stands alone or before a dot or colon, not inside another word.
fn replace_name(word: &str, name: &str, stand_in: &str) -> String {
    let mut out = String::with_capacity(word.len());
    let mut at = 0;
    while let Some(found) = word[at..].find(name) {
        let start = at + found;
        let end = start + name.len();
        let inside = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        let before = word[..start].chars().next_back().is_some_and(inside);
        let after = word[end..].chars().next().is_some_and(inside);
        out.push_str(&word[at..start]);
        if before || after {
            out.push_str(name);
            at = end;
        } else {
            out.push_str(stand_in);
            at = end + domain(&word[end..]);
        }
    }
    out.push_str(&word[at..]);
    out
}

/// Bytes of a domain that follows a host name; the ending of a file is none.
fn domain(rest: &str) -> usize {
    const FILES: &[&str] = &["log", "txt", "json", "yaml", "yml", "out", "err", "env"];
    let end = rest.find(':').unwrap_or(rest.len());
    let labels = rest[..end].trim_end_matches('.');
    match labels.strip_prefix('.') {
        Some(name) if !FILES.contains(&name) && name.starts_with(char::is_alphabetic) => {
            labels.len()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_is_the_same_stand_in() {
        let mut r = Redactor::new(["gpu-a", "gpu-ab"]);
        insta::assert_snapshot!(
            r.text(
                "gpu-a:11:40 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE; OOB eth0:10.1.0.1<0>\n\
                 gpu-ab.corp.example:12:41 connect to 10.1.0.1<4000>, 10.1.0.2:29500, ::ffff:10.1.0.2\n\
                 localGid fe80::9a1c:aeff:fe20:7711 at /home/mueller/run.py NCCL_PSK=secretsecret x\n\
                 GID 3 (0/1001F0AFFFF0000) in gpu-a.log of gpu-a.\n\
                 2025-04-02T03:22:10 step 12:30:11 0x5be1 127.0.0.1 gpu-abc"
            ),
            @r"
            host-1:11:40 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE; OOB eth0:192.0.2.2<0>
            host-2:12:41 connect to 192.0.2.2<4000>, 192.0.2.3:29500, ::ffff:192.0.2.3
            localGid fe80::3 at /home/user-1/run.py NCCL_PSK=(redacted) x
            GID 3 (0/redacted) in host-1.log of host-1.
            2025-04-02T03:22:10 step 12:30:11 0x5be1 127.0.0.1 gpu-abc
            "
        );
    }

    proptest::proptest! {
        #[test]
        fn nothing_named_is_left(host in "[a-z]{4,8}-[0-9]{2}", a in 1u8..250, b in 1u8..250) {
            let mut r = Redactor::new([host.as_str()]);
            let out = r.text(&format!("{host}:1:2 x 10.{a}.{b}.7<0> eth0:10.{a}.{b}.7"));
            proptest::prop_assert!(!out.contains(&host) && !out.contains("10."), "{}", out);
        }
    }
}
