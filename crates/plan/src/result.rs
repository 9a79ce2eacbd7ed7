//! What the planner gives back.

use std::collections::BTreeMap;

use ncclctl_nccl::doubt::Weight;
use ncclctl_nccl::version::Version;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a job wants most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// Bytes per second.
    Throughput,
    /// Short messages.
    Latency,
    /// No silent fall-back, early and clear errors.
    Stability,
}

/// How the nodes of a job speak with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// InfiniBand verbs.
    Infiniband,
    /// RDMA over Ethernet.
    Roce,
    /// AWS EFA, through the OFI plug-in.
    Efa,
    /// GPUDirect-TCPX or TCPXO, through Google's plug-in.
    Tcpx,
    /// TCP sockets.
    Socket,
}

impl Transport {
    /// Name for the reader.
    pub fn name(self) -> &'static str {
        match self {
            Self::Infiniband => "InfiniBand",
            Self::Roce => "RoCE",
            Self::Efa => "EFA",
            Self::Tcpx => "GPUDirect-TCPX",
            Self::Socket => "TCP sockets",
        }
    }
}

/// Where a setting belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The same on every node: env file, Compose, pod.
    Job,
    /// Of this node alone: its own nccl.conf.
    Node,
}

/// One setting with its reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
    /// Where it belongs.
    pub layer: Layer,
    /// Planning rule.
    pub rule: String,
    /// Why, in a sentence.
    pub reason: String,
    /// Facts that the rule used.
    pub facts: Vec<String>,
    /// What happens without it.
    pub without: String,
    /// First release that reads it; absent: all do.
    pub read_since: Option<Version>,
    /// Ranks that disagree about it may hang or fail: never to be set by one rank alone.
    pub shared: bool,
}

/// A setting that was left to NCCL on purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotSet {
    /// Name.
    pub name: String,
    /// Why.
    pub why: String,
}

/// Something that the container must be given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Need {
    /// What it is.
    pub kind: NeedKind,
    /// What, in words.
    pub what: String,
    /// Why.
    pub why: String,
    /// Whether this very container has it already; absent where that is not known.
    pub met: Option<bool>,
    /// Options of `docker run`.
    pub docker: Vec<String>,
    /// Lines of a Compose service.
    pub compose: Vec<String>,
    /// Lines of a pod, each under its path.
    pub pod: Vec<String>,
}

/// Kinds of needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names are the documentation")]
pub enum NeedKind {
    Gpus,
    SharedMemory,
    RdmaDevices,
    LockedMemory,
    Network,
    Imex,
    Plugin,
}

/// A doubt about a setting that is there already, or about the nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// Rule of the catalogue of findings.
    pub rule: String,
    /// Weight.
    pub weight: Weight,
    /// Nodes that it is about; empty: all.
    pub nodes: Vec<String>,
    /// What is there.
    pub what: String,
    /// Why that is doubtful.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

/// A port that must be open between nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Port {
    /// `tcp` or `udp`.
    pub protocol: String,
    /// First port.
    pub first: u16,
    /// Last port.
    pub last: u16,
    /// Who listens.
    pub what: String,
    /// Only on the loopback: nothing to open.
    pub local: bool,
}

/// Settings of one node alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodePlan {
    /// Host name.
    pub name: String,
    /// Settings.
    pub settings: Vec<Setting>,
}

/// A plan for the nodes of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Release that it is for.
    pub nccl: Version,
    /// How that release is known.
    pub nccl_from: String,
    /// What the job wants most, where it was said.
    pub goal: Option<Goal>,
    /// The one transport of the job.
    pub transport: Transport,
    /// Why that transport.
    pub transport_why: String,
    /// Settings that are the same on every node.
    pub settings: Vec<Setting>,
    /// Each node with the settings of its own.
    pub nodes: Vec<NodePlan>,
    /// What the containers must be given.
    pub needs: Vec<Need>,
    /// Doubts about what is there.
    pub questions: Vec<Question>,
    /// Ports between the nodes.
    pub ports: Vec<Port>,
    /// What was left to NCCL on purpose.
    pub not_set: Vec<NotSet>,
    /// GPUs of a node, the most that one has.
    pub gpus: usize,
}

impl Plan {
    /// Every setting that a node gets: the job's and its own.
    pub fn of_node(&self, name: &str) -> BTreeMap<&str, &Setting> {
        let own = self.nodes.iter().find(|n| n.name == name).map_or(&[][..], |n| &n.settings);
        self.settings.iter().chain(own).map(|s| (s.name.as_str(), s)).collect()
    }

    /// Every setting of the plan, the job's first.
    pub fn all(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter().chain(self.nodes.iter().flat_map(|n| &n.settings))
    }
}
