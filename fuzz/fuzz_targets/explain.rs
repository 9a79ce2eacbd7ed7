//! From any bytes to a diagnosis.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ncclctl_findings::diagnose;
use ncclctl_findings::intake::Intake;

fuzz_target!(|data: &[u8]| {
    let mut intake = Intake::default();
    intake.add("fuzz", data);
    let answer = diagnose(&intake.finish());
    assert_eq!(answer.findings.len(), answer.follows_from.len());
});
