//! `ib-userspace-missing`: libibverbs or its providers are missing in the image.
//!
//! ## What
//!
//! NCCL could not load libibverbs.so.1, so its RDMA transport is off.
//!
//! ## Why
//!
//! The CUDA base images carry no verbs libraries. Without them NCCL takes sockets and says so only
//! at INFO level.
//!
//! ## Example
//!
//! `vm-e0q7 has no libibverbs, so NCCL took sockets`
//!
//! ## Remedy
//!
//! Install `libibverbs1 ibverbs-providers` (Debian, Ubuntu) or `libibverbs` (RHEL) in the image.
//!
//! ## Source
//!
//! NCCL src/misc/ibvwrap.cc, ibvsymbols.cc; a warning up to 2.10, INFO after.

use crate::documents::Documents;
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;
use ncclctl_facts::Facts;

pub(super) const RULE: Rule = Rule {
    nodes: Some(nodes),
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new(
        "ib-userspace-missing",
        Severity::Warning,
        "libibverbs or its providers are missing in the image",
    )
};

/// Bases that bring no verbs libraries.
const BARE: [&str; 12] = [
    "nvidia/cuda",
    "ubuntu",
    "debian",
    "python",
    "rockylinux",
    "almalinux",
    "centos",
    "fedora",
    "redhat/ubi",
    "pytorch/pytorch",
    "continuumio/miniconda3",
    "nvcr.io/nvidia/cuda",
];

/// What brings them.
const BRINGS: [&str; 13] = [
    "libibverbs",
    "ibverbs-providers",
    "rdma-core",
    "mlnx",
    "mofed",
    "doca",
    "efa_installer",
    "aws-efa-installer",
    "hpcx",
    "hpc-x",
    "ucx-",
    "gib",
    "infiniband",
];

/// Speaks about the last stage of a Dockerfile on a base that is known to bring no verbs libraries,
/// where a setting of NCCL asks for RDMA.
fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for image in &set.images {
        let Some(base) = image.bases.last() else { continue };
        let name = base.text.split(['@', ':']).next().unwrap_or_default();
        let bare = name.trim_start_matches("docker.io/").trim_start_matches("library/");
        let known = BARE.contains(&bare) || bare.starts_with("registry.access.redhat.com/ubi");
        let brought = image
            .runs
            .iter()
            .chain(&image.copies)
            .any(|r| BRINGS.iter().any(|b| r.text.to_ascii_lowercase().contains(b)));
        if !known || brought {
            continue;
        }
        let Some(block) = set.blocks.get(image.block) else { continue };
        let off = block.get("NCCL_IB_DISABLE").is_some_and(|s| s.value.text.starts_with('1'));
        let meant = block
            .settings
            .iter()
            .find(|s| s.name.text.starts_with("NCCL_IB_") && s.name.text != "NCCL_IB_DISABLE")
            .or_else(|| block.get("NCCL_IB_DISABLE").filter(|s| s.value.text == "0"))
            .or_else(|| block.get("NCCL_NET").filter(|s| s.value.text.eq_ignore_ascii_case("IB")))
            .or_else(|| block.get("NCCL_NET_GDR_LEVEL").filter(|s| s.value.text != "LOC"));
        // an image that is built for several hosts, as its packages show
        let several = image.runs.iter().any(|r| {
            ["openssh-server", "openmpi", "mpich", "nccl-tests"].iter().any(|w| r.text.contains(w))
        });
        if off || (meant.is_none() && !several) {
            continue;
        }
        let rpm =
            ["rocky", "alma", "centos", "fedora", "ubi"].iter().any(|w| base.text.contains(w));
        let packages = if rpm {
            "`dnf install -y libibverbs rdma-core`"
        } else {
            "`apt-get install -y --no-install-recommends libibverbs1 ibverbs-providers`"
        };
        let (severity, confidence, why) = match meant {
            Some(s) => (
                Severity::Warning,
                Confidence::Likely,
                format!(", and {} asks for RDMA", s.name.text),
            ),
            None => (Severity::Info, Confidence::Possible, String::new()),
        };
        let mut found = set
            .say(
                &RULE,
                confidence,
                &base.at,
                format!("{name} has no libibverbs, and nothing installs it{why}"),
                "NCCL loads libibverbs.so.1 when it starts; without it the RDMA transport is off and \
                 sockets are taken, with a line at INFO level only (2.11 and later)",
                format!("add {packages}"),
            )
            .at(severity);
        if let Some(s) = meant {
            found.evidence.push(set.exhibit(&s.name.at));
        }
        findings.push(found);
    }
}

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let missing = incident.notices(&["Failed to open libibverbs"]);
    let Some(first) = missing.first() else { return };
    let meant = incident.rdma_meant();
    let host = incident.process(first).map_or("a host", |p| p.host.as_str());
    // without a sign that RDMA was meant, a run that works or fails for another reason is no case
    let alone = incident.log.warnings().all(|n| n.text.contains("libibverbs"));
    let doubt = incident.finished() || !alone || incident.small_gpus() || incident.no_rdma_here();
    let finding = RULE.found(
        if meant.is_some() { Confidence::Certain } else { Confidence::Likely },
        format!("{host} has no libibverbs, so NCCL took sockets"),
        "the image lacks the verbs user-space libraries; NCCL's RDMA transport needs them and is \
         off without",
        "install `libibverbs1 ibverbs-providers` (Debian, Ubuntu) or `libibverbs` (RHEL) in the image",
        incident.exhibits(missing.iter().map(|n| &n.at), 3),
    );
    let severity = if meant.is_none() && doubt { Severity::Info } else { Severity::Warning };
    findings.push(finding.at(severity));
}

fn nodes(nodes: &[Facts], findings: &mut Vec<Finding>) {
    for node in nodes.iter().filter(|n| !n.gpus().is_empty()) {
        let usable = node.rdma.iter().any(|d| d.opened.as_deref() == Some("ok") && !d.is_efa());
        // only where this machine's folders were looked through, which finds at least something
        let looked = !node.software.nccl.is_empty() || node.software.verbs.is_some();
        if !usable
            || !looked
            || (node.software.verbs.is_some() && !node.software.providers.is_empty())
        {
            continue;
        }
        let what = if node.software.verbs.is_none() {
            "libibverbs.so.1"
        } else {
            "a provider of libibverbs"
        };
        findings.push(
            RULE.found(
                Confidence::Likely,
                format!(
                    "{}: RDMA devices can be opened, but {what} is not installed here",
                    node.name
                ),
                "NCCL loads libibverbs by itself and falls back to sockets without it",
                "apt-get install libibverbs1 ibverbs-providers (or rdma-core) in the image",
                vec![Exhibit::fact(format!("{}.software.verbs", node.name), "not found")],
            )
            .at(Severity::Warning),
        );
    }
}
