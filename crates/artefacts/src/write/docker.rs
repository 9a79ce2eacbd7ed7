//! `docker run` with everything that the plan asks of the container.

use std::fmt::Write as _;

use ncclctl_plan::result::NeedKind;

use super::{File, Kind, Work, common, differs_by_node, header, needs};

pub(super) fn write(work: Work<'_>) -> Vec<File> {
    let (plan, choice) = (work.plan, work.choice);
    let mut text = String::from("#!/bin/sh\n");
    header(&mut text, Kind::Docker, plan);
    for need in &plan.needs {
        let _ = writeln!(text, "# {}: {}", need.what, need.why);
    }
    if !choice.root {
        text.push_str(
            "# IPC_LOCK is left out: it counts for UID 0 only; the memlock limit is what counts\n",
        );
    }
    if differs_by_node(plan) {
        text.push_str("# nodes differ: use the file of the node, NODE.nccl.env\n");
    }
    text.push_str("set -eu\nexec docker run --rm");
    let mut options: Vec<String> = plan.needs.iter().flat_map(|n| n.docker.clone()).collect();
    options.push("--security-opt no-new-privileges".into());
    options.push("--cap-drop ALL".into());
    if choice.root && needs(plan, NeedKind::LockedMemory) {
        options.push("--cap-add IPC_LOCK".into());
    }
    if !choice.root {
        options.push("--user 1000:1000".into());
    }
    if !common(plan).is_empty() || differs_by_node(plan) {
        let file = if differs_by_node(plan) { "\"$(hostname).nccl.env\"" } else { "nccl.env" };
        options.push(format!("--env-file {file}"));
    }
    for option in options {
        let _ = write!(text, " \\\n  {option}");
    }
    let _ = writeln!(text, " \\\n  {} \"$@\"", choice.mirrors.image(&choice.image));
    vec![File { path: "docker-run.sh".to_owned(), text }]
}

#[cfg(test)]
mod tests {
    use super::super::{Choice, Work, tests::nodes};
    use ncclctl_plan::{Request, plan};

    #[test]
    fn a_line_for_docker() {
        let nodes = nodes();
        let plan = plan(&nodes, Request::default());
        let files = super::write(Work { plan: &plan, nodes: &nodes, choice: &Choice::default() });
        insta::assert_snapshot!(files[0].text, @r#"
        #!/bin/sh
        # made by ncclctl render docker (ncclctl 0.1.0) from the plan for 2 nodes, NCCL 2.18.5: RoCE
        # renew it the same way; `ncclctl render docker --check` says whether it is up to date
        # 2 GPUs with compute and utility: NCCL asks the driver and NVML for links and peers
        # /dev/shm of 2 GiB or more: it has 64 MiB; NCCL fails with `unhandled system error` when it is full
        # the RDMA device nodes: without them NCCL falls back to sockets without a message
        # unlimited locked memory: the limit is 64 KiB: registration of buffers fails
        # a network in which ranks reach each other: ranks of different nodes meet on ephemeral ports, and the GIDs of RoCE belong to the network namespace of the interface
        # IPC_LOCK is left out: it counts for UID 0 only; the memlock limit is what counts
        # nodes differ: use the file of the node, NODE.nccl.env
        set -eu
        exec docker run --rm \
          --gpus all \
          --shm-size=2g \
          --device /dev/infiniband \
          --ulimit memlock=-1 \
          --network host \
          --security-opt no-new-privileges \
          --cap-drop ALL \
          --user 1000:1000 \
          --env-file "$(hostname).nccl.env" \
          registry.example/train:1 "$@"
        "#);
    }
}
