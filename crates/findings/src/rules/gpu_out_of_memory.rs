//! `gpu-out-of-memory`: GPU memory is exhausted.
//!
//! ## What
//!
//! A CUDA allocation failed for lack of memory.
//!
//! ## Why
//!
//! NCCL's own buffers take some hundred MB per communicator and grow with channels; the framework
//! usually holds the rest.
//!
//! ## Example
//!
//! `h1: CUDA out of memory`
//!
//! ## Remedy
//!
//! Leave headroom for NCCL (PyTorch: lower the allocator's share), use fewer communicators, or
//! NCCL_BUFFSIZE/NCCL_MAX_CTAS.
//!
//! ## Source
//!
//! cudaErrorMemoryAllocation (2).

use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("gpu-out-of-memory", Severity::Error, "GPU memory is exhausted")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let notices = incident.notices(&[
        "Cuda failure 2 'out of memory'",
        "Cuda failure 'out of memory'",
        "Failed to CUDA malloc",
        "Failed to CUDA calloc",
    ]);
    let mut places: Vec<_> = notices.iter().map(|n| &n.at).collect();
    places.extend(incident.places(&[], &[Signal::GpuMemory]));
    if places.is_empty() {
        return;
    }
    let host =
        notices.first().and_then(|n| incident.process(n)).map_or("a host", |p| p.host.as_str());
    findings.push(RULE.found(
        Confidence::Certain,
        format!("{host}: GPU memory is exhausted"),
        "an allocation failed for lack of GPU memory; NCCL's buffers come on top of the framework's",
        "leave headroom for NCCL (smaller batch, or a lower allocator share), or reduce NCCL_BUFFSIZE and channels (NCCL_MAX_CTAS)",
        incident.exhibits(places, 3),
    ));
}
