//! A "cluster" on one machine: a network namespace a host, a veth link each on one bridge, link
//! rates by token bucket, cuts by nftables.
//!
//! Everything it makes carries the process id of the test in its name, so that a lab that a killed
//! run left behind is known, and nothing else is ever touched.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::binary;

const NAMESPACE: &str = "ncclctl-e2e-";
const LINK: &str = "ne2";

/// Hosts on one bridge.
#[derive(Debug)]
pub struct Lab {
    hosts: Vec<String>,
    bridges: Vec<String>,
    token: tempfile::TempDir,
}

static SWEPT: Once = Once::new();
static NUMBER: AtomicU32 = AtomicU32::new(0);

fn output(program: &str, args: &[&str]) -> Result<String, String> {
    let out = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if out.status.success() {
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    } else {
        Err(format!(
            "{program} {}: {}",
            args.join(" "),
            String::from_utf8_lossy(&out.stderr).trim()
        ))
    }
}

fn ip(args: &str) -> Result<String, String> {
    output("ip", &args.split_whitespace().collect::<Vec<_>>())
}

fn must(result: Result<String, String>) -> String {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// The process id that stands in a name made by [`Lab::new`].
fn owner(name: &str) -> Option<u32> {
    let rest = name.strip_prefix(NAMESPACE).or_else(|| name.strip_prefix(LINK))?;
    rest.split(['-', 'x', 'v', '@', ':']).next()?.parse().ok()
}

fn alive(pid: u32) -> bool {
    PathBuf::from(format!("/proc/{pid}")).exists()
}

/// Removes labs whose test process is gone: processes in them first, then namespaces, then links.
fn sweep() {
    let namespaces = ip("netns list").unwrap_or_default();
    for line in namespaces.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        if owner(name).is_some_and(|pid| !alive(pid)) {
            remove_namespace(name);
        }
    }
    for line in ip("-o link show type bridge").unwrap_or_default().lines() {
        let name = line.split(": ").nth(1).unwrap_or_default();
        let name = name.split('@').next().unwrap_or_default();
        if name.starts_with(LINK) && owner(name).is_some_and(|pid| !alive(pid)) {
            let _ = ip(&format!("link del {name}"));
        }
    }
}

fn remove_namespace(name: &str) {
    for pid in ip(&format!("netns pids {name}")).unwrap_or_default().lines() {
        let _ = output("kill", &["-9", pid]);
    }
    let _ = ip(&format!("netns del {name}"));
}

