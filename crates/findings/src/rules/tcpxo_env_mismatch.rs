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

use crate::documents::{Documents, Origin};
use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    documents: Some(documents),
    ..Rule::new(
        "tcpxo-env-mismatch",
        Severity::Error,
        "GKE TCPXO variables differ from the installed profile",
    )
};

/// Settings that the profile decides.
const PROFILE: [&str; 13] = [
    "NCCL_FASTRAK_",
    "NCCL_SOCKET_IFNAME",
    "NCCL_PROTO",
    "NCCL_ALGO",
    "NCCL_NVLS_ENABLE",
    "NCCL_CROSS_NIC",
    "NCCL_MIN_NCHANNELS",
    "NCCL_DYNAMIC_CHUNK_SIZE",
    "NCCL_P2P_",
    "NCCL_BUFFSIZE",
    "NCCL_TUNER_",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_SHIMNET_",
];

/// With the profile of the host in the set, each value that differs; without it, a word that the
/// values belong to it.
fn documents(set: &Documents, findings: &mut Vec<Finding>) {
    let has = |starts: &str, origin: &[Origin]| {
        set.blocks.iter().find(|b| origin.contains(&b.origin) && b.starting(&[starts]).is_some())
    };
    let profile = has("NCCL_FASTRAK_", &[Origin::Shell, Origin::EnvFile]);
    for block in set
        .blocks
        .iter()
        .filter(|b| matches!(b.origin, Origin::Pod | Origin::Image | Origin::Compose))
    {
        let Some(first) = block.starting(&["NCCL_FASTRAK_"]) else { continue };
        let Some(profile) = profile else {
            findings.push(
                set.say(
                    &RULE,
                    Confidence::Possible,
                    &first.name.at,
                    "settings of GPUDirect-TCPXO are written by hand",
                    "they belong to the plug-in that is installed on the host, and go stale with the next \
                     one; the guest configuration checker then warns, or the job is slow",
                    "run `source /usr/local/nvidia/lib64/nccl-env-profile.sh` in the container's command \
                     instead, and leave out what it sets",
                )
                .at(Severity::Info),
            );
            continue;
        };
        let mut found: Option<Finding> = None;
        let mut differences = Vec::new();
        for setting in block.settings.iter().filter(|s| !s.open) {
            if !PROFILE.iter().any(|p| setting.name.text.starts_with(p)) {
                continue;
            }
            let Some(installed) = profile.get(&setting.name.text) else { continue };
            if installed.value.text == setting.value.text {
                continue;
            }
            differences.push(format!(
                "{}={} (profile: {})",
                setting.name.text, setting.value.text, installed.value.text
            ));
            let exhibits = [set.exhibit(&setting.value.at), set.exhibit(&installed.value.at)];
            match &mut found {
                Some(found) if found.evidence.len() < 6 => found.evidence.extend(exhibits),
                Some(_) => {}
                None => {
                    let mut new = set
                        .say(&RULE, Confidence::Certain, &setting.value.at, "", "", "")
                        .at(Severity::Warning);
                    new.evidence.extend(exhibits.into_iter().skip(1));
                    found = Some(new);
                }
            }
        }
        if let Some(mut found) = found {
            found.message =
                format!("differs from the installed profile: {}", differences.join(", "));
            found.cause = "the values belong to the plug-in version on the host; NICs that are named \
                           otherwise are not found, a protocol that it does not know is slow or wrong"
                .to_owned();
            found.remedy =
                "take them out and `source /usr/local/nvidia/lib64/nccl-env-profile.sh` in the \
                            container's command"
                    .to_owned();
            findings.push(found);
        }
    }
}

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
