//! `ncclctl render`: files from a plan.

use std::path::{Path, PathBuf};

use clap::Args;
use ncclctl_artefacts::write::{Affinity, Choice, File, Kind, Mirrors, Work, write};
use ncclctl_nccl::conf;
use ncclctl_nccl::params;
use ncclctl_plan::result::{Layer, Plan, Setting};
use ncclctl_plan::{Node, within};

use super::look::{Look, saved};
use crate::exit::{Exit, usage};
use crate::{input, output};

const EXAMPLES: &str = "\
Examples:
  ncclctl render env > nccl.env
  ncclctl render kubernetes --fleet nodes/ --init --affinity preferred --dir k8s/
  ncclctl render kubernetes --fleet nodes/ --init --affinity preferred --dir k8s/ --check
  ncclctl render compose --override --name train --dir .
  ncclctl render dockerfile --base nvcr.io/nvidia/pytorch:25.06-py3 --mirror registry=mirror.site:5000";

/// Render files from a plan: each says what made it and why, and is the same for the same plan.
///
/// Without --plan this machine is looked at first. Without --dir the files go to standard output.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Render {
    /// What to write
    kind: KindName,
    #[command(flatten)]
    look: Look,
    /// A plan that `plan -o json` printed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "fleet", "nccl", "goal"])]
    plan: Option<PathBuf>,
    /// nccl.conf with what the job has decided; this node adds only what is its own
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plan", "fleet"])]
    job: Option<PathBuf>,
    /// Folder to write the files to
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write nothing; say whether the files in --dir are up to date
    #[arg(long, requires = "dir")]
    check: bool,
    /// Image that runs
    #[arg(long)]
    image: Option<String>,
    /// Base image of a Dockerfile
    #[arg(long, value_name = "IMAGE")]
    base: Option<String>,
    /// Image that holds ncclctl
    #[arg(long, value_name = "IMAGE")]
    tool_image: Option<String>,
    /// Name of the container or service
    #[arg(long)]
    name: Option<String>,
    /// Namespace in the cluster
    #[arg(short = 'n', long)]
    namespace: Option<String>,
    /// Extended resource that gives RDMA devices [default: rdma/hca]
    #[arg(long, value_name = "NAME")]
    rdma_resource: Option<String>,
    /// Network attachment of the RDMA CNI
    #[arg(long, value_name = "NAME")]
    rdma_network: Option<String>,
    /// Mirrors of this site: apt=…,pip=…,registry=…
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    mirror: String,
    /// How much pods want nodes with rdma=available
    #[arg(long, value_name = "HOW", default_value = "absent")]
    affinity: AffinityName,
    /// Run as UID 0, where IPC_LOCK counts
    #[arg(long)]
    root: bool,
    /// An init container plans for the node that a pod lands on
    #[arg(long)]
    init: bool,
    /// A DaemonSet keeps an nccl.conf on every node
    #[arg(long)]
    daemonset: bool,
    /// Only what is added to a Compose file that exists
    #[arg(long = "override")]
    override_only: bool,
    /// The job has a key for NCCL's TCP traffic (NCCL 2.32 and later), kept in a Secret
    #[arg(long)]
    psk: bool,
    /// Topology XML to put into the ConfigMap
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
}

/// Kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum KindName {
    /// A `docker run` line
    Docker,
    /// A Compose file, or an override
    Compose,
    /// nccl.env
    Env,
    /// nccl.conf
    Conf,
    /// ConfigMap, pod patch, and what goes with them
    Kubernetes,
    /// A Dockerfile
    Dockerfile,
    /// A topology file to complete
    Topo,
    /// .link files and limits for the host
    Systemd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum AffinityName {
    /// Only there
    Required,
    /// There first
    Preferred,
    /// No matter
    Absent,
}

impl From<KindName> for Kind {
    fn from(name: KindName) -> Self {
        match name {
            KindName::Docker => Self::Docker,
            KindName::Compose => Self::Compose,
            KindName::Env => Self::Env,
            KindName::Conf => Self::Conf,
            KindName::Kubernetes => Self::Kubernetes,
            KindName::Dockerfile => Self::Dockerfile,
            KindName::Topo => Self::Topo,
            KindName::Systemd => Self::Systemd,
        }
    }
}

