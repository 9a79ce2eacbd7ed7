//! Wrongdoing on demand, so that tests can prove that it is caught. Not in released binaries.

use super::job::Job;
use super::memory;

/// Which rank does wrong: `NCCLCTL_FAULT=flip-bit:RANK`.
pub(super) fn flipping_rank(value: Option<&str>) -> Option<usize> {
    value?.strip_prefix("flip-bit:")?.parse().ok()
}

/// Flips one bit in the middle of the job's result.
pub(super) fn flip(job: &Job, in_place: bool, recv: &mut [u8]) {
    let (_, bytes) = memory::extent(job);
    let base = if in_place { memory::in_place(job).1 } else { 0 };
    if let Some(byte) = recv.get_mut(base + bytes / 2) {
        *byte ^= 0x40;
    }
}
