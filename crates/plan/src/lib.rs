//! What nodes are, and which NCCL they run -> the settings that they need, each with its reason.
//!
//! Only what is needed is set: NCCL's own default wins unless there is a reason, and what was left
//! alone on purpose is listed too. Nothing in this crate does I/O. One rule is one file under
//! `rules/`, listed in [`rules::RULES`].

mod draft;
mod look;
pub mod node;
pub mod questions;
pub mod result;
pub mod rules;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use node::Node;
pub use result::{Goal, Plan, Setting};

use ncclctl_nccl::doubt::NEWEST;
use ncclctl_nccl::version::Version;

/// What is asked of the planner beside the nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// Release to plan for; else the oldest that was found, else the newest known.
    pub nccl: Option<Version>,
    /// What the job wants most.
    pub goal: Option<Goal>,
}

/// What one node may set by itself, within what the job has decided: nothing that ranks must share,
/// nothing that the job sets already, and no RDMA settings where the job uses sockets.
pub fn within<'a>(plan: &'a Plan, node: &str, job: &[(&str, &str)]) -> Vec<&'a Setting> {
    let sockets = job.iter().any(|(name, value)| match *name {
        "NCCL_NET" => value.eq_ignore_ascii_case("socket"),
        "NCCL_IB_DISABLE" => *value == "1",
        _ => false,
    });
    plan.of_node(node)
        .into_values()
        .filter(|s| !s.shared)
        .filter(|s| !job.iter().any(|(name, _)| *name == s.name))
        .filter(|s| !(sockets && s.name.starts_with("NCCL_IB_")))
        .collect()
}

/// Plans for the nodes of one job. One node stands for a job of nodes like it.
pub fn plan(nodes: &[Node], request: Request) -> Plan {
    let found = nodes.iter().filter_map(|node| node.nccl).min();
    let (nccl, nccl_from) = match (request.nccl, found) {
        (Some(version), _) => (version, "as asked".to_owned()),
        (None, Some(version)) => {
            let mixed = nodes.iter().filter_map(|n| n.nccl).any(|v| v != version);
            let from = if mixed { "oldest that was found" } else { "found" };
            (version, from.to_owned())
        }
        (None, None) => (NEWEST, "newest known, none was found".to_owned()),
    };
    let look = look::Look::new(nodes, nccl, request.goal);
    let mut draft = draft::Draft::new(nodes, nccl);
    for rule in rules::RULES {
        draft.rule = rule.id;
        (rule.plan)(&look, &mut draft);
    }
    let mut plan = draft.finish(&look, nccl_from);
    plan.questions = questions::ask(nodes, &plan);
    plan
}
