//! Files from a plan: one writer a kind, and this list. Every file says what made it and why, and is
//! the same, byte by byte, for the same plan.

mod compose;
mod conf;
mod docker;
mod dockerfile;
mod env;
mod image;
mod kubernetes;
mod systemd;
mod topo;
mod yaml;

pub use image::{Mirrors, MirrorsError};

use std::fmt::Write as _;

use ncclctl_plan::node::Node;
use ncclctl_plan::result::{Layer, NeedKind, Plan, Setting};

/// A file to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Path, relative.
    pub path: String,
    /// Content.
    pub text: String,
}

/// How much a pod wants a node with RDMA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// Only nodes with `rdma=available`.
    Required,
    /// Those first.
    Preferred,
    /// No matter.
    #[default]
    Absent,
}

/// What the user chose beside the plan.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Name of the service, workload and files in a cluster.
    pub name: String,
    /// Image that runs.
    pub image: String,
    /// Base image of a Dockerfile.
    pub base: String,
    /// Image that holds ncclctl, for init containers.
    pub tool_image: String,
    /// Namespace in a cluster.
    pub namespace: Option<String>,
    /// Extended resource that gives RDMA devices.
    pub rdma_resource: String,
    /// Network attachment of an RDMA CNI.
    pub rdma_network: Option<String>,
    /// Mirrors of registries and packages.
    pub mirrors: Mirrors,
    /// Node affinity.
    pub affinity: Affinity,
    /// Run as UID 0, where IPC_LOCK counts.
    pub root: bool,
    /// Let an init container plan for the node that it lands on.
    pub init: bool,
    /// Let a DaemonSet keep an nccl.conf on every node.
    pub daemonset: bool,
    /// Only what is added to a Compose file that exists.
    pub override_only: bool,
    /// The job has a pre-shared key for NCCL's TCP traffic.
    pub psk: bool,
    /// Topology XML to put into a ConfigMap.
    pub topology: Option<String>,
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            name: "train".into(),
            image: "registry.example/train:1".into(),
            base: "nvidia/cuda:12.8.1-runtime-ubuntu24.04".into(),
            tool_image: concat!("ghcr.io/ncclctl/ncclctl:", env!("CARGO_PKG_VERSION")).into(),
            namespace: None,
            rdma_resource: "rdma/hca".into(),
            rdma_network: None,
            mirrors: Mirrors::default(),
            affinity: Affinity::Absent,
            root: false,
            init: false,
            daemonset: false,
            override_only: false,
            psk: false,
            topology: None,
        }
    }
}

/// Kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum Kind {
    Docker,
    Compose,
    Env,
    Conf,
    Kubernetes,
    Dockerfile,
    Topo,
    Systemd,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Docker,
        Self::Compose,
        Self::Env,
        Self::Conf,
        Self::Kubernetes,
        Self::Dockerfile,
        Self::Topo,
        Self::Systemd,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Compose => "compose",
            Self::Env => "env",
            Self::Conf => "conf",
            Self::Kubernetes => "kubernetes",
            Self::Dockerfile => "dockerfile",
            Self::Topo => "topo",
            Self::Systemd => "systemd",
        }
    }
}

/// What a writer is given.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The nodes that it is for; empty where only the plan was given.
    pub nodes: &'a [Node],
    /// What the user chose.
    pub choice: &'a Choice,
}

/// Why a file can not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The kind describes the machine, and none was looked at.
    #[error("{0} describes the machine itself: look at one (no --plan), or give --from or --fleet")]
    NoNodes(&'static str),
    /// Nothing of it is on the machine.
    #[error("{0}")]
    Nothing(String),
}

/// The files of one kind.
pub fn write(kind: Kind, work: Work<'_>) -> Result<Vec<File>, WriteError> {
    Ok(match kind {
        Kind::Docker => docker::write(work),
        Kind::Compose => compose::write(work),
        Kind::Env => env::write(work),
        Kind::Conf => conf::write(work),
        Kind::Kubernetes => kubernetes::write(work),
        Kind::Dockerfile => dockerfile::write(work),
        Kind::Topo => topo::write(work)?,
        Kind::Systemd => systemd::write(work)?,
    })
}

/// The comment at the head of a file: what made it, for what, and how to renew it.
fn header(out: &mut String, kind: Kind, plan: &Plan) {
    let nodes = match &plan.nodes[..] {
        [one] => one.name.clone(),
        all => format!("{} nodes", all.len()),
    };
    let _ = writeln!(
        out,
        "# made by ncclctl render {} (ncclctl {}) from the plan for {nodes}, NCCL {}: {}",
        kind.name(),
        env!("CARGO_PKG_VERSION"),
        plan.nccl,
        plan.transport.name()
    );
    let _ = writeln!(
        out,
        "# renew it the same way; `ncclctl render {} --check` says whether it is up to date",
        kind.name()
    );
}

