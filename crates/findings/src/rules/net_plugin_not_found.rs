//! `net-plugin-not-found`: the needed network plugin is not on the loader path.
//!
//! ## What
//!
//! A network plugin was asked for, or is the only way to the RDMA devices, and the loader does not
//! find it.
//!
//! ## Why
//!
//! `NET/Plugin: Could not find: libnccl-net.so` is normal on InfiniBand and RoCE. On EFA and on
//! GPUDirect-TCPX(O) nodes the plugin is the only fast path.
//!
//! ## Example
//!
//! `p5en-worker-0 has EFA devices but no plugin: libnccl-net.so is not on LD_LIBRARY_PATH`
//!
//! ## Remedy
//!
//! Add the plugin's and libfabric's directories to LD_LIBRARY_PATH or /etc/ld.so.conf.d.
//!
//! ## Source
//!
//! NCCL src/plugin/plugin_open.cc.

use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;
use ncclctl_facts::Facts;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    incident: Some(look),
    ..Rule::new(
        "net-plugin-not-found",
        Severity::Error,
        "the needed network plugin is not on the loader path",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let missing = incident.notices(&[
        "Could not find:",
        "No plugin found",
        "Plugin load",
        "cannot open shared object file",
    ]);
    let missing: Vec<_> =
        missing.into_iter().filter(|n| n.text.starts_with("NET/Plugin")).collect();
    // asked for by name
    for p in &incident.log.processes {
        let network = p.setting("NCCL_NET").filter(|s| {
            !s.value.eq_ignore_ascii_case("IB") && !s.value.eq_ignore_ascii_case("Socket")
        });
        let plugin = p.setting("NCCL_NET_PLUGIN").filter(|s| s.value != "none");
        let Some(asked) = network.or(plugin) else { continue };
        let name = if network.is_some() { "NCCL_NET" } else { "NCCL_NET_PLUGIN" };
        let failed = incident.notices(&["Failed to initialize any NET plugin", "not found."]);
        let absent = missing.iter().find(|n| {
            incident.process(n).is_some_and(|o| o.host == p.host)
                && (plugin.is_none() || n.text.contains(&asked.value) || !failed.is_empty())
        });
        let Some(absent) = absent else { continue };
        let mut places = vec![&absent.at, &asked.at];
        places.extend(failed.iter().map(|n| &n.at));
        findings.push(RULE.found(
            Confidence::Certain,
            format!("{}: {name}={} is asked for, and no such plugin is found", p.host, asked.value),
            "the loader finds no library of that name in LD_LIBRARY_PATH or ld.so.conf",
            "add the plugin's directory (and that of libfabric, for OFI) to LD_LIBRARY_PATH or \
             /etc/ld.so.conf.d in the image",
            incident.exhibits(places, 4),
        ));
        return;
    }
    // the only way to the devices
    if let Some((what, fact)) = incident.needs_plugin()
        && let Some(absent) = missing.first()
    {
        let host = incident.process(absent).map_or("the container", |p| p.host.as_str());
        let mut exhibits = incident.exhibits([&absent.at], 2);
        exhibits.push(fact);
        findings.push(RULE.found(
            Confidence::Certain,
            format!("{host} has {what}, but NCCL finds no plugin for them"),
            "NCCL's own verbs transport can not use these devices; their plugin is in the image or \
             on the node, but not on the loader's path",
            "add the plugin's and libfabric's directories (/opt/amazon/aws-ofi-nccl/lib, \
             /opt/amazon/efa/lib) to LD_LIBRARY_PATH or /etc/ld.so.conf.d",
            exhibits,
        ));
    }
}

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    for node in nodes {
        let efa = node.rdma.iter().any(ncclctl_facts::rdma::RdmaDevice::is_efa);
        let only_efa = efa && node.rdma.iter().all(ncclctl_facts::rdma::RdmaDevice::is_efa);
        let plugins: Vec<_> = node.software.plugins.iter().filter(|p| p.kind == "net").collect();
        let hidden = !plugins.is_empty() && plugins.iter().all(|p| !p.found_by_loader);
        if !only_efa || !hidden {
            continue;
        }
        let folder = plugins[0].path.rsplit_once('/').map_or("", |(f, _)| f);
        findings.push(
            RULE.found(
                Confidence::Certain,
                format!("{}: {} is there and the loader does not search {folder}", node.name, plugins[0].path),
                "NCCL loads its network plug-in by name; EFA works through the plug-in only, so the job \
                 runs over sockets",
                format!("LD_LIBRARY_PATH={folder}:$LD_LIBRARY_PATH, or a file in /etc/ld.so.conf.d and ldconfig"),
                vec![Exhibit::fact(format!("{}.software.plugins", node.name), &plugins[0].path)],
            )
            .at(Severity::Error),
        );
    }
}
