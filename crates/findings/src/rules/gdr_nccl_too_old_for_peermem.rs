//! `gdr-nccl-too-old-for-peermem`: NCCL before 2.23 does not look for the module name in use.
//!
//! ## What
//!
//! GPUDirect is off, and this NCCL knows only the older module names.
//!
//! ## Why
//!
//! NCCL up to 2.22.3 looks for /sys/kernel/mm/memory_peers/nv_mem; a newer nvidia_peermem without
//! that entry is taken for absent.
//!
//! ## Example
//!
//! `NCCL 2.20.5 does not find nvidia_peermem, GPUDirect is off`
//!
//! ## Remedy
//!
//! Use NCCL 2.23.4 or later, or make DMA-BUF available.
//!
//! ## Source
//!
//! NCCL src/transport/net_ib ncclIbGdrSupport, changed in 2.23.4.

use ncclctl_nccl::Version;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "gdr-nccl-too-old-for-peermem",
        Severity::Warning,
        "NCCL before 2.23 does not look for the module name in use",
    )
};

/// First version that looks for nvidia_peermem by its own name.
const KNOWS: Version = Version::new(2, 23, 4);

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    for (index, p) in incident.log.processes.iter().enumerate() {
        let Some((device, (_, at))) = p.gdr.iter().find(|(_, (enabled, _))| !enabled) else {
            continue;
        };
        let Some(version) = incident.log.version_of(index).filter(|v| *v < KNOWS) else { continue };
        if !Incident::uses_verbs(p) && !p.network.value.is_empty() {
            continue;
        }
        let loaded = incident.peermem_loaded();
        let mut exhibits = incident.exhibits([at], 2);
        exhibits.extend(loaded.clone());
        findings.push(RULE.found(
            if loaded.is_some() { Confidence::Certain } else { Confidence::Possible },
            format!("NCCL {version} on {} finds no peermem module for {device}", p.host),
            "up to 2.22.3 NCCL looks for the older module's entry in sysfs only; a loaded \
             nvidia_peermem without it counts as absent (`lsmod | grep peermem` settles it)",
            "use NCCL 2.23.4 or later, or DMA-BUF (open kernel modules)",
            exhibits,
        ));
        return;
    }
}
