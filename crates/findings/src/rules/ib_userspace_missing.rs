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

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "ib-userspace-missing",
        Severity::Warning,
        "libibverbs or its providers are missing in the image",
    )
};

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
