//! The kernels compiled for AVX2, used where the processor has it.

#![allow(
    unsafe_code,
    reason = "calling code compiled for a CPU feature needs proof that it is there"
)]

use super::{Left, Reduction};

/// Applies the reduction if this processor has the feature; `false` where it has not.
#[inline]
pub(super) fn apply(
    reduction: Reduction,
    dst: &mut [u8],
    left: &Left<'_>,
    right: &[u8],
    divide: Option<usize>,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: `avx2` is safe code whose only condition is that the processor has AVX2, which
        // was just checked (the answer is cached by the standard library).
        unsafe { avx2(reduction, dst, left, right, divide) };
        return true;
    }
    let _ = (reduction, dst, left, right, divide);
    false
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(
    reduction: Reduction,
    dst: &mut [u8],
    left: &Left<'_>,
    right: &[u8],
    divide: Option<usize>,
) {
    reduction.plain(dst, left, right, divide);
}