/// The reason of a setting as a comment of one line.
fn why(setting: &Setting) -> String {
    format!(
        "# {}: {}",
        setting.rule,
        setting.reason.split_whitespace().collect::<Vec<_>>().join(" ")
    )
}

/// Settings for a container that may run on any node, or on the one node that there is.
fn common(plan: &Plan) -> Vec<&Setting> {
    match &plan.nodes[..] {
        [one] => plan.settings.iter().chain(&one.settings).collect(),
        _ => plan.settings.iter().collect(),
    }
}

/// Whether some node has settings of its own beside the job's.
fn differs_by_node(plan: &Plan) -> bool {
    plan.nodes.len() > 1 && plan.nodes.iter().any(|n| !n.settings.is_empty())
}

/// Settings that hold on any machine: nothing that names a device, an interface or a file of a node.
fn portable(plan: &Plan) -> Vec<&Setting> {
    const OF_A_NODE: [&str; 5] = [
        "NCCL_SOCKET_IFNAME",
        "NCCL_IB_HCA",
        "NCCL_IB_GID_INDEX",
        "NCCL_TOPO_FILE",
        "NCCL_SOCKET_FAMILY",
    ];
    plan.settings
        .iter()
        .filter(|s| s.layer == Layer::Job && !OF_A_NODE.contains(&s.name.as_str()))
        .collect()
}

/// Whether the container is to get something.
fn needs(plan: &Plan, kind: NeedKind) -> bool {
    plan.needs.iter().any(|n| n.kind == kind)
}

/// Size of /dev/shm in GiB, where GPUs need it.
fn shm_gib(plan: &Plan) -> Option<usize> {
    needs(plan, NeedKind::SharedMemory).then_some(plan.gpus.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncclctl_plan::{Request, plan};

    pub(super) fn nodes() -> Vec<Node> {
        serde_json::from_str(include_str!("../tests/roce.json")).unwrap()
    }

    fn all(choice: &Choice) -> Vec<File> {
        let nodes = nodes();
        let plan = plan(&nodes, Request::default());
        let work = Work { plan: &plan, nodes: &nodes, choice };
        Kind::ALL.into_iter().flat_map(|kind| write(kind, work).unwrap()).collect()
    }

    #[test]
    fn the_same_bytes_every_time_and_a_head_in_every_file() {
        let choice = Choice { init: true, daemonset: true, psk: true, ..Choice::default() };
        let first = all(&choice);
        assert_eq!(first, all(&choice));
        for file in &first {
            let head = file.text.lines().take(3).collect::<Vec<_>>().join("\n");
            assert!(head.contains("made by ncclctl render"), "{}: {head}", file.path);
            assert!(file.text.ends_with('\n'), "{}", file.path);
        }
        let mut paths: Vec<&str> = first.iter().map(|f| f.path.as_str()).collect();
        paths.sort_unstable();
        let files = paths.len();
        paths.dedup();
        assert_eq!(paths.len(), files, "no two files of one name: {paths:?}");
    }

    #[test]
    fn yaml_reads_back() {
        let choice = Choice {
            init: true,
            daemonset: true,
            psk: true,
            namespace: Some("no".into()),
            topology: Some("<system version=\"1\">\n</system>\n".into()),
            ..Choice::default()
        };
        let files = all(&choice);
        let yaml: Vec<&File> = files.iter().filter(|f| f.path.ends_with(".yaml")).collect();
        assert!(yaml.len() >= 5, "{}", yaml.len());
        for file in yaml {
            let (documents, broken) = crate::tree::read(&file.text);
            assert_eq!((documents.len(), broken), (1, vec![]), "{}", file.path);
            if let Some(namespace) = documents[0].at(&["metadata", "namespace"]) {
                assert_eq!(namespace.text(), Some("no"), "{}: text, no boolean", file.path);
            }
        }
    }

    #[test]
    fn nothing_asks_for_more_than_it_needs() {
        for file in all(&Choice::default()) {
            for word in ["privileged", "hostIPC", "hostPID", "cluster-admin", "IPC_LOCK]"] {
                let said =
                    file.text.lines().any(|l| !l.trim_start().starts_with('#') && l.contains(word));
                assert!(!said, "{}: {word}", file.path);
            }
        }
    }
}
