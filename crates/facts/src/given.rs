//! Facts of a container that are told from outside: what its engine gives it of its host.

use std::collections::BTreeMap;

use crate::container::HostNamespaces;
use crate::facts::{Facts, Missing};
use crate::live::Live;
use crate::root::Root;

/// What an engine says that it gives to a container.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    /// Name of the container or image.
    pub name: String,
    /// User id; 0 is root.
    pub user: u32,
    /// Capabilities beyond the default ones, without `CAP_`; `ALL` for a privileged container.
    pub capabilities: Vec<String>,
    /// Memory that may be locked, bytes; `None` where it is the engine's default.
    pub memlock: Option<u64>,
    /// Size of /dev/shm, bytes.
    pub shm: Option<u64>,
    /// Memory limit, bytes.
    pub memory: Option<u64>,
    /// `off` or `filter`.
    pub seccomp: String,
    /// Privileges can not grow.
    pub no_new_privileges: bool,
    /// Which namespaces are the host's.
    pub host: HostNamespaces,
    /// Devices of the host, files or folders; a privileged container has all.
    pub devices: Vec<String>,
    /// All devices, whatever is named.
    pub all_devices: bool,
    /// GPUs.
    pub gpus: Gpus,
    /// Environment of its first process.
    pub environment: BTreeMap<String, String>,
}

/// GPUs that a container gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Gpus {
    /// None.
    #[default]
    None,
    /// All of the host.
    All,
    /// So many, the first ones.
    Count(usize),
    /// These, by index or UUID.
    Named(Vec<String>),
}

impl Facts {
    /// Facts of a container: libraries from its files below `root`, limits as its engine says, devices
    /// as the host has them and the engine gives them. Without the host's facts devices are unknown.
    pub fn given(root: &Root, given: &Given, host: Option<&Self>) -> Self {
        let live = Live {
            hostname: given.name.clone(),
            kernel: host.map(|h| h.kernel.clone()).unwrap_or_default(),
            user: given.user,
            environment: crate::environment::relevant(&given.environment),
            ..Live::default()
        };
        let mut facts = Self {
            name: given.name.clone(),
            kernel: live.kernel.clone(),
            environment: live.environment.clone(),
            ..Self::default()
        };
        crate::software::collect(root, &live, &mut facts);
        container(given, &mut facts);
        match host {
            Some(host) => devices(given, host, &mut facts),
            None => facts.missing.push(Missing::new(
                "the host",
                "the engine is on another machine: its GPUs and RDMA devices are unknown",
            )),
        }
        crate::topology::collect(root, &live, &mut facts);
        crate::gpudirect::collect(root, &live, &mut facts);
        if let Some(host) = host {
            // modules and IOMMU are the host's
            facts.gpudirect.iommu = host.gpudirect.iommu;
            facts.gpudirect.peermem = host.gpudirect.peermem;
            if host.gpudirect.ready == Some(true) {
                facts.gpudirect.reasons.retain(|r| !r.starts_with("neither nvidia_peermem"));
                facts.gpudirect.way.clone_from(&host.gpudirect.way);
                if facts.gpudirect.ready.is_some() {
                    facts.gpudirect.ready = Some(facts.gpudirect.reasons.is_empty());
                }
            }
        }
        facts
    }
}

fn container(given: &Given, facts: &mut Facts) {
    let root = given.user == 0;
    let c = &mut facts.container;
    c.runtime = Some("docker".to_owned());
    c.runtime_source = "Engine API".to_owned();
    c.user = given.user;
    // capabilities of the bounding set are in force for root alone
    c.capabilities = if root { given.capabilities.clone() } else { Vec::new() };
    c.no_new_privileges = Some(given.no_new_privileges);
    c.seccomp = Some(given.seccomp.clone());
    c.memlock = given.memlock;
    c.shm = given.shm;
    c.shm_mounted = given.shm.map(|_| true);
    c.memory_limit = given.memory;
    c.host = given.host.clone();
    let nice = given.capabilities.iter().any(|name| name == "SYS_NICE" || name == "ALL");
    c.memory_policy = Some(given.seccomp == "off" || nice);
}