pub(crate) fn run(arguments: &Render) -> anyhow::Result<Exit> {
    let choice = choice(arguments)?;
    let (plan, nodes) = planned(arguments)?;
    if choice.psk && !params::get("NCCL_PSK").is_some_and(|p| p.read_in(plan.nccl)) {
        return Err(usage(format!("--psk: NCCL {} does not read NCCL_PSK; 2.32 does", plan.nccl)));
    }
    let work = Work { plan: &plan, nodes: &nodes, choice: &choice };
    let files = write(arguments.kind.into(), work).map_err(|error| usage(error.to_string()))?;
    match &arguments.dir {
        Some(dir) if arguments.check => check(dir, &files),
        Some(dir) => {
            for file in &files {
                output::write_file(&dir.join(&file.path), &file.text)?;
            }
            Ok(Exit::Pass)
        }
        None => {
            let mut text = String::new();
            for file in &files {
                if files.len() > 1 {
                    let separator = if file.path.ends_with(".yaml") { "---\n" } else { "" };
                    text.push_str(&format!("{separator}# file: {}\n", file.path));
                }
                text.push_str(&file.text);
            }
            output::text(&text)?;
            Ok(Exit::Pass)
        }
    }
}

fn planned(arguments: &Render) -> anyhow::Result<(Plan, Vec<Node>)> {
    if let Some(path) = &arguments.plan {
        return Ok((saved(path)?, Vec::new()));
    }
    let nodes = arguments.look.nodes()?;
    let mut plan = arguments.look.plan(&nodes)?;
    if let Some(path) = &arguments.job {
        let text = input::text(path)?;
        let entries = conf::entries(&text);
        let job: Vec<(&str, &str)> = entries.iter().map(|(_, e)| (e.name, e.value)).collect();
        let own: Vec<Setting> = nodes
            .first()
            .map(|node| within(&plan, &node.name, &job).into_iter().cloned().collect())
            .unwrap_or_default();
        plan.settings = job.iter().map(|(name, value)| decided(name, value, path)).collect();
        if let Some(node) = plan.nodes.first_mut() {
            node.settings = own;
        }
    }
    Ok((plan, nodes))
}

/// A setting that the job has decided already.
fn decided(name: &str, value: &str, path: &Path) -> Setting {
    Setting {
        name: name.to_owned(),
        value: value.to_owned(),
        layer: Layer::Job,
        rule: "job".to_owned(),
        reason: format!("decided for the job in {}", path.display()),
        facts: Vec::new(),
        without: "this node would differ from the others".to_owned(),
        read_since: params::get(name).and_then(|p| p.since),
        shared: true,
    }
}

fn choice(arguments: &Render) -> anyhow::Result<Choice> {
    let or = |given: &Option<String>, default: String| given.clone().unwrap_or(default);
    let default = Choice::default();
    for (option, text) in [
        ("--image", &arguments.image),
        ("--base", &arguments.base),
        ("--tool-image", &arguments.tool_image),
        ("--name", &arguments.name),
        ("--namespace", &arguments.namespace),
        ("--rdma-resource", &arguments.rdma_resource),
        ("--rdma-network", &arguments.rdma_network),
    ] {
        if let Some(text) = text.as_ref().filter(|t| !is_name(t)) {
            return Err(usage(format!(
                "{option} {}: only letters, digits and . _ - / : @ can stand in a name",
                text.escape_debug()
            )));
        }
    }
    Ok(Choice {
        name: or(&arguments.name, default.name),
        image: or(&arguments.image, default.image),
        base: or(&arguments.base, default.base),
        tool_image: or(&arguments.tool_image, default.tool_image),
        namespace: arguments.namespace.clone(),
        rdma_resource: or(&arguments.rdma_resource, default.rdma_resource),
        rdma_network: arguments.rdma_network.clone(),
        mirrors: Mirrors::parse(&arguments.mirror)
            .map_err(|error| usage(format!("--mirror: {error}")))?,
        affinity: match arguments.affinity {
            AffinityName::Required => Affinity::Required,
            AffinityName::Preferred => Affinity::Preferred,
            AffinityName::Absent => Affinity::Absent,
        },
        root: arguments.root,
        init: arguments.init,
        daemonset: arguments.daemonset,
        override_only: arguments.override_only,
        psk: arguments.psk,
        topology: arguments.topology.as_deref().map(input::text).transpose()?,
    })
}

/// Text that can stand in every kind of file as it is.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/:@".contains(c))
}

fn check(dir: &Path, files: &[File]) -> anyhow::Result<Exit> {
    let mut stale = false;
    for file in files {
        let path = dir.join(&file.path);
        let state = match path.exists().then(|| input::text(&path)) {
            None => "is missing",
            Some(Ok(text)) if text == file.text => continue,
            Some(_) => "is out of date",
        };
        stale = true;
        anstream::eprintln!("ncclctl: {} {state}; render it again without --check", path.display());
    }
    Ok(if stale { Exit::Fail } else { Exit::Pass })
}
