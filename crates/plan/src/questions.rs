//! Doubts about settings that are there already, and about the nodes themselves.

use ncclctl_nccl::doubt::{self, Weight};
use ncclctl_nccl::ifname::Filter;
use ncclctl_nccl::version::Version;

use crate::node::{Node, Provider};
use crate::result::{Plan, Question, Transport};

/// Asks about what is there. What the plan itself sets is not doubted.
pub(crate) fn ask(nodes: &[Node], plan: &Plan) -> Vec<Question> {
    let mut found: Vec<Question> = Vec::new();
    for node in nodes {
        let wanted = plan.of_node(&node.name);
        let present: Vec<(&str, &str)> =
            node.settings.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        for d in doubt::doubts_of(&present, Some(plan.nccl)) {
            let planned = wanted.get(d.name.as_str()).map(|s| s.value.as_str());
            if planned.is_some() && planned == node.settings.get(&d.name).map(String::as_str) {
                continue;
            }
            add(&mut found, node, d.rule, d.weight, d.what, d.cause, d.remedy);
        }
        differs(node, plan, &mut found);
        named_interfaces(node, &mut found);
        named_devices(node, &mut found);
        machine(node, plan, &mut found);
    }
    mismatch(nodes, &mut found);
    found.sort_by_key(|q| std::cmp::Reverse(q.weight));
    found
}

fn add(
    found: &mut Vec<Question>,
    node: &Node,
    rule: &str,
    weight: Weight,
    what: String,
    cause: String,
    remedy: String,
) {
    let same = found.iter_mut().find(|q| q.rule == rule && q.what == what);
    match same {
        Some(question) => question.nodes.push(node.name.clone()),
        None => found.push(Question {
            rule: rule.to_owned(),
            weight,
            nodes: vec![node.name.clone()],
            what,
            cause,
            remedy,
        }),
    }
}

/// A value of the user's that is not the plan's.
fn differs(node: &Node, plan: &Plan, found: &mut Vec<Question>) {
    for (name, setting) in plan.of_node(&node.name) {
        let Some(own) = node.settings.get(name).filter(|own| **own != setting.value) else {
            continue;
        };
        add(
            found,
            node,
            "env-differs-from-plan",
            if setting.shared { Weight::Warning } else { Weight::Info },
            format!("{name}={own} is set; the plan has {}", setting.value),
            setting.reason.clone(),
            format!("yours wins; take it out to follow the plan ({})", setting.without),
        );
    }
}

fn named_interfaces(node: &Node, found: &mut Vec<Question>) {
    let Some(value) = node.settings.get("NCCL_SOCKET_IFNAME") else { return };
    let Some(filter) = Filter::parse(value) else { return };
    if node.interfaces.is_empty() {
        return;
    }
    let here: Vec<&str> = node.interfaces.iter().map(|i| i.name.as_str()).collect();
    let taken: Vec<&str> = node
        .interfaces
        .iter()
        .filter(|i| i.running && !i.addresses.is_empty() && filter.admits(&i.name))
        .map(|i| i.name.as_str())
        .collect();
    if taken.is_empty() {
        add(
            found,
            node,
            "socket-ifname-not-found",
            Weight::Error,
            format!("NCCL_SOCKET_IFNAME={value} takes no interface of this node"),
            format!("init fails with `no socket interface found`; here are {}", here.join(", ")),
            "unset it, or name one of these".to_owned(),
        );
    } else if filter.exclude && taken.contains(&"lo") {
        add(
            found,
            node,
            "socket-ifname-loopback",
            Weight::Error,
            format!("NCCL_SOCKET_IFNAME={value} lets the loopback in"),
            "an own exclusion takes the place of NCCL's, which leaves lo and docker out".to_owned(),
            format!("write {value},lo"),
        );
    } else if !filter.exclude && !filter.exact {
        for entry in &filter.entries {
            let more: Vec<&str> =
                taken.iter().copied().filter(|t| t.starts_with(entry) && t != entry).collect();
            if taken.contains(entry) && !more.is_empty() {
                add(
                    found,
                    node,
                    "ifname-prefix-too-wide",
                    Weight::Warning,
                    format!("NCCL_SOCKET_IFNAME={value} also takes {}", more.join(", ")),
                    "names match as prefixes".to_owned(),
                    format!("write NCCL_SOCKET_IFNAME=={}", filter.entries.join(",")),
                );
            }
        }
    }
}

