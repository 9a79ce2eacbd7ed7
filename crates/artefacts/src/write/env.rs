//! `nccl.env`: an env file for Docker and Compose. The same names in every node's file; a node with
//! settings of its own gets a file of its own.

use std::fmt::Write as _;

use ncclctl_plan::result::Setting;

use super::{File, Kind, Work, common, differs_by_node, header, why};

pub(super) fn write(work: Work<'_>) -> Vec<File> {
    let plan = work.plan;
    let mut files = vec![file("nccl.env", work, &common(plan))];
    if differs_by_node(plan) {
        for node in &plan.nodes {
            let all: Vec<&Setting> = plan.settings.iter().chain(&node.settings).collect();
            files.push(file(&format!("{}.nccl.env", node.name), work, &all));
        }
    }
    files
}

fn file(path: &str, work: Work<'_>, settings: &[&Setting]) -> File {
    let mut text = String::new();
    header(&mut text, Kind::Env, work.plan);
    text.push_str("# no quotes, no blanks around `=`: every character behind it is the value\n");
    if settings.is_empty() {
        text.push_str("# nothing to set: NCCL's own defaults are right here\n");
    }
    for setting in settings {
        let _ = writeln!(text, "\n{}\n{}={}", why(setting), setting.name, setting.value);
    }
    File { path: path.to_owned(), text }
}

#[cfg(test)]
mod tests {
    use super::super::{Choice, Work, tests::nodes};
    use ncclctl_plan::{Request, plan};

    #[test]
    fn an_env_file() {
        let nodes = nodes();
        let plan = plan(&nodes, Request::default());
        let files = super::write(Work { plan: &plan, nodes: &nodes, choice: &Choice::default() });
        assert_eq!(files.len(), 3, "the job's, and one of each node");
        insta::assert_snapshot!(files[1].text, @r"
        # made by ncclctl render env (ncclctl 0.1.0) from the plan for 2 nodes, NCCL 2.18.5: RoCE
        # renew it the same way; `ncclctl render env --check` says whether it is up to date
        # no quotes, no blanks around `=`: every character behind it is the value

        # gid-index: NCCL 2.18.5 takes entry 0 by default, RoCE v1 or link-local; this is the RoCE v2 entry with an IPv4 address
        NCCL_IB_GID_INDEX=3
        ");
    }
}
