//! The commands: one file each, and this list.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod cleanup;
pub(crate) mod completions;
pub(crate) mod deploy;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod facts;
pub(crate) mod lint;
pub(crate) mod logs;
pub(crate) mod look;
pub(crate) mod man;
pub(crate) mod plan;
pub(crate) mod rank;
pub(crate) mod render;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod vars;
pub(crate) mod worker;

use crate::arguments::{Arguments, Command};
use crate::exit::Exit;

/// Runs the command that was asked for.
pub(crate) fn run(arguments: Arguments) -> anyhow::Result<Exit> {
    let quiet = arguments.quiet;
    match arguments.command {
        Command::Bench(bench) => bench::run(&bench, quiet),
        Command::Worker(worker) => worker::run(&worker, quiet),
        Command::Show(show) => show::run(&show),
        Command::Explain(explain) => explain::run(&explain),
        Command::Plan(plan) => plan::run(&plan),
        Command::Render(render) => render::run(&render),
        Command::Exec(exec) => exec::run(&exec, quiet),
        Command::Check(check) => check::run(&check),
        Command::Facts(facts) => facts::run(&facts),
        Command::Lint(lint) => lint::run(&lint),
        Command::Vars(vars) => vars::run(&vars),
        Command::Deploy(deploy) => deploy::run(&deploy, quiet),
        Command::Status(status) => status::run(&status),
        Command::Logs(logs) => logs::run(&logs),
        Command::Cleanup(cleanup) => cleanup::run(&cleanup, quiet),
        Command::Rank(rank) => rank::run(&rank),
        Command::Completions(completions) => completions::run(&completions),
        Command::Man(man) => man::run(&man),
    }
}
