//! `ncclctl exec -- CMD…`: looks, sets what is needed and not set, and becomes the program.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::Args;
use ncclctl_facts::Root;
use ncclctl_nccl::doubt::Weight;
use ncclctl_plan::result::{Plan, Setting};
use ncclctl_plan::{Node, Request, plan, within};
use ncclctl_trial::Token;
use ncclctl_trial::agree::{Place, agree};
use ncclctl_trial::launch;

use super::look::{here, saved};
use crate::exit::{Coded, Exit as Code, environment};
use crate::quantity;

const EXAMPLES: &str = "\
Examples:
  ncclctl exec -- python train.py
  ncclctl exec --dry-run -- true
  ncclctl exec --plan /etc/ncclctl/plan.json -- torchrun train.py
  ENTRYPOINT [\"ncclctl\", \"exec\", \"--\"]

NCCLCTL_EXEC=off starts the program and does nothing else.";

/// Set what is needed here and the user has not set, then become the program: no process is left in
/// between, so that signals and the exit code are the program's own.
///
/// A value of the user's always wins. Alone it sets nothing that ranks must share; a plan of the whole
/// job, or --agree, decides that too. What can not be looked at never keeps the program from starting.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Exec {
    /// A plan of the job that `plan -o json` printed
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Say what would be set, and start nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not start the program where something is wrong: no look, no agreement, an error, a need
    /// that is not met
    #[arg(long)]
    strict: bool,
    /// Let the processes of the job agree over MASTER_ADDR on what they must share; all need the same
    /// NCCLCTL_TOKEN or NCCLCTL_TOKEN_FILE
    #[arg(long, conflicts_with = "plan")]
    agree: bool,
    /// Port of the agreement in the first process
    #[arg(long, value_name = "PORT", default_value = "29513", env = "NCCLCTL_AGREE_PORT")]
    agree_port: u16,
    /// How long to wait for the others
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = quantity::duration)]
    agree_timeout: Duration,
    /// The program and its arguments
    #[arg(
        value_name = "CMD",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Exec, quiet: bool) -> anyhow::Result<Code> {
    let root = Root::live();
    if root.variable("NCCLCTL_EXEC").is_some_and(|value| value.eq_ignore_ascii_case("off")) {
        return start(arguments, &BTreeMap::new());
    }
    let say = |text: &str| {
        if !quiet {
            anstream::eprintln!("ncclctl exec: {text}");
        }
    };
    let node = here();
    let (plan, shared) = match decide(arguments, &root, &node) {
        Ok(decided) => decided,
        Err(error) if arguments.strict => {
            return Err(environment(format!("exec --strict: {error:#}")));
        }
        Err(error) => {
            say(&format!("{error:#}; nothing that ranks must share is set"));
            (plan(std::slice::from_ref(&node), Request::default()), false)
        }
    };
    let own: Vec<&Setting> = if shared {
        plan.of_node(&node.name).into_values().collect()
    } else {
        within(&plan, &node.name, &[])
    };
    let mut set = BTreeMap::new();
    for setting in &own {
        match node.settings.get(&setting.name) {
            Some(yours) => say(&format!(
                "{}={yours} is yours and stays (the plan has {})",
                setting.name, setting.value
            )),
            None => {
                say(&format!(
                    "{}={} ({}: {})",
                    setting.name, setting.value, setting.rule, setting.reason
                ));
                set.insert(setting.name.clone(), setting.value.clone());
            }
        }
    }
    if !shared {
        for setting in plan.all().filter(|s| s.shared && !node.settings.contains_key(&s.name)) {
            say(&format!(
                "warning: {}={} would be right for nodes like this, but all ranks must share it: \
                 plan the whole job (--plan, --agree)",
                setting.name, setting.value
            ));
        }
    }
    let mut wrong = doubts(&plan, &node, &say);
    if own.is_empty() && !wrong {
        say("nothing to set: NCCL's own defaults are right here");
    }
    for need in plan.needs.iter().filter(|need| need.met == Some(false)) {
        say(&format!("warning: the container lacks {}: {}", need.what, need.why));
        wrong = true;
    }
    if arguments.strict && wrong {
        return Err(Coded {
            message: "exec --strict: the program was not started; see the lines above".to_owned(),
            exit: Code::Fail,
        }
        .into());
    }
    start(arguments, &set)
}

