//! `duplicate-gpu`: two ranks use one GPU.
//!
//! ## What
//!
//! Two ranks of one communicator run on the same device.
//!
//! ## Why
//!
//! Each process must select its own GPU before NCCL starts; LOCAL_RANK is not used, or
//! CUDA_VISIBLE_DEVICES gives all processes the same one. NCCL 2.30.3 and later allow it on request
//! (NCCL_MULTI_RANK_GPU_ENABLE=1, experimental).
//!
//! ## Example
//!
//! `rank 1 and rank 0 both on CUDA device 40`
//!
//! ## Remedy
//!
//! Call torch.cuda.set_device(LOCAL_RANK) first; start no more ranks than GPUs.
//!
//! ## Source
//!
//! NCCL src/init.cc, 2.5.6 and later.

use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("duplicate-gpu", Severity::Error, "two ranks use one GPU")
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let places = incident.places(
        &[
            "Duplicate GPU detected",
            "anks are using the same GPU",
            "anks detected using the same GPU",
        ],
        &[Signal::DuplicateGpu],
    );
    let Some(first) = places.first() else { return };
    let detail = first
        .text
        .split("Duplicate GPU detected :")
        .nth(1)
        .map_or("two ranks of one communicator are on one GPU", str::trim);
    findings.push(RULE.found(
        Confidence::Certain,
        detail.to_owned(),
        "the processes did not select different devices before NCCL started, or there are more \
         ranks than GPUs",
        "call torch.cuda.set_device(LOCAL_RANK) first, check CUDA_VISIBLE_DEVICES per process, and \
         start no more ranks than GPUs (NCCL 2.30.3+ can share one with NCCL_MULTI_RANK_GPU_ENABLE=1)",
        incident.exhibits(places, 3),
    ));
}
