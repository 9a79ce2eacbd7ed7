//! `nccl.conf`: NCCL's own file. A comment holds no `=`: before 2.26.2 such a line sets a variable.

use std::fmt::Write as _;

use ncclctl_plan::result::Setting;

use super::{File, Kind, Work, common, differs_by_node, header, why};

pub(super) fn write(work: Work<'_>) -> Vec<File> {
    let plan = work.plan;
    let mut files = vec![File { path: "nccl.conf".to_owned(), text: text(work, &common(plan)) }];
    if differs_by_node(plan) {
        for node in &plan.nodes {
            let all: Vec<&Setting> = plan.settings.iter().chain(&node.settings).collect();
            files.push(File { path: format!("{}.nccl.conf", node.name), text: text(work, &all) });
        }
    }
    files
}

pub(super) fn text(work: Work<'_>, settings: &[&Setting]) -> String {
    let mut text = String::new();
    header(&mut text, Kind::Conf, work.plan);
    text.push_str(
        "# every value of the environment wins over this file; the environment plug-in over both\n",
    );
    if settings.is_empty() {
        text.push_str("# nothing to set: NCCL's own defaults are right here\n");
    }
    let mut out = text.replace('=', ":");
    for setting in settings {
        let comment = why(setting).replace('=', ":");
        let _ = writeln!(out, "{comment}\n{}={}", setting.name, setting.value);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{Choice, Work, tests::nodes};
    use ncclctl_nccl::conf::{What, read};
    use ncclctl_plan::{Request, plan};

    #[test]
    fn nccl_reads_back_what_was_planned() {
        let nodes = nodes();
        let plan = plan(&nodes, Request::default());
        for file in super::write(Work { plan: &plan, nodes: &nodes, choice: &Choice::default() }) {
            let node = file.path.strip_suffix(".nccl.conf").unwrap_or_default();
            let wanted: Vec<(&str, &str)> = plan
                .settings
                .iter()
                .chain(plan.nodes.iter().filter(|n| n.name == node).flat_map(|n| &n.settings))
                .map(|s| (s.name.as_str(), s.value.as_str()))
                .collect();
            let lines = read(&file.text);
            let found: Vec<(&str, &str)> = lines
                .iter()
                .filter_map(|l| match &l.what {
                    What::Entry(e) => Some((e.name, e.value)),
                    _ => None,
                })
                .collect();
            assert_eq!(found, wanted, "{}", file.path);
            let comments = file.text.lines().filter(|l| l.starts_with('#'));
            assert!(comments.into_iter().all(|l| !l.contains('=')), "{}", file.text);
        }
    }
}
