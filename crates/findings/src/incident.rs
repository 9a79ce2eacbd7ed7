//! An incident: everything that a user handed in about one run, joined. Rules with an `incident`
//! hook look at it; what a rule needs from several inputs at once (a log and the facts of a node,
//! an env file and a log) stands side by side here.

use ncclctl_facts::rdma::RdmaDevice;
use std::collections::BTreeMap;

use ncclctl_nccl::flight_recorder::Dump;
use ncclctl_nccl::log::{At, Model, Notice, Process, Signal, failure};
use ncclctl_nccl::nccl_tests::{self, Run};
use ncclctl_nccl::ras::Report;

use crate::documents::Documents;
use crate::finding::Exhibit;

/// What was handed in.
#[derive(Clone, Debug, Default)]
pub struct Incident {
    /// Logs of every rank, host and launcher, as one model.
    pub log: Model,
    /// Runs of nccl-tests found in them.
    pub runs: Vec<TestRun>,
    /// Dumps of PyTorch's Flight Recorder: name of the input and content.
    pub dumps: Vec<(String, Dump)>,
    /// Reports of the RAS service: name of the input and content.
    pub reports: Vec<(String, Report)>,
    /// Facts of nodes or containers: pasted output, captures, results of `facts`.
    pub nodes: Vec<ncclctl_facts::Facts>,
    /// Files of the job: manifests, Dockerfiles, env files.
    pub documents: Documents,
    /// Inputs that could not be read, with the reason.
    pub unreadable: Vec<(String, String)>,
}

/// A run of nccl-tests and where its text stands.
#[derive(Clone, Debug, Default)]
pub struct TestRun {
    /// The run.
    pub run: Run,
    /// Index into the log's tables, `None` for a JSON file.
    pub table: Option<usize>,
    /// Name of the input.
    pub source: String,
}

impl TestRun {
    /// Hosts of its ranks, each once, in order.
    pub fn hosts(&self) -> Vec<&str> {
        let mut hosts: Vec<&str> = Vec::new();
        for rank in &self.run.ranks {
            if !hosts.contains(&rank.host.as_str()) {
                hosts.push(&rank.host);
            }
        }
        hosts
    }
}

/// Networks that NCCL brings itself, or a drop-in of them: they read NCCL_IB_* settings.
fn is_verbs(network: &str) -> bool {
    network == "IB" || network.starts_with("IBext") || network.starts_with("UCX")
}

impl Incident {
    /// An incident of logs alone.
    pub fn of_log(log: Model) -> Self {
        let mut runs = Vec::new();
        for (index, table) in log.tables.iter().enumerate() {
            let source = log.sources.get(table.source as usize).cloned().unwrap_or_default();
            for run in nccl_tests::read_table(&table.text) {
                runs.push(TestRun { run, table: Some(index), source: source.clone() });
            }
        }
        Self { log, runs, ..Self::default() }
    }

    /// A line of a run's table as evidence; `line` counts from 1 in the table's own text.
    pub fn row(&self, run: &TestRun, line: u64) -> Exhibit {
        let table = run.table.and_then(|t| self.log.tables.get(t));
        let index = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
        let text = table.and_then(|t| t.text.lines().nth(index)).unwrap_or("").trim().to_owned();
        let at = table.and_then(|t| t.lines.get(index).copied()).unwrap_or(line.max(1));
        Exhibit::Text { file: run.source.clone(), line: at, column: 1, text }
    }