fn devices(given: &Given, host: &Facts, facts: &mut Facts) {
    let has = |path: &str| {
        given.all_devices
            || given.devices.iter().any(|d| {
                path == d || path.strip_prefix(d.as_str()).is_some_and(|rest| rest.starts_with('/'))
            })
    };
    if let Some(driver) = &host.gpu {
        let mut driver = driver.clone();
        driver.gpus.retain(|gpu| match &given.gpus {
            Gpus::All => true,
            Gpus::Count(count) => (gpu.index as usize) < *count,
            Gpus::Named(names) => names.iter().any(|name| {
                *name == gpu.index.to_string()
                    || gpu.uuid.as_ref().is_some_and(|uuid| uuid.starts_with(name.as_str()))
            }),
            Gpus::None => has(&format!("/dev/nvidia{}", gpu.index)),
        });
        if !driver.gpus.is_empty() {
            facts.gpu = Some(driver);
        }
    }
    let same_net = given.host.net == Some(true);
    facts.rdma.clone_from(&host.rdma);
    for device in &mut facts.rdma {
        device.opened = Some(match &device.node {
            Some(node) if has(node) => "ok".to_owned(),
            _ => "not given to this container".to_owned(),
        });
        for port in device.ports.iter_mut().filter(|port| !same_net && port.is_roce()) {
            // entries of a RoCE table belong to the namespace of their interface
            port.gids.clear();
            port.netdev = None;
        }
    }
    if same_net {
        facts.interfaces.clone_from(&host.interfaces);
        facts.default_route.clone_from(&host.default_route);
    }
    facts.pci = host
        .pci
        .iter()
        .filter(|d| {
            d.role != crate::pci::Role::Gpu
                || facts.gpus().iter().any(|g| g.pci.as_deref() == Some(&d.address))
        })
        .cloned()
        .collect();
    facts.platform = host.platform.clone();
    facts.cpus = host.cpus;
    facts.port_range = host.port_range;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{Driver, Gpu};
    use crate::rdma::{Port, RdmaDevice};

    #[test]
    fn a_container_has_what_it_is_given_of_its_host() {
        let gpu = |index: u32| Gpu { index, ..Gpu::default() };
        let host = Facts {
            gpu: Some(Driver { gpus: vec![gpu(0), gpu(1), gpu(2)], ..Driver::default() }),
            rdma: vec![RdmaDevice {
                name: "mlx5_0".to_owned(),
                node: Some("/dev/infiniband/uverbs0".to_owned()),
                opened: Some("ok".to_owned()),
                ports: vec![Port {
                    link_layer: "Ethernet".to_owned(),
                    state: "ACTIVE".to_owned(),
                    gids: vec![crate::rdma::Gid {
                        index: 3,
                        gid: "::ffff:10.0.0.1".parse().unwrap(),
                        kind: "RoCE v2".to_owned(),
                        netdev: None,
                    }],
                    ..Port::default()
                }],
                ..RdmaDevice::default()
            }],
            ..Facts::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let root = Root::captured(folder.path(), BTreeMap::new());
        let mut given = Given {
            gpus: Gpus::Named(vec!["1".to_owned(), "2".to_owned()]),
            seccomp: "filter".to_owned(),
            user: 1000,
            capabilities: vec!["IPC_LOCK".to_owned()],
            ..Given::default()
        };
        let facts = Facts::given(&root, &given, Some(&host));
        assert_eq!(facts.gpus().len(), 2);
        assert_eq!(facts.rdma[0].opened.as_deref(), Some("not given to this container"));
        assert!(facts.rdma[0].ports[0].gids.is_empty());
        assert!(facts.container.capabilities.is_empty(), "of no use to another user than root");
        given.devices = vec!["/dev/infiniband".to_owned()];
        given.host.net = Some(true);
        let facts = Facts::given(&root, &given, Some(&host));
        assert_eq!(facts.rdma[0].opened.as_deref(), Some("ok"));
        assert_eq!(facts.rdma[0].ports[0].gids.len(), 1);
        assert!(Facts::given(&root, &given, None).rdma.is_empty());
    }
}
