//! `gpu-errors`: a GPU reported errors while the trial ran.
//!
//! ## What
//!
//! The driver reported an Xid error of a GPU, or memory errors that could not be corrected, between
//! the start and the end of the trial.
//!
//! ## Why
//!
//! An Xid is the driver's number for a fault of a GPU: some kill the process that used it, some take
//! the GPU off the bus, some announce a board that will fail. Results of such a GPU are not to be
//! trusted, and a job on it will end sooner or later.
//!
//! ## Example
//!
//! `rank 2's GPU 0000:3b:00.0 reported Xid 94 (contained memory error)`
//!
//! ## Remedy
//!
//! Take the node out of service, reset the GPU (`nvidia-smi --gpu-reset`) or reboot; if it comes
//! again, run the vendor's field diagnostics and replace the board.
//!
//! ## Source
//!
//! NVML events of type XID, volatile uncorrected ECC counters; NVIDIA, Xid errors.

use crate::evidence::{Evidence, GpuRecord};
use crate::finding::{Confidence, Exhibit, Finding, Severity};
use crate::rule::Rule;

pub(super) const RULE: Rule = Rule {
    trial: Some(look),
    ..Rule::new("gpu-errors", Severity::Error, "a GPU reported errors while the trial ran")
};

/// What the numbers mean that a collective may bring out. Source: NVIDIA, "Xid errors".
const XIDS: &[(u64, &str)] = &[
    (13, "illegal instruction or address in a kernel"),
    (31, "memory page fault of a kernel"),
    (43, "the GPU stopped processing"),
    (45, "work was taken down after an earlier error"),
    (48, "double bit memory error"),
    (63, "a memory row was retired or remapped"),
    (64, "a memory row could not be retired"),
    (74, "NVLink error"),
    (79, "the GPU has fallen off the bus"),
    (92, "high rate of corrected memory errors"),
    (94, "contained memory error"),
    (95, "uncontained memory error"),
    (119, "the GPU's system processor does not answer"),
    (120, "the GPU's system processor failed"),
    (140, "memory error that was not recovered"),
];

fn look(evidence: &Evidence, findings: &mut Vec<Finding>) {
    for gpu in &evidence.gpus {
        let mut told: Vec<String> = Vec::new();
        let mut xids = gpu.xids.clone();
        xids.sort_unstable();
        xids.dedup();
        for xid in xids {
            let meaning = XIDS.iter().find(|(number, _)| *number == xid);
            told.push(match meaning {
                Some((_, meaning)) => format!("Xid {xid} ({meaning})"),
                None => format!("Xid {xid}"),
            });
        }
        if let Some(count @ 1..) = gpu.uncorrected_errors {
            told.push(format!("{count} uncorrected memory errors"));
        }
        if !told.is_empty() {
            findings.push(finding(gpu, &told.join(", ")));
        }
    }
}

fn finding(gpu: &GpuRecord, told: &str) -> Finding {
    RULE.found(
        Confidence::Certain,
        format!("rank {}'s GPU {} reported {told}", gpu.rank, gpu.gpu),
        "the GPU or its link is faulty: neither its speed nor its results are to be trusted",
        "take the node out of service and reset the GPU; if it comes again, run the vendor's \
         diagnostics (dcgmi diag -r 3) and replace the board",
        vec![Exhibit::Rank { rank: gpu.rank, seen: told.to_owned() }],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xids_and_memory_errors_are_named() {
        let gpu = GpuRecord {
            rank: 2,
            gpu: "0000:3b:00.0".to_owned(),
            xids: vec![94, 7777, 94],
            uncorrected_errors: Some(3),
            ..GpuRecord::default()
        };
        let healthy = GpuRecord { uncorrected_errors: Some(0), ..GpuRecord::default() };
        let evidence = Evidence { gpus: vec![gpu, healthy], ..Evidence::default() };
        let mut findings = Vec::new();
        look(&evidence, &mut findings);
        assert_eq!(findings.len(), 1);
        insta::assert_snapshot!(findings[0].message, @"rank 2's GPU 0000:3b:00.0 reported Xid 94 (contained memory error), Xid 7777, 3 uncorrected memory errors");
    }
}
