//! A Dockerfile on a named base image: RDMA user space, a user without rights, defaults that can be
//! overridden. Nothing of a node is baked in.

use std::fmt::Write as _;

use ncclctl_plan::result::NeedKind;

use super::{File, Kind, Work, header, needs, portable, why};

/// Words in the name of an image whose packages come by dnf.
const DNF: [&str; 9] =
    ["ubi", "rocky", "alma", "centos", "fedora", "rhel", "amazonlinux", "oracle", "redhat"];

pub(super) fn write(work: Work<'_>) -> Vec<File> {
    let (plan, choice) = (work.plan, work.choice);
    let mirrors = &choice.mirrors;
    let mut text = String::from("# syntax=docker/dockerfile:1\n");
    header(&mut text, Kind::Dockerfile, plan);
    text.push_str(
        "# names of interfaces, devices and files of a node do not belong into an image:\n",
    );
    text.push_str("# `ncclctl exec` finds them where the container runs, and never overrides a value of the user\n");
    for image in [&choice.base, &choice.tool_image] {
        if let Some(copy) = mirrors.copy(image) {
            let _ = writeln!(text, "# mirror: {copy}");
        }
    }
    let _ = writeln!(text, "ARG BASE={}", mirrors.image(&choice.base));
    let _ = writeln!(text, "FROM {} AS tool\n", mirrors.image(&choice.tool_image));
    text.push_str("FROM ${BASE}\n");
    let rdma = needs(plan, NeedKind::RdmaDevices);
    let dnf = DNF.iter().any(|word| choice.base.contains(word));
    if rdma {
        text.push_str(
            "\n# RDMA user space: without it NCCL falls back to sockets without a message\n",
        );
        if dnf {
            packages_dnf(&mut text);
        } else {
            packages_apt(&mut text, mirrors.apt.as_deref());
        }
    }
    if let Some(pip) = &mirrors.pip {
        text.push_str(
            "\n# a password for the index comes by a secret, at build time only:\n\
             # RUN --mount=type=secret,id=netrc,target=/root/.netrc pip install …\n",
        );
        let _ = writeln!(text, "ENV PIP_INDEX_URL={pip}");
    }
    let defaults = portable(plan);
    if !defaults.is_empty() {
        text.push_str("\n# defaults: -e, an env file or the pod overrides each\n");
        for setting in defaults {
            let _ = writeln!(text, "{}\nENV {}={}", why(setting), setting.name, setting.value);
        }
    }
    text.push_str(
        "\nCOPY --from=tool --chmod=0755 /usr/local/bin/ncclctl /usr/local/bin/ncclctl\n",
    );
    if choice.root {
        text.push_str("# UID 0 was asked for: IPC_LOCK counts for it\n");
    } else {
        text.push_str("USER 1000:1000\n");
    }
    text.push_str("ENTRYPOINT [\"ncclctl\", \"exec\", \"--\"]\n");
    vec![File { path: "Dockerfile".to_owned(), text }]
}

fn packages_apt(text: &mut String, mirror: Option<&str>) {
    text.push_str("RUN ");
    if let Some(mirror) = mirror {
        let _ = write!(
            text,
            "find /etc/apt -name '*.list' -o -name '*.sources' | xargs -r sed -i -E \
             's#https?://(archive.ubuntu.com|security.ubuntu.com|deb.debian.org)#{mirror}#g' \\\n \
             && "
        );
    }
    text.push_str(
        "apt-get update \\\n && apt-get install -y --no-install-recommends \
         libibverbs1 ibverbs-providers librdmacm1 libnuma1 \\\n && rm -rf /var/lib/apt/lists/*\n",
    );
}

fn packages_dnf(text: &mut String) {
    text.push_str("RUN dnf install -y libibverbs librdmacm numactl-libs && dnf clean all\n");
}

#[cfg(test)]
mod tests {
    use super::super::{Choice, Mirrors, Work, tests::nodes};
    use ncclctl_plan::{Request, plan};

    #[test]
    fn a_dockerfile() {
        let nodes = nodes();
        let plan = plan(&nodes, Request::default());
        let text = |choice: &Choice| {
            super::write(Work { plan: &plan, nodes: &nodes, choice })[0].text.clone()
        };
        insta::assert_snapshot!(text(&Choice::default()), @r#"
        # syntax=docker/dockerfile:1
        # made by ncclctl render dockerfile (ncclctl 0.1.0) from the plan for 2 nodes, NCCL 2.18.5: RoCE
        # renew it the same way; `ncclctl render dockerfile --check` says whether it is up to date
        # names of interfaces, devices and files of a node do not belong into an image:
        # `ncclctl exec` finds them where the container runs, and never overrides a value of the user
        ARG BASE=nvidia/cuda:12.8.1-runtime-ubuntu24.04
        FROM ghcr.io/ncclctl/ncclctl:0.1.0 AS tool

        FROM ${BASE}

        # RDMA user space: without it NCCL falls back to sockets without a message
        RUN apt-get update \
         && apt-get install -y --no-install-recommends libibverbs1 ibverbs-providers librdmacm1 libnuma1 \
         && rm -rf /var/lib/apt/lists/*

        COPY --from=tool --chmod=0755 /usr/local/bin/ncclctl /usr/local/bin/ncclctl
        USER 1000:1000
        ENTRYPOINT ["ncclctl", "exec", "--"]
        "#);
        let mirrors =
            Mirrors::parse("registry=reg.site,apt=http://deb.site,pip=https://pip.site/simple");
        let choice =
            Choice { base: "rockylinux:9".into(), mirrors: mirrors.unwrap(), ..Choice::default() };
        let text = text(&choice);
        assert!(text.contains("ARG BASE=reg.site/library/rockylinux:9"), "{text}");
        assert!(text.contains("dnf install") && !text.contains("apt-get"), "{text}");
        assert!(!text.contains("NCCL_SOCKET_IFNAME"), "nothing of a node: {text}");
    }
}
