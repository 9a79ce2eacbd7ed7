//! `vgpu-without-uvm`: vGPU without unified memory, which the memory pool of NCCL needs.
//!
//! ## What
//!
//! `operation not supported` (801) when NCCL makes its memory pool at the start.
//!
//! ## Why
//!
//! NCCL 2.23 and later allocate from a CUDA memory pool; on a vGPU that needs unified memory to be
//! enabled by the hypervisor.
//!
//! ## Example
//!
//! `vm-3: CUDA error 801 in init.cc`
//!
//! ## Remedy
//!
//! VMware: `pciPassthruX.cfg.enable_uvm = 1` for each vGPU; KVM: enable_uvm=1 in vgpu_params.
//!
//! ## Source
//!
//! NCCL src/init.cc (cudaMemPoolCreate), 2.23 and later; vGPU guide.

use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "vgpu-without-uvm",
        Severity::Error,
        "vGPU without unified memory, which the memory pool of NCCL needs",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let failed: Vec<_> = incident
        .log
        .warnings()
        .filter(|n| n.text.contains("operation not supported") || n.text.contains("failure 801"))
        .filter(|n| n.text.contains("uda failure") || n.text.contains("CUDA"))
        .filter(|n| !n.file.contains("transport/"))
        .collect();
    let Some(first) = failed.first() else { return };
    let host = incident.process(first).map_or("a host", |p| p.host.as_str());
    let vgpu = incident.log.signal(Signal::Vgpu);
    let early = first.file.ends_with("init.cc")
        || first.file.ends_with("alloc.h")
        || first.file.ends_with("strongstream.cc");
    if vgpu.is_empty() && !early {
        return;
    }
    let mut places: Vec<_> = failed.iter().map(|n| &n.at).collect();
    places.extend(vgpu.first());
    findings.push(RULE.found(
        if vgpu.is_empty() { Confidence::Likely } else { Confidence::Certain },
        format!("{host}: CUDA error 801 (operation not supported) while NCCL made its memory pool"),
        "NCCL 2.23 and later need CUDA memory pools; a vGPU offers them only with unified memory \
         enabled by the hypervisor",
        "enable unified memory for the vGPU (VMware pciPassthruN.cfg.enable_uvm=1, KVM \
         enable_uvm=1), or use pass-through; NCCL before 2.23 does not need it",
        incident.exhibits(places, 3),
    ));
}
