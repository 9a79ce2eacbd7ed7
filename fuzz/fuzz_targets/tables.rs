//! Tables of nccl-tests and reports of RAS.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let _ = ncclctl_nccl::nccl_tests::read_table(&text);
    let _ = ncclctl_nccl::nccl_tests::read_json(&text);
    let _ = ncclctl_nccl::ras::read_text(&text);
});
