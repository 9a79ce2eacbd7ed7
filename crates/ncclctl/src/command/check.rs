//! `ncclctl check`: is this container, or that one, or an image fit for NCCL, before the job runs.

use clap::{Args, Subcommand};
use ncclctl_docker::Seen;
use ncclctl_facts::{Facts, Root, capture, settings};
use ncclctl_findings::check::{State, Subject, check};
use ncclctl_nccl::doubt::NEWEST;
use ncclctl_nccl::layers::{self, Layer, LayerKind};
use ncclctl_nccl::version::Version;
use ncclctl_report::check::{CheckResult, render};
use ncclctl_report::vars::InForceResult;

use super::deploy::Host;
use crate::exit::{Exit, environment};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  ncclctl check container
  ncclctl check docker train-1
  ncclctl check image registry.site/train:1
  ncclctl check image --nccl 2.21.5 --host ssh://root@gpu-7 train:1

Ends with 1 where something fails, so that a script can stop there.";

/// Is a container fit for NCCL: GPUs, driver, libnccl, RDMA, locked memory, /dev/shm, settings; and the exact
/// docker, Compose and pod lines for what is missing.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArguments {
    #[command(subcommand)]
    subject: What,
    /// Release to judge settings by [default: the one that is found, else the newest known]
    #[arg(long, value_name = "VERSION", global = true)]
    nccl: Option<Version>,
    /// Output format
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FORMAT",
        default_value = "table",
        global = true
    )]
    output: Format,
    /// Engine: unix:///PATH, ssh://USER@HOST or tcp://HOST:PORT [default: DOCKER_HOST, else this machine's]
    #[arg(long, value_name = "ADDRESS", global = true)]
    host: Option<String>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The container that this runs in
    Container,
    /// A container of a Docker engine, running or not, from outside
    Docker {
        /// Name or id
        name: String,
    },
    /// An image: looked into, never run
    Image {
        /// Name
        name: String,
    },
}

/// Output formats of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    Table,
    /// One JSON document
    Json,
}

pub(crate) fn run(arguments: &CheckArguments) -> anyhow::Result<Exit> {
    let result = match &arguments.subject {
        What::Container => here(arguments),
        What::Docker { name } => outside(arguments, Subject::Container, name)?,
        What::Image { name } => outside(arguments, Subject::Image, name)?,
    };
    output::text(&match arguments.output {
        Format::Table => render(&result, output::style("").width),
        Format::Json => serde_json::to_string_pretty(&result)? + "\n",
    })?;
    Ok(if result.state == State::Fail { Exit::Fail } else { Exit::Pass })
}

fn here(arguments: &CheckArguments) -> CheckResult {
    let root = Root::live();
    let facts = Facts::collect(&root);
    let (version, from) = version(arguments, &facts);
    let found = settings::of_this(&root, version);
    let settings = in_force(&found, version, from);
    CheckResult::new(
        Subject::Here,
        &facts.name.clone(),
        check(&facts, Subject::Here, arguments.nccl),
        settings,
    )
}

fn outside(
    arguments: &CheckArguments,
    subject: Subject,
    name: &str,
) -> anyhow::Result<CheckResult> {
    let broke = |error: ncclctl_docker::EngineError| environment(error.to_string());
    let engine = Host { host: arguments.host.clone() }.open()?;
    let mut seen = match subject {
        Subject::Image => ncclctl_docker::image(&engine, name),
        _ => ncclctl_docker::container(&engine, name),
    }
    .map_err(broke)?;
    let folder = tempfile::tempdir()
        .map_err(|error| environment(format!("no temporary folder: {error}")))?;
    ncclctl_docker::files(&engine, &seen, folder.path()).map_err(broke)?;
    // what the engine gives of its host is known where the host is this machine
    let local = engine.endpoint().is_local();
    let host = local.then(|| Facts::collect(&Root::live()));
    if seen.given.memlock.is_none() && local {
        seen.given.memlock = seen.pid.and_then(|pid| settings::memlock_of(&Root::live(), pid));
    }
    let root = capture::with_environment(folder.path(), seen.given.environment.clone());
    let facts = Facts::given(&root, &seen.given, host.as_ref());
    let (version, from) = version(arguments, &facts);
    let found = of_container(&root, &seen, version);
    let settings = in_force(&found, version, from);
    let checks = check(&facts, subject, arguments.nccl);
    Ok(CheckResult::new(subject, &seen.given.name, checks, settings))
}

/// Layers of a container: its files, the image's `ENV`, and what was set when it was made.
pub(crate) fn of_container(root: &Root, seen: &Seen, version: Version) -> settings::Layers {
    let mut found = settings::of_this(root, version);
    found.layers.retain(|layer| layer.kind != LayerKind::Process);
    let image = seen.image_environment.clone();
    let own: Vec<(String, String)> = seen
        .given
        .environment
        .iter()
        .filter(|(name, value)| image.get(*name) != Some(*value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    found.layers.push(Layer::pairs(LayerKind::ImageEnv, &seen.image, image));
    let kind = if seen.compose { LayerKind::Compose } else { LayerKind::Process };
    found.layers.push(Layer::pairs(kind, &format!("container {}", seen.given.name), own));
    found
}

fn version(arguments: &CheckArguments, facts: &Facts) -> (Version, String) {
    match (arguments.nccl, facts.software.nccl_version()) {
        (Some(version), _) => (version, "--nccl".to_owned()),
        (None, Some(version)) => (version, "found there".to_owned()),
        (None, None) => (NEWEST, "the newest known; --nccl names another".to_owned()),
    }
}

fn in_force(found: &settings::Layers, version: Version, from: String) -> InForceResult {
    let all = layers::in_force(&found.layers, version);
    InForceResult::new(version, from, all, found.env_plugin.clone(), found.unread.clone())
}
