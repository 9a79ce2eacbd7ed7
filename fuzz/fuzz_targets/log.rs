//! The log reader: any bytes, in two pieces, give the model that one piece gives.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ncclctl_nccl::log::Reader;

fuzz_target!(|data: &[u8]| {
    let read = |pieces: &[&[u8]]| {
        let mut reader = Reader::default();
        reader.source("fuzz");
        for piece in pieces {
            reader.feed(piece);
        }
        reader.finish()
    };
    let whole = read(&[data]);
    let (a, b) = data.split_at(data.len() / 2);
    let split = read(&[a, b]);
    assert_eq!(whole.lines, split.lines);
    assert_eq!(whole.nccl_lines, split.nccl_lines);
    assert_eq!(whole.processes.len(), split.processes.len());
});