impl Lab {
    /// `hosts` hosts with an `eth0` each, addresses 198.18.N.1 and up (the benchmarking range of
    /// RFC 2544), every link limited to `rate` as `tc` writes it (`1gbit`). `Err` says why namespaces can not be had here.
    pub fn new(hosts: usize, rate: &str) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("network namespaces need root".to_owned());
        }
        ip("-V").map_err(|_| "iproute2 is not installed".to_owned())?;
        SWEPT.call_once(sweep);
        let lab = Self {
            hosts: Vec::new(),
            bridges: Vec::new(),
            token: tempfile::tempdir().map_err(|error| format!("temporary folder: {error}"))?,
        };
        let lab = lab.with_hosts(hosts)?;
        Ok(lab.with_network("eth0", rate))
    }

    fn with_hosts(mut self, hosts: usize) -> Result<Self, String> {
        let pid = std::process::id();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        for h in 1..=hosts {
            let name = format!("{NAMESPACE}{pid}-{number}-h{h}");
            ip(&format!("netns add {name}"))?;
            must(ip(&format!("-n {name} link set lo up")));
            self.hosts.push(name);
        }
        Ok(self)
    }

    /// A further network: an interface of that name on every host, on a bridge of its own.
    #[must_use]
    pub fn with_network(mut self, interface: &str, rate: &str) -> Self {
        let pid = std::process::id();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let bridge = format!("{LINK}{pid}x{number}");
        must(ip(&format!("link add {bridge} type bridge")));
        must(ip(&format!("link set {bridge} up")));
        let third = number % 200 + 1;
        for (index, host) in self.hosts.iter().enumerate() {
            let outer = format!("{LINK}{pid}v{number}{}", (b'a' + index as u8) as char);
            must(ip(&format!("link add {outer} type veth peer name {interface} netns {host}")));
            must(ip(&format!("link set {outer} master {bridge} up")));
            must(ip(&format!(
                "-n {host} addr add 198.18.{third}.{}/24 dev {interface}",
                index + 1
            )));
            must(ip(&format!("-n {host} link set {interface} up")));
        }
        self.bridges.push(bridge);
        let network = self.bridges.len() - 1;
        for h in 0..self.hosts.len() {
            self.limit(h, network, interface, rate);
        }
        self
    }

    /// Limits one host's link in both directions.
    pub fn limit(&self, host: usize, network: usize, interface: &str, rate: &str) {
        let inner = &self.hosts[host];
        let outer = self.outer(host, network);
        let shape = format!("root tbf rate {rate} burst 256k latency 50ms");
        must(output(
            "tc",
            &format!("-n {inner} qdisc replace dev {interface} {shape}")
                .split(' ')
                .collect::<Vec<_>>(),
        ));
        must(output(
            "tc",
            &format!("qdisc replace dev {outer} {shape}").split(' ').collect::<Vec<_>>(),
        ));
    }

    /// Limits what one host sends to one other, and nothing else. Classes by HTB, the rest of its link at `line`.
    pub fn limit_edge(&self, from: usize, to: usize, interface: &str, rate: &str, line: &str) {
        let host = &self.hosts[from];
        let to = self.address(to, interface);
        for command in [
            format!("-n {host} qdisc replace dev {interface} root handle 1: htb default 10"),
            format!(
                "-n {host} class add dev {interface} parent 1: classid 1:10 htb rate {line} burst 256k cburst 256k"
            ),
            format!(
                "-n {host} class add dev {interface} parent 1: classid 1:20 htb rate {rate} burst 64k cburst 64k"
            ),
            format!(
                "-n {host} filter add dev {interface} protocol ip parent 1: prio 1 u32 match ip dst {to}/32 flowid 1:20"
            ),
        ] {
            must(output("tc", &command.split(' ').collect::<Vec<_>>()));
        }
    }

    fn outer(&self, host: usize, network: usize) -> String {
        let bridge = &self.bridges[network];
        let (pid, number) = bridge[LINK.len()..].split_once('x').unwrap_or_default();
        format!("{LINK}{pid}v{number}{}", (b'a' + host as u8) as char)
    }

    /// IPv4 address of an interface of a host.
    pub fn address(&self, host: usize, interface: &str) -> String {
        let shown = must(ip(&format!("-n {} -4 -br addr show dev {interface}", self.hosts[host])));
        shown
            .split_whitespace()
            .find(|field| field.contains('/'))
            .and_then(|field| field.split('/').next())
            .map(str::to_owned)
            .unwrap_or_else(|| panic!("{interface} has no address: {shown}"))
    }

    /// Number of hosts.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Whether there is no host.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Name of a host's namespace.
    pub fn namespace(&self, host: usize) -> &str {
        &self.hosts[host]
    }

    /// A file for the join token, in a folder of its own.
    pub fn token(&self) -> PathBuf {
        self.token.path().join("token")
    }

    /// A command of the binary under test that runs on a host.
    pub fn command(
        &self,
        host: usize,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Command {
        let mut command = self.program(host, binary::path());
        command.args(args);
        command
    }

    /// Any program on a host.
    pub fn program(&self, host: usize, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.hosts[host])).arg("--").arg(program);
        binary::isolate(&mut command);
        command
    }

    /// Drops everything that a host sends and receives on its links, without any reset: a pulled cable
    /// as far as its peers can tell.
    pub fn cut(&self, host: usize) {
        let rules = "table inet cut { chain i { type filter hook input priority 0; iifname != \"lo\" drop; }; \
                     chain o { type filter hook output priority 0; oifname != \"lo\" drop; }; };";
        let out = Command::new("ip")
            .args(["netns", "exec", &self.hosts[host], "nft", rules])
            .output()
            .unwrap_or_else(|error| panic!("nft: {error}"));
        assert!(out.status.success(), "nft: {}", String::from_utf8_lossy(&out.stderr));
    }

    /// Processes that live on any of the hosts.
    pub fn processes(&self) -> Vec<u32> {
        self.hosts
            .iter()
            .flat_map(|host| {
                ip(&format!("netns pids {host}"))
                    .unwrap_or_default()
                    .lines()
                    .filter_map(|line| line.trim().parse().ok())
                    .collect::<Vec<u32>>()
            })
            .collect()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for host in &self.hosts {
            remove_namespace(host);
        }
        for bridge in &self.bridges {
            let _ = ip(&format!("link del {bridge}"));
        }
    }
}
