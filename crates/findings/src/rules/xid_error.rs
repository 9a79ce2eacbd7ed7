//! `xid-error`: the driver reported a GPU error (Xid).
//!
//! ## What
//!
//! The kernel log has Xid lines of the NVIDIA driver.
//!
//! ## Why
//!
//! Some Xids mean broken hardware or links (48, 63, 64, 74, 79, 92, 94, 95, 119, 145, 149), others
//! a fault of the program (13, 31, 43).
//!
//! ## Example
//!
//! `Xid 79: the GPU has fallen off the bus`
//!
//! ## Remedy
//!
//! By the number: reset or replace the GPU, check NVLink and power; for program faults run with
//! CUDA_LAUNCH_BLOCKING=1.
//!
//! ## Source
//!
//! NVIDIA Xid catalogue.

use ncclctl_nccl::log::Signal;

use crate::finding::{Confidence, Finding, Severity};
use crate::incident::Incident;
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    incident: Some(look),
    ..Rule::new("xid-error", Severity::Error, "the driver reported a GPU error (Xid)")
};

/// Numbers, what they mean, and whether the hardware is at fault.
const KNOWN: &[(u32, &str, bool)] = &[
    (13, "graphics engine exception, usually an illegal access of the program", false),
    (31, "GPU memory page fault, usually an illegal access of the program", false),
    (43, "the program's channel was reset after its own fault", false),
    (45, "channels cleaned up after another error", false),
    (48, "double-bit ECC error", true),
    (61, "internal micro-controller breakpoint", true),
    (62, "internal micro-controller halt", true),
    (63, "row remapping recorded", true),
    (64, "row remapping failed", true),
    (74, "NVLink error", true),
    (79, "the GPU has fallen off the bus", true),
    (92, "high single-bit ECC error rate", true),
    (94, "contained ECC error", true),
    (95, "uncontained ECC error", true),
    (119, "GSP firmware does not answer", true),
    (120, "GSP firmware error", true),
    (137, "NVLink fault reached the GPU", true),
    (145, "NVLink link error", true),
    (149, "NVLink link error", true),
    (154, "a GPU reset or reboot is needed", true),
];

fn look(incident: &Incident, findings: &mut Vec<Finding>) {
    let lines = incident.log.signal(Signal::Xid);
    let worst = lines
        .iter()
        .filter_map(|at| {
            let number = number(&at.text)?;
            let known = KNOWN.iter().find(|(n, ..)| *n == number);
            Some((at, number, known))
        })
        .max_by_key(|(_, _, known)| {
            known.map_or(1, |(_, _, hardware)| if *hardware { 2 } else { 0 })
        });
    let Some((at, number, known)) = worst else { return };
    let (what, hardware) =
        known.map_or(("see NVIDIA's Xid catalogue", false), |(_, w, h)| (*w, *h));
    let finding = RULE.found(
        if hardware { Confidence::Certain } else { Confidence::Likely },
        format!("Xid {number}: {what}"),
        "the driver reported a GPU error; collectives that use this GPU fail or hang after it",
        if hardware {
            "drain the node, reset the GPU or reboot, run `dcgmi diag -r 3`; replace what comes back"
        } else {
            "run the program with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer; the fault is usually its own"
        },
        incident.exhibits(std::iter::once(at).chain(lines), 4),
    );
    findings.push(finding);
}

/// The number after `Xid (PCI:0000:18:00): `.
fn number(text: &str) -> Option<u32> {
    let rest = &text[text.find("Xid")? + 3..];
    let rest = rest.find("): ").map_or(rest, |at| &rest[at + 3..]);
    let rest = rest.trim_start_matches([':', ' ']);
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
}
