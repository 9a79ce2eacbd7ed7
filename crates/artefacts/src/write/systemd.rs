//! For the host: `.link` files that give NICs names that stay, and the limit of locked memory for
//! the container runtimes.

use std::collections::BTreeMap;

use ncclctl_facts::net::Kind as LinkKind;
use ncclctl_plan::result::NeedKind;

use super::{File, Kind, Work, WriteError, header, needs};

pub(super) fn write(work: Work<'_>) -> Result<Vec<File>, WriteError> {
    let plan = work.plan;
    let mut files = Vec::new();
    let many = work.nodes.len() > 1;
    for node in work.nodes {
        // RDMA ports first: rails are numbered by PCI address, as NCCL 2.29.7 and later order them
        let mut rails: BTreeMap<&str, &str> = BTreeMap::new();
        let mut others: BTreeMap<&str, &str> = BTreeMap::new();
        for interface in &node.interfaces {
            let Some(pci) = interface.pci.as_deref() else { continue };
            if !matches!(interface.kind, LinkKind::Physical) {
                continue;
            }
            let rail = node.hcas.iter().any(|h| h.netdev.as_deref() == Some(&interface.name));
            let group = if rail { &mut rails } else { &mut others };
            group.insert(pci, &interface.name);
        }
        let named = rails
            .iter()
            .enumerate()
            .map(|(at, (pci, now))| (format!("rail{at:02}"), *pci, *now))
            .chain(
                others
                    .iter()
                    .enumerate()
                    .map(|(at, (pci, now))| (format!("host{at:02}"), *pci, *now)),
            );
        for (name, pci, now) in named {
            let folder = if many { format!("{}/", node.name) } else { String::new() };
            let mut text = String::new();
            header(&mut text, Kind::Systemd, plan);
            text.push_str(&format!(
                "# now {now}; two digits, so that no name is the beginning of another\n\
                 [Match]\nPath=pci-{pci}\n\n[Link]\nName={name}\n"
            ));
            let path = format!("{folder}etc/systemd/network/10-nccl-{name}.link");
            files.push(File { path, text });
        }
    }
    if needs(plan, NeedKind::LockedMemory) {
        for service in ["containerd", "docker"] {
            let mut text = String::new();
            header(&mut text, Kind::Systemd, plan);
            text.push_str(
                "# containers inherit this limit; RDMA registers buffers in locked memory\n\
                 [Service]\nLimitMEMLOCK=infinity\n",
            );
            let path = format!("etc/systemd/system/{service}.service.d/10-nccl-memlock.conf");
            files.push(File { path, text });
        }
    }
    if files.is_empty() {
        let why = if work.nodes.is_empty() {
            return Err(WriteError::NoNodes("systemd"));
        } else {
            "no NIC with a PCI address, and no RDMA: there is nothing for systemd to do"
        };
        return Err(WriteError::Nothing(why.to_owned()));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::super::{Choice, Work, tests::nodes};
    use ncclctl_plan::{Request, plan};

    #[test]
    fn names_that_stay() {
        let nodes = &nodes()[..1];
        let plan = plan(nodes, Request::default());
        let files = super::write(Work { plan: &plan, nodes, choice: &Choice::default() }).unwrap();
        let all: Vec<String> = files.iter().map(|f| format!("== {}\n{}", f.path, f.text)).collect();
        insta::assert_snapshot!(all.join(""), @r"
        == etc/systemd/network/10-nccl-rail00.link
        # made by ncclctl render systemd (ncclctl 0.1.0) from the plan for roce1, NCCL 2.18.5: RoCE
        # renew it the same way; `ncclctl render systemd --check` says whether it is up to date
        # now enp59s0f1; two digits, so that no name is the beginning of another
        [Match]
        Path=pci-0000:3b:00.1

        [Link]
        Name=rail00
        == etc/systemd/network/10-nccl-host00.link
        # made by ncclctl render systemd (ncclctl 0.1.0) from the plan for roce1, NCCL 2.18.5: RoCE
        # renew it the same way; `ncclctl render systemd --check` says whether it is up to date
        # now enp5s0f0; two digits, so that no name is the beginning of another
        [Match]
        Path=pci-0000:05:00.0

        [Link]
        Name=host00
        == etc/systemd/system/containerd.service.d/10-nccl-memlock.conf
        # made by ncclctl render systemd (ncclctl 0.1.0) from the plan for roce1, NCCL 2.18.5: RoCE
        # renew it the same way; `ncclctl render systemd --check` says whether it is up to date
        # containers inherit this limit; RDMA registers buffers in locked memory
        [Service]
        LimitMEMLOCK=infinity
        == etc/systemd/system/docker.service.d/10-nccl-memlock.conf
        # made by ncclctl render systemd (ncclctl 0.1.0) from the plan for roce1, NCCL 2.18.5: RoCE
        # renew it the same way; `ncclctl render systemd --check` says whether it is up to date
        # containers inherit this limit; RDMA registers buffers in locked memory
        [Service]
        LimitMEMLOCK=infinity
        ");
    }
}
