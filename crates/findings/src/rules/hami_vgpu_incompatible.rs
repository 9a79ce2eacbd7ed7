//! `hami-vgpu-incompatible`: HAMi interception library breaks NCCL init.
//!
//! ## What
//!
//! HAMi-core (libvgpu.so) is loaded and reports an error of its own while NCCL starts.
//!
//! ## Why
//!
//! It intercepts CUDA and NVML to share GPUs; NCCL's use of several devices and of cuMem handles
//! meets its gaps.
//!
//! ## Example
//!
//! `HAMi-core: Illegal device id`
//!
//! ## Remedy
//!
//! Give multi-GPU NCCL pods whole GPUs without interception (CUDA_DISABLE_CONTROL=true), or update
//! HAMi-core.
//!
//! ## Source
//!
//! Project-HAMi/HAMi-core.

use ncclctl_nccl::log::Signal;

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new(
        "hami-vgpu-incompatible",
        Severity::Error,
        "HAMi interception library breaks NCCL init",
    )
};

/// Resources of devices that are cut in software.
const CUT: [&str; 9] = [
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "nvidia.com/gpu.shared",
    "volcano.sh/vgpu-number",
    "volcano.sh/vgpu-memory",
    "aliyun.com/gpu-mem",
    "tencent.com/vcuda-core",
    "nvidia.com/vgpu",
];

fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    for (pod, container) in set.containers() {
        let Some(cut) = container.resource(|n| CUT.contains(&n)) else { continue };
        let gpus = container.gpu_count().unwrap_or(1);
        if gpus < 2 && !pod.several(set) && container.ranks().is_none_or(|n| n < 2) {
            continue;
        }
        findings.push(
            set.say(
                &RULE,
                Confidence::Likely,
                &cut.name.at,
                format!("{} in a job of several ranks", cut.name.text),
                "a GPU that is cut in software shows several ranks one device or wrong device ids, and \
                 an interception library stands between NCCL and the driver: init fails, or hangs",
                "ask for whole GPUs for NCCL jobs: `nvidia.com/gpu` alone",
            )
            .at(Severity::Warning),
        );
    }
}

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let errors = incident.log.signal(Signal::HamiError);
    let present = incident.log.signal(Signal::HamiPresent);
    let crash = incident.log.signal(Signal::Crash);
    let traced: Vec<_> = present
        .iter()
        .filter(|at| at.text.contains("libvgpu.so") && at.text.contains("(+0x"))
        .collect();
    let mut places: Vec<_> = errors.iter().collect();
    places.extend(traced.iter().copied());
    if places.is_empty() {
        return;
    }
    places.extend(crash.iter());
    let text = errors
        .first()
        .map_or("a crash in libvgpu.so", |at| at.text.split(")]: ").nth(1).unwrap_or("an error"));
    findings.push(RULE.found(
        if crash.is_empty() { Confidence::Possible } else { Confidence::Likely },
        format!("HAMi-core reports: {}", text.trim()),
        "HAMi's interception library stands between NCCL and CUDA and failed during NCCL's set-up; \
         broken stores and sockets after it are consequences",
        "give multi-GPU NCCL pods whole GPUs without interception (CUDA_DISABLE_CONTROL=true in the \
         pod, or no vgpu resource), or update HAMi-core",
        incident.exhibits(places, 4),
    ));
}
