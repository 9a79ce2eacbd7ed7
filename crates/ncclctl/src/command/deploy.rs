//! `ncclctl deploy`: a trial in containers of a Docker engine.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ncclctl_docker::{Ended, Engine, Network, Workers};
use ncclctl_facts::Root;
use ncclctl_nccl::size;
use ncclctl_report::BenchResult;

use crate::exit::{Coded, Exit, environment, usage};
use crate::output::{self, Format};
use crate::{input, quantity};

const EXAMPLES: &str = "\
Examples:
  ncclctl deploy --docker --workers 4 --image my/training:1
  ncclctl deploy --docker --workers 2 --gpus 4 --image my/training:1 -- -b 1M -e 1G
  ncclctl deploy --docker --host ssh://gpu7 --workers 2 --image ubuntu:22.04 --network macvlan=eth1
  ncclctl deploy --docker --workers 8 --image ubuntu:22.04 --name nightly --detach
  ncclctl status nightly; ncclctl logs nightly -f; ncclctl cleanup nightly";

/// Run a trial in containers and judge it as `bench` does.
///
/// This very binary is put into the containers, so any image with glibc will do: yours, with your
/// libnccl. They run as non-root, without capabilities, read-only, on a network of their own. The
/// run is removed at its end; options of `bench` come after `--`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Deploy {
    /// In containers of a Docker engine
    #[arg(long, required = true, help_heading = "Where")]
    docker: bool,
    #[command(flatten)]
    engine: Host,
    /// Workers, a container each
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Where")]
    workers: u32,
    /// Image of the workers; any with glibc, already on the engine
    #[arg(long, value_name = "IMAGE", help_heading = "Where")]
    image: String,
    /// bridge (an own one), host, macvlan=INTERFACE (an own one), or the name of a network that is there
    #[arg(long, value_name = "NETWORK", default_value = "bridge", help_heading = "Where")]
    network: String,

    /// GPUs of each worker, consecutive ones
    #[arg(long, value_name = "N", default_value = "0", help_heading = "What a worker gets")]
    gpus: u32,
    /// Device, repeatable, like /dev/infiniband/uverbs0
    #[arg(long, value_name = "PATH", help_heading = "What a worker gets")]
    device: Vec<String>,
    /// Size of /dev/shm
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size::parse, help_heading = "What a worker gets")]
    shm_size: u64,
    /// Memory limit [default: none]
    #[arg(long, value_name = "SIZE", value_parser = size::parse, help_heading = "What a worker gets")]
    memory: Option<u64>,
    /// User and group, numbers
    #[arg(
        long,
        value_name = "UID:GID",
        default_value = "65532:65532",
        help_heading = "What a worker gets"
    )]
    user: String,
    /// Unlimited locked memory, which RDMA needs
    #[arg(long, help_heading = "What a worker gets")]
    memlock: bool,
    /// Variable of the workers' environment, repeatable
    #[arg(long = "env", value_name = "NAME=VALUE", help_heading = "What a worker gets")]
    env: Vec<String>,
    /// Variables from a file, by Docker's rules
    #[arg(long, value_name = "FILE", help_heading = "What a worker gets")]
    env_file: Vec<PathBuf>,

    /// Name of the run [default: ncclctl-PID]
    #[arg(long, value_name = "NAME", help_heading = "The run")]
    name: Option<String>,
    /// Return at once; `status`, `logs` and `cleanup` go on
    #[arg(long, conflicts_with = "keep", help_heading = "The run")]
    detach: bool,
    /// Leave the containers when the run has ended
    #[arg(long, help_heading = "The run")]
    keep: bool,
    /// How long the run may take
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = quantity::duration, help_heading = "The run")]
    timeout: Duration,

    /// Output format
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    output: Format,
    /// Write everything that was measured to a file, for `ncclctl show`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    save: Option<PathBuf>,
    /// Options of `ncclctl bench`
    #[arg(last = true, value_name = "BENCH OPTIONS")]
    bench: Vec<String>,
}

/// Which engine.
#[derive(Debug, Args)]
pub(crate) struct Host {
    /// Engine: unix:///PATH, ssh://USER@HOST or tcp://HOST:PORT [default: DOCKER_HOST, else this machine's]
    #[arg(long, value_name = "ADDRESS", help_heading = "Where")]
    pub(crate) host: Option<String>,
}

impl Host {
    /// Opens the engine.
    pub(crate) fn open(&self) -> anyhow::Result<Engine> {
        let root = Root::live();
        let endpoint = ncclctl_docker::Endpoint::find(self.host.as_deref(), root.environment())
            .map_err(|error| usage(error.to_string()))?;
        Engine::open(endpoint).map_err(|error| environment(error.to_string()))
    }
}

