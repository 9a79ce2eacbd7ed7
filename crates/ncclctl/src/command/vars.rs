//! `ncclctl vars`: the catalogue of NCCL's variables, and which value of each is in force.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ncclctl_facts::{Root, capture, settings};
use ncclctl_nccl::doubt::{NEWEST, Weight};
use ncclctl_nccl::layers::{self, Layer, LayerKind};
use ncclctl_nccl::params::{self, Param};
use ncclctl_nccl::version::Version;
use ncclctl_report::vars::{self, InForceResult, VarsResult};

use crate::exit::{Exit, environment, usage};
use crate::{input, output};

const EXAMPLES: &str = "\
Examples:
  ncclctl vars gid
  ncclctl vars show NCCL_IB_GID_INDEX
  ncclctl vars --nccl 2.21
  ncclctl vars --in-force
  ncclctl vars --in-force --pid 4711
  ncclctl vars --in-force --container train-1
  docker image inspect train:1 | ncclctl vars --in-force --image-env - --conf nccl.conf";

/// Every variable that NCCL reads, by release; and which value is in force, and why.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Vars {
    #[command(subcommand)]
    action: Option<Action>,
    /// Show only variables whose name or meaning holds all of these words
    #[arg(value_name = "WORD", conflicts_with = "in_force")]
    words: Vec<String>,
    /// Only what this release reads, with its defaults
    #[arg(long, value_name = "VERSION")]
    nccl: Option<Version>,
    /// Also what no release reads any more
    #[arg(long, conflicts_with_all = ["nccl", "in_force"])]
    removed: bool,
    /// Every setting in force, from which layer, and what NCCL makes of it
    #[arg(long)]
    in_force: bool,
    /// Look at this process instead of the own environment
    #[arg(long, value_name = "PID", requires = "in_force")]
    pid: Option<u32>,
    /// Look at this container of a Docker engine (DOCKER_HOST, else this machine's)
    #[arg(long, value_name = "ID", requires = "in_force", conflicts_with = "pid")]
    container: Option<String>,
    /// Environment of an image: NAME=VALUE lines, or what `docker image inspect` prints
    #[arg(long, value_name = "FILE", requires = "in_force")]
    image_env: Option<PathBuf>,
    /// Env file of a container
    #[arg(long, value_name = "FILE", requires = "in_force")]
    env_file: Vec<PathBuf>,
    /// File in NCCL's format; the first stands for /etc/nccl.conf, a second for the user's
    #[arg(long, value_name = "FILE", requires = "in_force", num_args = 1..=2)]
    conf: Vec<PathBuf>,
    /// Output format
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FORMAT",
        default_value = "table",
        global = true
    )]
    output: Format,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show all about one variable
    Show {
        /// Name, with or without NCCL_
        name: String,
        /// Say what this release makes of it
        #[arg(long, value_name = "VERSION")]
        nccl: Option<Version>,
    },
}

/// Output formats of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// For people
    Table,
    /// One JSON document
    Json,
}

pub(crate) fn run(arguments: &Vars) -> anyhow::Result<Exit> {
    match &arguments.action {
        Some(Action::Show { name, nccl }) => show(name, *nccl, arguments.output),
        None if arguments.in_force => in_force(arguments),
        None => list(arguments),
    }
}

fn list(arguments: &Vars) -> anyhow::Result<Exit> {
    let words: Vec<String> = arguments.words.iter().map(|w| w.to_ascii_lowercase()).collect();
    let wanted = |p: &&Param| {
        let in_time = match arguments.nccl {
            Some(version) => p.read_in(version),
            None => arguments.removed || !p.removed(),
        };
        let text = format!("{} {}", p.name, p.meaning).to_ascii_lowercase();
        in_time && words.iter().all(|word| text.contains(word.as_str()))
    };
    let result = VarsResult::new(params::all().iter().filter(wanted), arguments.nccl);
    if result.variables.is_empty() {
        return Err(usage(format!(
            "no variable has {} in its name or meaning; --removed looks at old ones too",
            arguments.words.join(" ")
        )));
    }
    let style = output::style("");
    output::text(&match arguments.output {
        Format::Table => vars::list(&result, style.width),
        Format::Json => serde_json::to_string_pretty(&result)? + "\n",
    })?;
    Ok(Exit::Pass)
}

