//! A Compose file, or an override for one: GPUs, devices, limits, network, and workers by scale.

use std::fmt::Write as _;

use ncclctl_plan::result::NeedKind;

use super::yaml::scalar;
use super::{File, Kind, Work, common, differs_by_node, header, needs, shm_gib};

pub(super) fn write(work: Work<'_>) -> Vec<File> {
    let (plan, choice) = (work.plan, work.choice);
    let rdma = needs(plan, NeedKind::LockedMemory);
    let mut text = String::new();
    header(&mut text, Kind::Compose, plan);
    for need in &plan.needs {
        let _ = writeln!(text, "# {}: {}", need.what, need.why);
    }
    if choice.override_only {
        text.push_str("# use: docker compose -f compose.yaml -f compose.nccl.yaml up\n");
        let _ = writeln!(text, "services:\n  {}:", scalar(&choice.name));
        service(&mut text, work, rdma);
        return vec![File { path: "compose.nccl.yaml".to_owned(), text }];
    }
    text.push_str(
        "# use: openssl rand -hex 32 > token && docker compose up --scale worker=4\n\
         # the token lies in a file, never in an argument or in the environment\n",
    );
    text.push_str("services:\n  worker:\n");
    let _ = writeln!(text, "    image: {}", scalar(&choice.mirrors.image(&choice.image)));
    text.push_str("    init: true\n    restart: \"no\"\n");
    text.push_str("    cap_drop: [ALL]\n");
    if choice.root && rdma {
        text.push_str("    cap_add: [IPC_LOCK]\n");
    } else {
        text.push_str("    user: \"1000:1000\"\n");
    }
    text.push_str("    security_opt: [\"no-new-privileges:true\"]\n");
    text.push_str("    secrets: [token]\n    environment:\n");
    text.push_str("      NCCLCTL_TOKEN_FILE: /run/secrets/token\n");
    service(&mut text, work, rdma);
    text.push_str("secrets:\n  token:\n    file: ./token\n");
    vec![File { path: "compose.yaml".to_owned(), text }]
}

/// What NCCL needs of a service.
fn service(text: &mut String, work: Work<'_>, rdma: bool) {
    let plan = work.plan;
    let start = text.len();
    if differs_by_node(plan) {
        text.push_str("    # nodes differ: HOSTNAME=$(hostname) docker compose …\n");
        text.push_str("    env_file: [\"${HOSTNAME:?}.nccl.env\"]\n");
    } else if !common(plan).is_empty() {
        text.push_str("    env_file: [nccl.env]\n");
    }
    if needs(plan, NeedKind::Gpus) {
        text.push_str(
            "    deploy:\n      resources:\n        reservations:\n          devices:\n            \
             - {driver: nvidia, count: all, capabilities: [gpu]}\n",
        );
    }
    if let Some(size) = shm_gib(plan) {
        let _ = writeln!(text, "    shm_size: {size}gb");
    }
    let mut devices: Vec<&str> = Vec::new();
    if needs(plan, NeedKind::RdmaDevices) {
        devices.push("/dev/infiniband");
    }
    if needs(plan, NeedKind::Imex) {
        devices.push("/dev/nvidia-caps-imex-channels/channel0");
    }
    if !devices.is_empty() {
        let _ = writeln!(text, "    devices: [{}]", devices.join(", "));
    }
    if rdma {
        text.push_str("    ulimits:\n      memlock: -1\n");
        text.push_str("    # the GIDs of RoCE and the ephemeral ports are the host's\n");
        text.push_str("    network_mode: host\n");
    }
    // a service of nothing is no mapping
    if text.len() == start && work.choice.override_only {
        text.push_str("    {}\n");
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Choice, Work, tests::nodes};
    use ncclctl_plan::{Request, plan};

    #[test]
    fn a_file_and_an_override() {
        let nodes = &nodes()[..1];
        let plan = plan(nodes, Request::default());
        let text =
            |choice: &Choice| super::write(Work { plan: &plan, nodes, choice })[0].text.clone();
        insta::assert_snapshot!(text(&Choice { root: true, ..Choice::default() }), @r#"
        # made by ncclctl render compose (ncclctl 0.1.0) from the plan for roce1, NCCL 2.18.5: RoCE
        # renew it the same way; `ncclctl render compose --check` says whether it is up to date
        # 2 GPUs with compute and utility: NCCL asks the driver and NVML for links and peers
        # /dev/shm of 2 GiB or more: it has 64 MiB; NCCL fails with `unhandled system error` when it is full
        # the RDMA device nodes: without them NCCL falls back to sockets without a message
        # unlimited locked memory: the limit is 64 KiB: registration of buffers fails
        # a network in which ranks reach each other: ranks of different nodes meet on ephemeral ports, and the GIDs of RoCE belong to the network namespace of the interface
        # use: openssl rand -hex 32 > token && docker compose up --scale worker=4
        # the token lies in a file, never in an argument or in the environment
        services:
          worker:
            image: registry.example/train:1
            init: true
            restart: "no"
            cap_drop: [ALL]
            cap_add: [IPC_LOCK]
            security_opt: ["no-new-privileges:true"]
            secrets: [token]
            environment:
              NCCLCTL_TOKEN_FILE: /run/secrets/token
            env_file: [nccl.env]
            deploy:
              resources:
                reservations:
                  devices:
                    - {driver: nvidia, count: all, capabilities: [gpu]}
            shm_size: 2gb
            devices: [/dev/infiniband]
            ulimits:
              memlock: -1
            # the GIDs of RoCE and the ephemeral ports are the host's
            network_mode: host
        secrets:
          token:
            file: ./token
        "#);
        let choice = Choice { override_only: true, ..Choice::default() };
        insta::assert_snapshot!(text(&choice), @r"
        # made by ncclctl render compose (ncclctl 0.1.0) from the plan for roce1, NCCL 2.18.5: RoCE
        # renew it the same way; `ncclctl render compose --check` says whether it is up to date
        # 2 GPUs with compute and utility: NCCL asks the driver and NVML for links and peers
        # /dev/shm of 2 GiB or more: it has 64 MiB; NCCL fails with `unhandled system error` when it is full
        # the RDMA device nodes: without them NCCL falls back to sockets without a message
        # unlimited locked memory: the limit is 64 KiB: registration of buffers fails
        # a network in which ranks reach each other: ranks of different nodes meet on ephemeral ports, and the GIDs of RoCE belong to the network namespace of the interface
        # use: docker compose -f compose.yaml -f compose.nccl.yaml up
        services:
          train:
            env_file: [nccl.env]
            deploy:
              resources:
                reservations:
                  devices:
                    - {driver: nvidia, count: all, capabilities: [gpu]}
            shm_size: 2gb
            devices: [/dev/infiniband]
            ulimits:
              memlock: -1
            # the GIDs of RoCE and the ephemeral ports are the host's
            network_mode: host
        ");
    }
}