fn named_devices(node: &Node, found: &mut Vec<Question>) {
    let Some(value) = node.settings.get("NCCL_IB_HCA") else { return };
    let Some(filter) = Filter::parse(value) else { return };
    if filter.exclude || filter.exact || node.hcas.is_empty() {
        return;
    }
    for entry in &filter.entries {
        let taken: Vec<&str> = node
            .hcas
            .iter()
            .map(|h| h.name.as_str())
            .filter(|name| name.starts_with(entry) && name != entry)
            .collect();
        if node.hcas.iter().any(|h| h.name == *entry) && !taken.is_empty() {
            add(
                found,
                node,
                "hca-prefix-too-wide",
                Weight::Warning,
                format!("NCCL_IB_HCA={value} also takes {}", taken.join(", ")),
                "names match as prefixes".to_owned(),
                format!("write NCCL_IB_HCA=={}", filter.entries.join(",")),
            );
        }
    }
}

fn machine(node: &Node, plan: &Plan, found: &mut Vec<Question>) {
    if node.acs == Some(true) && node.hypervisor.is_none() && node.gpus.len() > 1 {
        add(
            found,
            node,
            "acs-enabled",
            Weight::Warning,
            "PCIe access control (ACS) redirects traffic between devices".to_owned(),
            "peer and GPUDirect traffic goes up to the root complex and back: slow, or stuck"
                .to_owned(),
            "switch ACS off on the bridges above GPUs and NICs, or in the firmware".to_owned(),
        );
    }
    let hidden = node.hypervisor.is_some() && node.flat_pci == Some(true) && node.gpus.len() > 1;
    let given = plan.of_node(&node.name).contains_key("NCCL_TOPO_FILE")
        || node.settings.contains_key("NCCL_TOPO_FILE")
        || !node.topology_files.is_empty()
        // the OFI plug-in brings the file of each instance type itself
        || (matches!(node.provider, Provider::Efa(_)) && !node.net_plugins.is_empty());
    if hidden && !given {
        add(
            found,
            node,
            "vm-topology-missing",
            Weight::Warning,
            "the virtual machine hides the PCI tree".to_owned(),
            "every GPU looks equally far from every NIC".to_owned(),
            "ask the provider for the topology file of this size; ncclctl render topo writes one to \
             complete"
                .to_owned(),
        );
    }
    let rdma = matches!(plan.transport, Transport::Infiniband | Transport::Roce);
    if rdma && node.gdr_ready == Some(false) {
        add(
            found,
            node,
            "gdr-disabled",
            Weight::Warning,
            "the NICs can not reach GPU memory".to_owned(),
            "data goes through host memory, which costs a good part of the NIC's rate".to_owned(),
            "see gpudirect in `ncclctl facts` for the missing part; mostly `modprobe nvidia_peermem` \
             on the host, or the open kernel modules"
                .to_owned(),
        );
    }
    if plan.nccl < Version::new(2, 31, 0) && node.gpus.iter().any(|g| g.mig) {
        add(
            found,
            node,
            "mig-not-supported",
            Weight::Warning,
            "GPUs are cut into MIG slices".to_owned(),
            "before NCCL 2.31 two slices of one GPU count as the same GPU, and init refuses them"
                .to_owned(),
            "whole GPUs for jobs of several ranks; a rank on one slice alone is fine".to_owned(),
        );
    }
    if node.gpus.iter().any(|g| g.peer_broken) {
        add(
            found,
            node,
            "p2p-broken",
            Weight::Warning,
            "the driver reports peer access between GPUs as broken".to_owned(),
            "an NVLink or the fabric manager is down".to_owned(),
            "nvidia-smi topo -p2p r; restart nvidia-fabricmanager and reset the GPUs".to_owned(),
        );
    }
    if plan.transport == Transport::Socket && node.hcas.iter().any(|h| h.active) {
        let efa = matches!(node.provider, Provider::Efa(_));
        add(
            found,
            node,
            if efa { "net-plugin-not-found" } else { "silent-tcp-fallback" },
            Weight::Warning,
            "there are active RDMA ports that the job does not use".to_owned(),
            plan.transport_why.clone(),
            "see what the container must be given, then plan again".to_owned(),
        );
    }
}

/// The same setting with different values where that matters.
fn mismatch(nodes: &[Node], found: &mut Vec<Question>) {
    let mut names: Vec<&String> = nodes.iter().flat_map(|n| n.settings.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        if !ncclctl_nccl::params::get(name).is_some_and(ncclctl_nccl::params::Param::must_match) {
            continue;
        }
        let mut values: Vec<&str> =
            nodes.iter().map(|n| n.settings.get(name).map_or("(unset)", String::as_str)).collect();
        values.sort_unstable();
        values.dedup();
        if values.len() > 1 {
            found.push(Question {
                rule: "env-mismatch-across-ranks".to_owned(),
                weight: Weight::Error,
                nodes: Vec::new(),
                what: format!("{name} is {} on different nodes", values.join(" and ")),
                cause: "ranks must agree about it, else they hang or fail".to_owned(),
                remedy: "set it once, for the whole job".to_owned(),
            });
        }
    }
}