fn show(name: &str, nccl: Option<Version>, format: Format) -> anyhow::Result<Exit> {
    let upper = name.to_ascii_uppercase();
    let param = params::get(&upper).or_else(|| params::get(&format!("NCCL_{upper}")));
    let Some(param) = param else {
        let hint = params::nearest(name).map_or_else(
            || "`ncclctl vars WORD` searches".to_owned(),
            |p| format!("{} was meant?", p.name),
        );
        return Err(usage(format!("no release of NCCL reads {name}; {hint}")));
    };
    output::text(&match format {
        Format::Table => vars::show(param, nccl, output::style("").width),
        Format::Json => serde_json::to_string_pretty(&VarsResult::new([param], nccl))? + "\n",
    })?;
    Ok(Exit::Pass)
}

fn in_force(arguments: &Vars) -> anyhow::Result<Exit> {
    let root = Root::live();
    let files = arguments.image_env.is_some()
        || !arguments.env_file.is_empty()
        || !arguments.conf.is_empty();
    let (tree, seen) = match &arguments.container {
        None => (None, None),
        Some(name) => {
            let broke = |error: ncclctl_docker::EngineError| environment(error.to_string());
            let engine = super::deploy::Host { host: None }.open()?;
            let seen = ncclctl_docker::container(&engine, name).map_err(broke)?;
            let tree = tempfile::tempdir()
                .map_err(|e| environment(format!("no temporary folder: {e}")))?;
            ncclctl_docker::files(&engine, &seen, tree.path()).map_err(broke)?;
            (Some(tree), Some(seen))
        }
    };
    let loaded = arguments.pid.and_then(|pid| settings::library_of(&root, pid));
    let (version, from) = match (arguments.nccl, loaded) {
        (Some(version), _) => (version, "--nccl".to_owned()),
        (None, Some(version)) => (version, "loaded by the process".to_owned()),
        (None, None) => (NEWEST, "the newest known; --nccl names another".to_owned()),
    };
    let outside = tree.as_ref().zip(seen.as_ref()).map(|(tree, seen)| {
        let root = capture::with_environment(tree.path(), seen.given.environment.clone());
        super::check::of_container(&root, seen, version)
    });
    let mut found = match arguments.pid {
        None if outside.is_some() => outside.unwrap_or_default(),
        Some(pid) => settings::of_process(&root, pid, version).map_err(|error| {
            environment(format!("/proc/{pid}/environ can not be read: {error}"))
        })?,
        None if files => settings::Layers::default(),
        None => settings::of_this(&root, version),
    };
    if let Some(path) = &arguments.image_env {
        let origin = path.display().to_string();
        let pairs = input::image_env(path)?;
        found.layers.push(Layer::pairs(LayerKind::ImageEnv, &origin, pairs));
    }
    for path in &arguments.env_file {
        let pairs = input::env_file(path, root.environment())?;
        found.layers.push(Layer::pairs(LayerKind::EnvFile, &path.display().to_string(), pairs));
    }
    for (path, kind) in arguments.conf.iter().zip([LayerKind::SystemConf, LayerKind::UserConf]) {
        let text = input::text(path)?;
        found.layers.push(Layer::conf(kind, &path.display().to_string(), &text, version));
    }
    let all = layers::in_force(&found.layers, version);
    let result = InForceResult::new(version, from, all, found.env_plugin, found.unread);
    output::text(&match arguments.output {
        Format::Table => vars::in_force(&result, output::style("").width),
        Format::Json => serde_json::to_string_pretty(&result)? + "\n",
    })?;
    let loud = result.doubts.iter().any(|doubt| doubt.weight >= Weight::Warning);
    Ok(if loud { Exit::Fail } else { Exit::Pass })
}
