//! Inputs as people hand them in: the kinds of trouble of public reports, written anew with made-up
//! hosts and addresses, and what the answer to each must name. An empty list is a healthy input:
//! nothing at warning level or above may be said of it.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "what goes wrong here fails the test"
)]

use std::path::Path;

use ncclctl_findings::intake::Intake;
use ncclctl_findings::{Severity, diagnose};

/// File under fixtures/reports, and the rules that must speak.
const REPORTS: &[(&str, &[&str])] = &[
    ("c10d-gai-error.log", &["dns-resolution-failed"]),
    ("calloc-out-of-memory.log", &["gpu-out-of-memory"]),
    ("connect-aborted.log", &["bootstrap-unreachable"]),
    ("dataloader-bus-error.log", &["shm-too-small"]),
    ("described-oom.log", &["process-killed"]),
    ("described-pod-that-runs.log", &[]),
    ("dmabuf-refused-2.13.log", &["rdma-registration-kernel"]),
    ("dmesg-cable.log", &["ib-port-flap"]),
    ("dmesg-health.log", &["ib-hca-fatal"]),
    ("docker0-on-both.log", &["wrong-interface-virtual"]),
    ("envoy-wrong-type.log", &["service-mesh-sidecar"]),
    ("events-list.json", &["pod-not-started"]),
    ("events-table.txt", &["pod-not-started"]),
    ("fabric-manager-unit-failed.log", &["fabric-manager-down"]),
    ("gdr-off-in-pod.log", &["gdr-disabled"]),
    ("gid-unspecified.log", &["gid-table-empty"]),
    ("hami-error-tag.log", &["hami-vgpu-incompatible"]),
    ("hca-named-none-there.log", &["ib-device-not-visible"]),
    ("healthy-2.28-two-hosts.log", &[]),
    ("healthy-two-5090.log", &[]),
    ("ib0-not-in-pod.log", &["socket-ifname-not-found"]),
    ("init-never-ends.log", &["init-stuck"]),
    ("loopback-on-both.log", &["socket-ifname-loopback"]),
    ("mig-duplicate.log", &["mig-not-supported"]),
    ("modify-qp-linklocal.log", &["gid-index-wrong"]),
    ("mtu-of-queue-pairs.log", &["mtu-mismatch"]),
    ("no-libibverbs-info.log", &["ib-userspace-missing", "silent-tcp-fallback"]),
    ("no-peer-access.log", &["p2p-broken"]),
    ("no-route-poll-connect.log", &["bootstrap-unreachable"]),
    ("not-permitted-in-nvlink-domain.log", &["imex-channel-missing"]),
    ("nvls-add-device-401.log", &["nvls-multicast-failed"]),
    ("nvls-initialization-error-mpi.log", &["nvls-multicast-failed"]),
    ("ofi-no-providers.log", &["efa-provider-missing"]),
    ("pending-pod.yaml", &["pod-not-started"]),
    ("pod-oom.yaml", &["process-killed"]),
    ("reg-mr-memlock.log", &["memlock-limit"]),
    ("reset-after-hours.log", &["idle-connection-dropped"]),
    ("retry-ibp-no-space.log", &["ib-retry-exceeded"]),
    ("retry-vendor-plugin.log", &["ib-retry-exceeded"]),
    ("retrying-connects.log", &["bootstrap-unreachable"]),
    ("sharp-job-error.log", &["sharp-unavailable"]),
    ("shm-2.18.log", &["shm-too-small"]),
    ("symbol-not-found.log", &["nccl-built-without-arch"]),
    ("torch-802.log", &["fabric-manager-down"]),
    ("torch-driver.log", &["driver-too-old"]),
    ("torch-remote-error-only.log", &["nccl-error-unexplained"]),
    ("truncated-two-versions.log", &["nccl-version-mismatch"]),
    ("tunnel-linklocal-2.5.log", &["wrong-interface-linklocal"]),
    ("vgpu-ci-no-uvm.log", &["vgpu-without-uvm"]),
    ("vllm-shm.log", &["shm-too-small"]),
    ("watchdog-pg-status.log", &["rank-behind"]),
    ("watchdog-same-work.log", &["watchdog-timeout"]),
    ("watchdog-stuck.log", &["watchdog-timeout"]),
    ("wrong-elements-consumer.log", &["data-corruption"]),
    ("xid-nvlink.log", &["xid-error"]),
];

fn loud(name: &str, before: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reports");
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    let mut intake = Intake::default();
    if !before.is_empty() {
        intake.add("beside.log", before.as_bytes());
    }
    intake.add(name, text.as_bytes());
    diagnose(&intake.finish())
        .findings
        .into_iter()
        .filter(|f| f.severity >= Severity::Warning)
        .map(|f| f.rule)
        .collect()
}

#[test]
fn every_report_has_its_answer() {
    let mut wrong = Vec::new();
    for (name, expected) in REPORTS {
        let loud = loud(name, "");
        for want in *expected {
            if !loud.iter().any(|l| l == want) {
                wrong.push(format!("{name}: misses {want}; has {loud:?}"));
            }
        }
        if expected.is_empty() && !loud.is_empty() {
            wrong.push(format!("{name}: has {loud:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_file_is_in_the_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reports");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(REPORTS.iter().any(|(n, _)| *n == name), "{name} is not in the list");
    }
}

/// Events live for an hour: beside a run that went through they are history.
#[test]
fn old_events_beside_a_finished_run_are_no_finding() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reports");
    let healthy = std::fs::read_to_string(folder.join("healthy-two-5090.log")).unwrap();
    assert_eq!(loud("events-table.txt", &healthy), Vec::<String>::new());
}
