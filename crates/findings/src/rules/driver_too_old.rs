//! `driver-too-old`: driver older than the CUDA runtime needs.
//!
//! ## What
//!
//! The GPU driver does not support the CUDA version of the program or of NCCL.
//!
//! ## Why
//!
//! A CUDA 12 program needs a driver of at least 12.0 (minor versions are compatible), unless the
//! compat package for data-centre GPUs is in the image.
//!
//! ## Example
//!
//! `the driver offers CUDA 11.4, NCCL was built with 12.4`
//!
//! ## Remedy
//!
//! Update the driver on the node, or use an image for its CUDA version (or add cuda-compat).
//!
//! ## Source
//!
//! CUDA compatibility guide; cudaErrorInsufficientDriver (35), 803.

use ncclctl_nccl::log::Signal;

use crate::documents::Documents;
use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new("driver-too-old", Severity::Error, "driver older than the CUDA runtime needs")
};

/// Least driver branch for a CUDA release, with minor-version compatibility. Source: CUDA toolkit
/// release notes.
fn least_driver(major: u32) -> Option<u32> {
    match major {
        11 => Some(450),
        12 => Some(525),
        13 => Some(580),
        _ => None,
    }
}

/// CUDA of an image's tag, like nvidia/cuda:12.4.1-devel-ubuntu22.04 or pytorch:2.6.0-cuda12.4.
fn cuda_of(image: &str) -> Option<(u32, u32)> {
    let (name, tag) = image.rsplit_once(':')?;
    let text = if name.ends_with("nvidia/cuda") { tag } else { &tag[tag.find("cuda")? + 4..] };
    let mut parts = text.split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next().and_then(|p| p.parse().ok()).unwrap_or(0)))
}

/// Where the driver is stated: by the user, or by a node label that the pod is bound to.
fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    let images = set.images.iter().filter_map(|i| Some((i.bases.last()?, set.driver?)));
    let pods = set.containers().filter_map(|(pod, container)| {
        let label = pod.node_labels.iter().find(|(k, _)| {
            matches!(
                k.text.as_str(),
                "nvidia.com/cuda.driver.major" | "nvidia.com/cuda.driver-version.major"
            )
        });
        let driver = label.and_then(|(_, v)| v.text.parse().ok()).or(set.driver)?;
        Some((container.image.as_ref()?, driver))
    });
    for (image, driver) in images.chain(pods) {
        let Some((major, minor)) = cuda_of(&image.text) else { continue };
        let Some(least) = least_driver(major).filter(|least| driver < *least) else { continue };
        findings.push(
            set.say(
                &RULE,
                Confidence::Likely,
                &image.at,
                format!("CUDA {major}.{minor} in {}, driver {driver}", image.text),
                format!("CUDA {major} needs driver {least} or later; older ones only through the cuda-compat package on data centre GPUs"),
                format!("use a base of CUDA {}, or driver {least}", major - 1),
            )
            .at(Severity::Error),
        );
    }
}

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let notices = incident.notices(&[
        "driver version is insufficient",
        "unsupported toolchain",
        "unsupported display driver",
        "Failed to load CUDA missing symbol",
        "CUDA driver is older",
        "uda failure 35 ",
        "uda failure 803",
    ]);
    let mut places: Vec<_> = notices.iter().map(|n| &n.at).collect();
    places.extend(incident.log.signal(Signal::DriverTooOld));
    let versions = incident.log.processes.iter().find_map(|p| {
        let driver = p.cuda_driver?;
        let (major, minor) = p.cuda_build?;
        (driver / 1000 < major).then_some((p, driver, major, minor))
    });
    let message = match versions {
        Some((p, driver, major, minor)) => format!(
            "{}: the driver offers CUDA {}.{}, NCCL was built with {major}.{minor}",
            p.host,
            driver / 1000,
            driver % 1000 / 10
        ),
        None if places.is_empty() => return,
        None => "the driver is older than the CUDA runtime of this program needs".to_owned(),
    };
    if places.is_empty() && incident.finished() {
        return;
    }
    if let Some((p, ..)) = versions {
        places.push(&p.first);
    }
    findings.push(RULE.found(
        if notices.is_empty() && incident.log.signal(Signal::DriverTooOld).is_empty() {
            Confidence::Likely
        } else {
            Confidence::Certain
        },
        message,
        "a CUDA major version needs a driver of at least that version, unless the image carries the \
         cuda-compat package",
        "update the driver on the node (`nvidia-smi` shows its CUDA version), or use an image built \
         for it",
        incident.exhibits(places, 3),
    ));
}