    /// Name of the input of a run.
    pub fn source_of<'a>(&self, run: &'a TestRun) -> &'a str {
        &run.source
    }

    /// Whether nothing in it is about NCCL at all.
    pub fn is_empty(&self) -> bool {
        self.log.nccl_lines == 0
            && self.log.signals.is_empty()
            && self.runs.is_empty()
            && self.dumps.is_empty()
            && self.reports.is_empty()
            && self.nodes.is_empty()
            && self.documents.files.is_empty()
    }

    /// Every host that is named anywhere in it.
    pub fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> = self.log.hosts().into_iter().map(str::to_owned).collect();
        for run in &self.runs {
            for host in run.hosts() {
                if !hosts.iter().any(|h| h == host) {
                    hosts.push(host.to_owned());
                }
            }
        }
        hosts
    }

    /// A line of a log as evidence.
    pub fn exhibit(&self, at: &At) -> Exhibit {
        let file = self.log.sources.get(at.source as usize).cloned().unwrap_or_default();
        Exhibit::Text { file, line: at.line.max(1), column: 1, text: at.text.trim().to_owned() }
    }

    /// Lines as evidence, at most `limit`.
    pub fn exhibits<'a>(
        &self,
        lines: impl IntoIterator<Item = &'a At>,
        limit: usize,
    ) -> Vec<Exhibit> {
        let mut out: Vec<Exhibit> = Vec::new();
        for at in lines {
            let exhibit = self.exhibit(at);
            if out.len() < limit && !out.contains(&exhibit) {
                out.push(exhibit);
            }
        }
        out
    }

    /// Notices whose text has one of the parts.
    pub fn notices(&self, parts: &[&str]) -> Vec<&Notice> {
        self.log.notices.iter().filter(|n| parts.iter().any(|p| n.text.contains(p))).collect()
    }

    /// Notices and lines of a signal together, as places.
    pub fn places(&self, parts: &[&str], signals: &[Signal]) -> Vec<&At> {
        let mut out: Vec<&At> = self.notices(parts).into_iter().map(|n| &n.at).collect();
        for signal in signals {
            out.extend(self.log.signal(*signal));
        }
        out
    }

    /// The process of a notice.
    pub fn process(&self, notice: &Notice) -> Option<&Process> {
        self.log.processes.get(notice.process)
    }

    /// The value and place of a setting on the first process that has it.
    pub fn setting(&self, name: &str) -> Option<(&str, &At)> {
        self.log.processes.iter().find_map(|p| p.setting(name)).map(|s| (s.value.as_str(), &s.at))
    }

    /// Whether the run went through: every communicator seen was set up on every rank seen, and
    /// no rank left on an error.
    pub fn finished(&self) -> bool {
        let tables = self.log.tables.iter().any(|t| t.text.contains("# Avg bus bandwidth"));
        let comms = &self.log.communicators;
        let complete = !comms.is_empty()
            && comms.iter().all(|c| c.members.values().all(|m| m.complete || !m.started));
        let trail = self.log.processes.iter().any(|p| p.trails > 0);
        (complete || tables) && !trail && self.log.signal(Signal::TorchNcclError).is_empty()
    }

    /// Why RDMA must have been meant, in words, with the line that shows it.
    pub fn rdma_meant(&self) -> Option<(String, Option<&At>)> {
        for p in &self.log.processes {
            for (name, setting) in &p.settings {
                let value = setting.value.as_str();
                let speaks = match name.as_str() {
                    "NCCL_IB_DISABLE" => value == "0",
                    "NCCL_NET" => !value.eq_ignore_ascii_case("socket"),
                    "NCCL_NET_PLUGIN" => value != "none",
                    "NCCL_NET_GDR_LEVEL" | "NCCL_NET_GDR_READ" | "NCCL_COLLNET_ENABLE" => {
                        value != "0" && value != "LOC"
                    }
                    name => name.starts_with("NCCL_IB_"),
                };
                if speaks {
                    return Some((format!("{name}={value} is set"), Some(&setting.at)));
                }
            }
            if is_verbs(&p.network.value) {
                return Some((format!("{} uses {}", p.host, p.network.value), Some(&p.network.at)));
            }
        }
        if let Some(notice) = self.notices(&["Unable to open device", "ibv_open_device"]).first() {
            return Some(("an RDMA device is in sysfs".to_owned(), Some(&notice.at)));
        }
        let device = self.nodes.iter().flat_map(|n| &n.rdma).next()?;
        Some((format!("{} is there", device.name), None))
    }

    /// Whether a GPU is of a kind that stands in machines without RDMA.
    pub fn small_gpus(&self) -> bool {
        const SMALL: &[&str] = &["Tesla T4", "NVIDIA T4", "NVIDIA L4", "A10G", "Tesla P4", "M60"];
        self.log.tables.iter().any(|t| SMALL.iter().any(|s| t.text.contains(s)))
    }

    /// Whether something shows that this machine has no RDMA device at all.
    pub fn no_rdma_here(&self) -> bool {
        false
    }

    /// Devices that only a plugin can use, with the fact that shows them.
    pub fn needs_plugin(&self) -> Option<(String, Exhibit)> {
        let node = self
            .nodes
            .iter()
            .find(|n| !n.rdma.is_empty() && n.rdma.iter().all(RdmaDevice::is_efa))?;
        let names: Vec<&str> = node.rdma.iter().map(|d| d.name.as_str()).collect();
        let fact = Exhibit::fact(format!("{}.rdma", node.name), names.join(" "));
        Some(("EFA".to_owned(), fact))
    }

    /// Whether the locked-memory limit is known to be unlimited.
    pub fn memlock_unlimited(&self) -> bool {
        self.nodes.iter().any(|n| n.container.memlock == Some(u64::MAX))
    }

    /// The fact that nvidia_peermem is loaded, where it was shown.
    pub fn peermem_loaded(&self) -> Option<Exhibit> {
        let node = self.nodes.iter().find(|n| n.gpudirect.peermem)?;
        Some(Exhibit::fact(format!("{}.gpudirect.peermem", node.name), "loaded"))
    }

    /// Lines of result tables that contain a text, as evidence.
    pub fn table_lines(&self, part: &str) -> Vec<Exhibit> {
        let mut out = Vec::new();
        for table in &self.log.tables {
            for (number, line) in table.text.lines().enumerate() {
                if line.contains(part) && out.len() < 4 {
                    out.push(self.exhibit(&At {
                        source: table.source,
                        line: table.lines.get(number).copied().unwrap_or(table.line),
                        text: line.to_owned(),
                    }));
                }
            }
        }
        out
    }

    /// Processes by host, in order; nameless ones left out.
    pub fn by_host(&self) -> BTreeMap<&str, Vec<&Process>> {
        let mut hosts: BTreeMap<&str, Vec<&Process>> = BTreeMap::new();
        for p in &self.log.processes {
            if !p.host.is_empty() {
                hosts.entry(&p.host).or_default().push(p);
            }
        }
        hosts
    }

    /// Failed completions with their notices.
    pub fn completions(&self) -> Vec<(failure::Completion, &Notice)> {
        self.log.notices.iter().filter_map(|n| Some((failure::completion(&n.text)?, n))).collect()
    }

    /// Failed socket calls with their notices.
    pub fn socket_failures(&self) -> Vec<(failure::Socket, &Notice)> {
        self.log.notices.iter().filter_map(|n| Some((failure::socket(&n.text)?, n))).collect()
    }

    /// Whether a process' network is NCCL's own verbs transport or a drop-in of it.
    pub fn uses_verbs(process: &Process) -> bool {
        is_verbs(&process.network.value)
    }
}

/// Whether a name is written like the host's end of a container's link, or a bridge of containers.
pub fn is_virtual_interface(name: &str) -> bool {
    const PREFIXES: &[&str] = &[
        "docker",
        "br-",
        "cni",
        "flannel",
        "cali",
        "virbr",
        "lxc",
        "lxdbr",
        "cilium",
        "kube-",
        "weave",
        "antrea",
        "ovs-",
        "vnet",
        "tun",
        "tap",
        "ip6tnl",
        "wg",
        "tailscale",
        "zt",
        "nerdctl",
        "podman",
    ];
    if let Some(rest) = name.strip_prefix("veth") {
        // `veth0` is a name people give inside a container; the host's end has random letters
        return rest.len() >= 6;
    }
    PREFIXES.iter().any(|p| name.starts_with(p))
}

/// The first three parts of an IPv4 address: good enough to tell subnets apart when no prefix
/// length is known.
pub fn subnet24(ip: std::net::IpAddr) -> Option<[u8; 3]> {
    ncclctl_nccl::log::address::v4(ip).map(|v4| {
        let [a, b, c, _] = v4.octets();
        [a, b, c]
    })
}
