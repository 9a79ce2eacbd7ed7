//! `tcpxo-env-mismatch`: GKE TCPXO variables differ from the installed profile.
//!
//! ## What
//!
//! The guest configuration checker of the TCPXO (FasTrak) plugin found values that do not fit its
//! version.
//!
//! ## Why
//!
//! The variables belong to the installed plugin version; copied values go stale with the next
//! installer.
//!
//! ## Example
//!
//! `NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY=/dev/aperture_devices is recommended, and unset`
//!
//! ## Remedy
//!
//! Source nccl-env-profile.sh from the host's plugin directory instead of copying values.
//!
//! ## Source
//!
//! NCCL/NET (shim) and GuestConfigChecker lines of the TCPXO plugin.

use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new(
        "tcpxo-env-mismatch",
        Severity::Error,
        "GKE TCPXO variables differ from the installed profile",
    )
};

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let notices: Vec<_> = incident
        .notices(&[
            "(shim) mismatch",
            "GuestConfigChecker",
            "uest config checker",
            "nccl-env-profile",
        ])
        .into_iter()
        .filter(|n| {
            let text = n.text.to_ascii_lowercase();
            text.contains("mismatch") || text.contains("fail") || text.contains("expected")
        })
        .collect();
    let mut places: Vec<_> = notices.iter().map(|n| &n.at).collect();
    let lines = incident.log.signal(Signal::TcpxoConfig);
    places.extend(lines.iter().filter(|at| {
        let text = at.text.to_ascii_lowercase();
        text.contains("mismatch") || text.contains("fail") || text.contains("expected")
    }));
    let Some(first) = places.first() else { return };
    let detail =
        first.text.split("mismatch ").nth(1).unwrap_or("values differ from the plugin's own");
    findings.push(RULE.found(
        Confidence::Certain,
        format!(
            "the TCPXO plugin's checker complains: {}",
            detail.trim_start_matches(['r', 'e', 'c', 'o', 'm', 'n', 'd', ':', ' ']).trim()
        ),
        "the NCCL_ variables in force are not those of the installed TCPXO version",
        "source the profile that the installer puts on the host (nccl-env-profile.sh) instead of \
         copying values",
        incident.exhibits(places, 4),
    ));
}