pub(crate) fn run(deploy: &Deploy, quiet: bool) -> anyhow::Result<Exit> {
    let workers = deploy.workers()?;
    let name = deploy.name()?;
    let broke = |error: ncclctl_docker::EngineError| environment(error.to_string());
    let engine = deploy.engine.open()?;
    let binary = input::own_binary()?;
    let run =
        ncclctl_docker::deploy(&engine, &name, &workers, &binary, &deploy.bench).map_err(broke)?;
    if deploy.detach {
        if !quiet {
            anstream::eprintln!(
                "run {name} is started: `ncclctl status {name}`, `ncclctl logs {name} -f`, `ncclctl cleanup {name}`"
            );
        }
        return Ok(Exit::Pass);
    }
    let ended = run.wait(deploy.timeout, |line| {
        // nobody needs to be told to start workers: they are started
        let asks = line.starts_with("listening on ") || line.starts_with("  ncclctl worker ");
        if !quiet && !asks {
            anstream::eprintln!("{line}");
        }
    });
    if !deploy.keep {
        ncclctl_docker::cleanup(&engine, &name).map_err(broke)?;
    }
    deploy.tell(&name, ended.map_err(broke)?, quiet)
}

impl Deploy {
    fn workers(&self) -> anyhow::Result<Workers> {
        let root = Root::live();
        let mut variables = std::collections::BTreeMap::new();
        for path in &self.env_file {
            variables.extend(input::env_file(path, root.environment())?);
        }
        for pair in &self.env {
            match pair.split_once('=') {
                Some((name, value)) if !name.is_empty() => {
                    variables.insert(name.to_owned(), value.to_owned());
                }
                _ => return Err(usage(format!("--env {pair}: write NAME=VALUE"))),
            }
        }
        let user = self.user.split_once(':').unwrap_or((&self.user, &self.user));
        let (Ok(uid), Ok(gid)) = (user.0.parse(), user.1.parse()) else {
            return Err(usage(format!("--user {}: write numbers, UID:GID", self.user)));
        };
        if let Some(path) = self.device.iter().find(|path| !path.starts_with("/dev/")) {
            return Err(usage(format!("--device {path}: a path under /dev/ is needed")));
        }
        // the last of two -o wins in no program that uses clap: say it here, where it can be understood
        if let Some(option) = self.bench.iter().find(|o| {
            ["-o", "--output", "--listen", "--workers", "--token-file", "--ranks", "--save"]
                .contains(&o.split('=').next().unwrap_or_default())
        }) {
            return Err(usage(format!(
                "-- {option}: deploy sets this itself; give its own options before `--`"
            )));
        }
        Ok(Workers {
            count: self.workers as usize,
            image: self.image.clone(),
            network: self.network()?,
            gpus: self.gpus as usize,
            devices: self.device.clone(),
            shm: self.shm_size,
            memory: self.memory.unwrap_or_default(),
            user: (uid, gid),
            memlock: self.memlock,
            environment: variables,
        })
    }

    fn network(&self) -> anyhow::Result<Network> {
        match self.network.split_once('=') {
            None if self.network == "bridge" => Ok(Network::Bridge),
            None if self.network == "host" => Ok(Network::Host),
            None if self.network == "none" => Err(usage(
                "--network none: workers could not reach each other; `bridge` is an own network without a way out",
            )),
            None if !self.network.is_empty() => Ok(Network::Existing(self.network.clone())),
            Some(("macvlan", parent)) if !parent.is_empty() => {
                Ok(Network::Macvlan(parent.to_owned()))
            }
            _ => Err(usage(format!(
                "--network {}: bridge, host, macvlan=INTERFACE or the name of a network",
                self.network
            ))),
        }
    }

    fn name(&self) -> anyhow::Result<String> {
        let name = self.name.clone().unwrap_or_else(|| format!("ncclctl-{}", std::process::id()));
        let good = (2..=40).contains(&name.len())
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
        if good {
            Ok(name)
        } else {
            Err(usage(format!(
                "--name {name}: 2 to 40 letters, digits, `-`, `_`, `.`, the first a letter or digit"
            )))
        }
    }

    fn tell(&self, name: &str, ended: Ended, quiet: bool) -> anyhow::Result<Exit> {
        let losses = || ended.losses.iter().map(|loss| format!("\n  {loss}")).collect::<String>();
        let Ok(result) = BenchResult::read(&ended.output) else {
            // bench has said on standard error why there is none
            let exit = match ended.code {
                1 => Exit::Fail,
                2 => Exit::Usage,
                3 => Exit::Inconclusive,
                _ => Exit::Environment,
            };
            let message = format!("the coordinator ended with code {}{}", ended.code, losses());
            return Err(Coded { message, exit }.into());
        };
        let shown = output::print(&result, self.output);
        if let Some(path) = &self.save {
            output::save(path, &result)?;
        }
        shown?;
        if let Some(error) = &result.error {
            let exit = if ended.code == 2 { Exit::Usage } else { Exit::Environment };
            // bench has said it on standard error, which was passed on
            let error = if quiet { error.as_str() } else { "see above" };
            return Err(
                Coded { message: format!("run {name} broke: {error}{}", losses()), exit }.into()
            );
        }
        Ok(output::exit(&result, result.terms))
    }
}
