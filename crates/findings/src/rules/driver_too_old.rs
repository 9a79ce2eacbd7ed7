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

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("driver-too-old", Severity::Error, "driver older than the CUDA runtime needs")
};

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
