//! What can be typed.

use clap::{Parser, Subcommand};

use crate::command;

/// Get NCCL right in containers: see what is there, measure what it gives, and learn why it is slow.
#[derive(Debug, Parser)]
#[command(
    name = "ncclctl",
    version,
    about,
    propagate_version = true,
    disable_help_subcommand = true,
    after_help = "Exit codes: 0 pass · 1 fail or findings · 2 bad arguments or input · 3 inconclusive · 4 the environment broke"
)]
pub(crate) struct Arguments {
    /// Say less: nothing on standard error but what needs an action
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Every command; each is a file under `command/`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure: real ranks, real traffic, and a verdict
    Bench(Box<command::bench::Bench>),
    /// Take part in a trial that is coordinated elsewhere
    Worker(command::worker::Worker),
    /// Show a saved result again, in any format
    Show(command::show::Show),
    /// Say why a run was slow, hung or failed, from anything that it left behind
    Explain(command::explain::Explain),
    /// Say which settings are needed here, and why
    Plan(command::plan::Plan),
    /// Write files from a plan: env file, nccl.conf, Compose, manifests, Dockerfile
    Render(Box<command::render::Render>),
    /// Set what is needed here and the user has not set, and become the program
    Exec(command::exec::Exec),
    /// Find mistakes in Dockerfiles, Compose files, manifests, env files, before anything runs
    Lint(command::lint::Lint),
    /// What this node or container really has, and what it can not see
    Facts(command::facts::FactsArguments),
    /// Is this container, another one or an image fit for NCCL
    Check(command::check::CheckArguments),
    /// Look variables of NCCL up, and see which values are in force
    Vars(command::vars::Vars),
    /// Measure in containers of a Docker engine
    Deploy(Box<command::deploy::Deploy>),
    /// Show the runs that `deploy` made
    Status(command::status::Status),
    /// Print what the containers of a run wrote
    Logs(command::logs::Logs),
    /// Remove what a run left
    Cleanup(command::cleanup::Cleanup),
    /// One rank of a trial; started by a worker
    #[command(hide = true)]
    Rank(command::rank::Rank),
    /// Write shell completions to standard output
    #[command(hide = true)]
    Completions(command::completions::Completions),
    /// Write a manual page to standard output
    #[command(hide = true)]
    Man(command::man::Man),
}
