//! Real output of NCCL: what worked is healthy, what failed is explained, every line is known.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read the repository's own fixtures, and a failure is a failed test"
)]

use std::path::Path;

use ncclctl_findings::intake::Intake;
use ncclctl_findings::{Severity, diagnose};

fn loud(names: &[&str]) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/logs/nccl-2.28.9-h200");
    let mut intake = Intake::default();
    for name in names {
        intake.add(name, &std::fs::read(folder.join(name)).unwrap());
    }
    diagnose(&intake.finish())
        .findings
        .into_iter()
        .filter(|f| f.severity >= Severity::Warning)
        .map(|f| f.rule)
        .collect()
}

#[test]
fn what_worked_is_healthy() {
    for names in [
        &["single.log"][..],
        &["w2_r0.log", "w2_r1.log"],
        &["w4_r0.log", "w4_r1.log", "w4_r2.log", "w4_r3.log"],
        &["f_default_r0.log", "f_default_r1.log"],
        &["f_exclude_r0.log", "f_exclude_r1.log"],
    ] {
        assert_eq!(loud(names), Vec::<String>::new(), "{names:?}");
    }
}

#[test]
fn what_failed_is_explained() {
    assert_eq!(loud(&["f_wildcard_r0.log", "f_wildcard_r1.log"]), ["socket-ifname-not-found"]);
    assert!(loud(&["f_ibnet_r0.log", "f_ibnet_r1.log"]).contains(&"ib-device-not-visible".into()));
}