/// Says what is doubtful; whether something of it is an error.
fn doubts(plan: &Plan, node: &Node, say: &dyn Fn(&str)) -> bool {
    let mut wrong = false;
    for question in &plan.questions {
        let here = question.nodes.is_empty() || question.nodes.contains(&node.name);
        if here && question.weight >= Weight::Warning && question.rule != "env-differs-from-plan" {
            wrong |= question.weight == Weight::Error;
            say(&format!("warning: {}: {}; {}", question.rule, question.what, question.remedy));
        }
    }
    wrong
}

/// The plan, and whether it is the job's.
fn decide(arguments: &Exec, root: &Root, node: &Node) -> anyhow::Result<(Plan, bool)> {
    if let Some(path) = &arguments.plan {
        let job = saved(path)?;
        if job.nodes.iter().any(|planned| planned.name == node.name) {
            return Ok((job, true));
        }
        // a node that the plan does not know adds only what is its own
        let request = Request { nccl: Some(job.nccl), goal: job.goal };
        let here = plan(std::slice::from_ref(node), request);
        let decided: Vec<(&str, &str)> =
            job.settings.iter().map(|s| (s.name.as_str(), s.value.as_str())).collect();
        let own: Vec<Setting> = within(&here, &node.name, &decided).into_iter().cloned().collect();
        let mut merged = Plan { settings: job.settings, ..here };
        if let Some(first) = merged.nodes.first_mut() {
            first.settings = own;
        }
        return Ok((merged, true));
    }
    if arguments.agree {
        return Ok((agreed(arguments, root, node)?, true));
    }
    Ok((plan(std::slice::from_ref(node), Request::default()), false))
}

/// The plan that the processes of this launch agree on: the first plans for the nodes of all.
fn agreed(arguments: &Exec, root: &Root, node: &Node) -> anyhow::Result<Plan> {
    let Some(seat) = launch::seat(root.environment())? else {
        anyhow::bail!("--agree: no launcher's variables (RANK, WORLD_SIZE, MASTER_ADDR) are set");
    };
    let host = seat
        .first_host
        .or_else(|| root.variable("MASTER_ADDR").map(str::to_owned))
        .ok_or_else(|| anyhow::anyhow!("--agree: MASTER_ADDR is not set"))?;
    let token = match (root.variable("NCCLCTL_TOKEN_FILE"), root.variable("NCCLCTL_TOKEN")) {
        (Some(path), _) => Token::read(std::path::Path::new(path))?,
        (None, Some(text)) => Token::parse(text, "NCCLCTL_TOKEN")?,
        (None, None) => anyhow::bail!("--agree: set NCCLCTL_TOKEN_FILE or NCCLCTL_TOKEN"),
    };
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let place = Place {
        index: seat.index,
        world: seat.world,
        address: format!("{host}:{}", arguments.agree_port),
        patience: arguments.agree_timeout,
    };
    let plan = agree(&place, &token, node.clone(), |nodes: Vec<Node>| {
        // several processes of one host see one node
        let mut distinct: Vec<Node> = Vec::new();
        for node in nodes {
            if !distinct.iter().any(|other| other.name == node.name) {
                distinct.push(node);
            }
        }
        plan(&distinct, Request::default())
    })?;
    Ok(plan)
}

/// Becomes the program.
fn start(arguments: &Exec, set: &BTreeMap<String, String>) -> anyhow::Result<Code> {
    if arguments.dry_run {
        return Ok(Code::Pass);
    }
    let Some((program, rest)) = arguments.command.split_first() else {
        return Ok(Code::Usage);
    };
    let error = Command::new(program).args(rest).envs(set).exec();
    let exit = match error.kind() {
        std::io::ErrorKind::NotFound => Code::NotFound,
        _ => Code::NotExecutable,
    };
    let message = format!("{}: {error}", program.to_string_lossy());
    Err(Coded { message, exit }.into())
}
