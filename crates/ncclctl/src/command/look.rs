//! Which nodes a plan is for: this machine, a file, a folder of files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use ncclctl_facts::{Facts, Root, settings};
use ncclctl_nccl::doubt::NEWEST;
use ncclctl_nccl::layers;
use ncclctl_nccl::version::Version;
use ncclctl_plan::result::{Goal, Plan};
use ncclctl_plan::{Node, Request, plan};
use ncclctl_report::plan::PlanResult;

use crate::exit::usage;
use crate::input;

/// Where the nodes come from, and what the plan is for.
#[derive(Debug, Default, Args)]
pub(crate) struct Look {
    /// What `plan -o facts` printed, or a captured tree, instead of this machine
    #[arg(long, value_name = "PATH", conflicts_with = "fleet")]
    from: Option<PathBuf>,
    /// Folder with one of these for each node of the job
    #[arg(long, value_name = "DIR")]
    fleet: Option<PathBuf>,
    /// Release to plan for [default: the one that is found, else the newest known]
    #[arg(long, value_name = "VERSION")]
    nccl: Option<Version>,
    /// What the job wants most [default: nothing beyond what is needed]
    #[arg(long, value_name = "GOAL")]
    goal: Option<GoalName>,
}

/// Names of goals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum GoalName {
    /// Bytes per second
    Throughput,
    /// Short messages
    Latency,
    /// No silent fall-back, early and clear errors
    Stability,
}

/// Oldest release of the catalogue.
const OLDEST: Version = Version::new(2, 4, 2);

impl Look {
    /// Everything that is known of this machine, as a node of a fleet that is planned elsewhere.
    pub(crate) fn facts(&self) -> anyhow::Result<Facts> {
        if self.fleet.is_some() || self.from.as_ref().is_some_and(|path| !path.is_dir()) {
            return Err(usage("-o facts is for one machine: this one, or a captured tree"));
        }
        let root = match &self.from {
            Some(path) => Root::captured(path, BTreeMap::new()),
            None => Root::live(),
        };
        let mut facts = Facts::collect(&root);
        if self.from.is_none() {
            // what nccl.conf says is the user's word too, and no fact of its own
            facts.environment.extend(here().settings);
        }
        Ok(facts)
    }

    /// The nodes.
    pub(crate) fn nodes(&self) -> anyhow::Result<Vec<Node>> {
        let nodes = match (&self.from, &self.fleet) {
            (Some(path), _) => of(path)?,
            (None, Some(folder)) => {
                let mut nodes = Vec::new();
                for path in input::inside(folder)? {
                    nodes.extend(of(&path)?);
                }
                nodes
            }
            (None, None) => vec![here()],
        };
        if nodes.is_empty() {
            return Err(usage("no node: the folder holds neither .json files nor captured trees"));
        }
        let mut names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(usage(format!(
                "two nodes are called {}: settings of a node are found by its host name",
                pair[0]
            )));
        }
        Ok(nodes)
    }

    /// The plan for these nodes.
    pub(crate) fn plan(&self, nodes: &[Node]) -> anyhow::Result<Plan> {
        Ok(plan(nodes, self.request()?))
    }

    /// What is asked beside the nodes.
    pub(crate) fn request(&self) -> anyhow::Result<Request> {
        if let Some(version) = self.nccl.filter(|v| *v < OLDEST) {
            return Err(usage(format!("--nccl {version}: nothing older than {OLDEST} is known")));
        }
        let goal = self.goal.map(|goal| match goal {
            GoalName::Throughput => Goal::Throughput,
            GoalName::Latency => Goal::Latency,
            GoalName::Stability => Goal::Stability,
        });
        Ok(Request { nccl: self.nccl, goal })
    }
}

/// This machine.
pub(crate) fn here() -> Node {
    of_root(&Root::live())
}

fn of_root(root: &Root) -> Node {
    let facts = Facts::collect(root);
    let mut node = Node::from(&facts);
    let version = node.nccl.unwrap_or(NEWEST);
    // what nccl.conf says is the user's word too
    let root = match root.is_live() {
        true => root.clone(),
        false => Root::captured(root.path("/"), facts.environment),
    };
    let layers = settings::of_this(&root, version).layers;
    node.settings = layers::in_force(&layers, version)
        .into_iter()
        .map(|setting| (setting.name, setting.value))
        .collect();
    node
}

/// Nodes of a captured tree, or of a file of facts: one, or a list.
fn of(path: &Path) -> anyhow::Result<Vec<Node>> {
    let named = |mut node: Node| {
        if node.name.is_empty() || node.name == "unknown" {
            node.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        node
    };
    if path.is_dir() {
        return Ok(vec![named(of_root(&Root::captured(path, BTreeMap::new())))]);
    }
    let text = input::text(path)?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        usage(format!("{}:{line}:{column}: no JSON", path.display()))
    })?;
    // facts may stand in an envelope
    let inner = value.get("facts").unwrap_or(&value);
    let all: Vec<&serde_json::Value> = match inner {
        serde_json::Value::Array(all) => all.iter().collect(),
        one => vec![one],
    };
    all.into_iter()
        .map(|one| {
            let known = one.get("interfaces").is_some() && one.get("container").is_some();
            if !known {
                return Err(usage(format!(
                    "{}: no facts; `ncclctl plan -o facts` prints them",
                    path.display()
                )));
            }
            let facts: Facts = serde_json::from_value(one.clone())
                .map_err(|error| usage(format!("{}: {error}", path.display())))?;
            Ok(named(Node::from(&facts)))
        })
        .collect()
}

/// A plan that was saved.
pub(crate) fn saved(path: &Path) -> anyhow::Result<Plan> {
    let text = input::text(path)?;
    let result = PlanResult::read(&text).map_err(|error| {
        let why = std::error::Error::source(&error).map_or_else(String::new, |s| format!(": {s}"));
        usage(format!("{}: {error}{why}", path.display()))
    })?;
    Ok(result.plan)
}
