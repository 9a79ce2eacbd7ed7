//! `nccl-built-without-arch`: the NCCL library has no code for this GPU generation.
//!
//! ## What
//!
//! CUDA says `no kernel image is available for execution on the device`.
//!
//! ## Why
//!
//! libnccl (or PyTorch) was built for other architectures: a new GPU with an old wheel, or an own
//! build with a short NVCC_GENCODE.
//!
//! ## Example
//!
//! `no kernel image is available for this GPU`
//!
//! ## Remedy
//!
//! Use a release that knows this GPU, or build NCCL with its architecture in NVCC_GENCODE.
//!
//! ## Source
//!
//! cudaErrorNoKernelImageForDevice (209).

use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "nccl-built-without-arch",
        Severity::Error,
        "the NCCL library has no code for this GPU generation",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let places = incident.places(
        &["no kernel image is available", "uda failure 209", "named symbol not found"],
        &[Signal::NoKernelImage],
    );
    if places.is_empty() {
        return;
    }
    findings.push(RULE.found(
        Confidence::Certain,
        "no kernel image is available for this GPU",
        "the NCCL (or PyTorch) build in use has no code for this GPU's generation",
        "use a release that knows this GPU (`ncclctl facts` shows its sm version), or build NCCL with \
         it in NVCC_GENCODE",
        incident.exhibits(places, 3),
    ));
}
