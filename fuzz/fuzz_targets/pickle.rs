//! Pickles: data or an error, never code, never without bound.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = ncclctl_nccl::flight_recorder::read_pickle("nccl_trace_rank_0", data);
});
