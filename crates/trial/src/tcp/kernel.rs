//! Reduction kernels: element-wise operations over byte slices, for every NCCL type.
//!
//! Written as plain loops over fixed-size byte arrays that the compiler vectorises; the whole set
//! is compiled a second time for AVX2 and chosen at run time (see [`wide`]).

use ncclctl_nccl::{DataType, RedOp};

mod number;
mod wide;

use number::{Arithmetic, Brain, E4m3, E5m2, Half, Number};

/// What a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reduction {
    pub(crate) dtype: DataType,
    pub(crate) op: RedOp,
    /// Ranks in all: what `avg` divides by.
    pub(crate) ranks: usize,
}

/// Where the left operand stands.
pub(super) enum Left<'a> {
    /// In the destination itself.
    Destination,
    /// In a buffer of the destination's length.
    Buffer(&'a [u8]),
}

impl Reduction {
    /// `dst = left ∘ right`; with `last`, what `avg` does after the last operand.
    ///
    /// All slices have one length, a multiple of the element size.
    pub(super) fn apply(self, dst: &mut [u8], left: &Left<'_>, right: &[u8], last: bool) {
        let divide = (last && self.op == RedOp::Avg).then_some(self.ranks);
        if !wide::apply(self, dst, left, right, divide) {
            self.plain(dst, left, right, divide);
        }
    }

    #[inline(always)]
    fn plain(self, dst: &mut [u8], left: &Left<'_>, right: &[u8], divide: Option<usize>) {
        match self.dtype {
            DataType::Int8 => by_op::<i8, 1>(self.op, dst, left, right, divide),
            DataType::Uint8 => by_op::<u8, 1>(self.op, dst, left, right, divide),
            DataType::Int32 => by_op::<i32, 4>(self.op, dst, left, right, divide),
            DataType::Uint32 => by_op::<u32, 4>(self.op, dst, left, right, divide),
            DataType::Int64 => by_op::<i64, 8>(self.op, dst, left, right, divide),
            DataType::Uint64 => by_op::<u64, 8>(self.op, dst, left, right, divide),
            DataType::Float16 => by_op::<Half, 2>(self.op, dst, left, right, divide),
            DataType::Float32 => by_op::<f32, 4>(self.op, dst, left, right, divide),
            DataType::Float64 => by_op::<f64, 8>(self.op, dst, left, right, divide),
            DataType::Bfloat16 => by_op::<Brain, 2>(self.op, dst, left, right, divide),
            DataType::Float8E4m3 => by_op::<E4m3, 1>(self.op, dst, left, right, divide),
            DataType::Float8E5m2 => by_op::<E5m2, 1>(self.op, dst, left, right, divide),
        }
    }
}

#[inline(always)]
fn by_op<T: Number<W>, const W: usize>(
    op: RedOp,
    dst: &mut [u8],
    left: &Left<'_>,
    right: &[u8],
    divide: Option<usize>,
) {
    match (op, divide) {
        (RedOp::Sum, _) | (RedOp::Avg, None) => each::<T, W>(dst, left, right, T::Acc::add),
        (RedOp::Prod, _) => each::<T, W>(dst, left, right, T::Acc::mul),
        (RedOp::Max, _) => each::<T, W>(dst, left, right, T::Acc::greatest),
        (RedOp::Min, _) => each::<T, W>(dst, left, right, T::Acc::least),
        (RedOp::Avg, Some(n)) => each::<T, W>(dst, left, right, |a, b| a.add(b).divide(n)),
    }
}

#[inline(always)]
fn each<T: Number<W>, const W: usize>(
    dst: &mut [u8],
    left: &Left<'_>,
    right: &[u8],
    f: impl Fn(T::Acc, T::Acc) -> T::Acc,
) {
    let (dst, _) = dst.as_chunks_mut::<W>();
    let (right, _) = right.as_chunks::<W>();
    match left {
        Left::Destination => {
            for (d, r) in dst.iter_mut().zip(right) {
                *d = T::store(f(T::load(*d), T::load(*r)));
            }
        }
        Left::Buffer(left) => {
            let (left, _) = left.as_chunks::<W>();
            for ((d, l), r) in dst.iter_mut().zip(left).zip(right) {
                *d = T::store(f(T::load(*l), T::load(*r)));
            }
        }
    }
}

/// A value as an element of a type, rounded to nearest even; integers are cut off.
pub(super) fn encode(dtype: DataType, value: f64) -> Vec<u8> {
    match dtype {
        DataType::Int8 => (value as i8).to_ne_bytes().to_vec(),
        DataType::Uint8 => (value as u8).to_ne_bytes().to_vec(),
        DataType::Int32 => (value as i32).to_ne_bytes().to_vec(),
        DataType::Uint32 => (value as u32).to_ne_bytes().to_vec(),
        DataType::Int64 => (value as i64).to_ne_bytes().to_vec(),
        DataType::Uint64 => (value as u64).to_ne_bytes().to_vec(),
        DataType::Float16 => Half::store(value as f32).to_vec(),
        DataType::Float32 => (value as f32).to_ne_bytes().to_vec(),
        DataType::Float64 => value.to_ne_bytes().to_vec(),
        DataType::Bfloat16 => Brain::store(value as f32).to_vec(),
        DataType::Float8E4m3 => E4m3::store(value as f32).to_vec(),
        DataType::Float8E5m2 => E5m2::store(value as f32).to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sign and payload of a NaN are left open by IEEE 754 and change with the order of operands.
    fn with_one_nan(dtype: DataType, bytes: &[u8]) -> Vec<u8> {
        let nan = |e: &[u8]| match dtype {
            DataType::Float16 => e[1] & 0x7c == 0x7c && (e[1] & 3 != 0 || e[0] != 0),
            DataType::Bfloat16 => e[1] & 0x7f == 0x7f && e[0] > 0x80,
            DataType::Float8E4m3 => e[0] & 0x7f == 0x7f,
            DataType::Float8E5m2 => e[0] & 0x7f > 0x7c,
            DataType::Float32 => f32::from_le_bytes([e[0], e[1], e[2], e[3]]).is_nan(),
            DataType::Float64 => {
                f64::from_le_bytes([e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7]]).is_nan()
            }
            _ => false,
        };
        let mut out = bytes.to_vec();
        for element in out.chunks_exact_mut(dtype.size()) {
            if nan(element) {
                element.fill(0xff);
            }
        }
        out
    }

    fn reduce(dtype: DataType, op: RedOp, a: &[u8], b: &[u8], ranks: usize) -> Vec<u8> {
        let r = Reduction { dtype, op, ranks };
        let mut fresh = vec![0; a.len()];
        r.apply(&mut fresh, &Left::Buffer(a), b, true);
        let mut own = a.to_vec();
        r.apply(&mut own, &Left::Destination, b, true);
        let same = |x: &[u8], y: &[u8]| with_one_nan(dtype, x) == with_one_nan(dtype, y);
        assert!(same(&fresh, &own), "both forms agree for {dtype} {op:?}");
        let divide = (op == RedOp::Avg).then_some(ranks);
        r.plain(&mut own, &Left::Buffer(a), b, divide);
        assert!(same(&fresh, &own), "wide and plain agree for {dtype} {op:?}");
        fresh
    }

    /// Every pair of bytes, in a length that leaves a tail behind any vector width.
    #[test]
    fn wide_plain_in_and_out_of_place_agree() {
        let a: Vec<u8> = (0..65_536u32 + 24).map(|i| (i >> 8) as u8).collect();
        let b: Vec<u8> = (0..65_536u32 + 24).map(|i| i as u8).collect();
        for dtype in DataType::ALL {
            for op in RedOp::ALL {
                let out = reduce(dtype, op, &a, &b, 3);
                assert_eq!(out.len(), a.len());
            }
        }
    }

    #[test]
    fn known_values() {
        let f = |v: f32| v.to_ne_bytes().to_vec();
        assert_eq!(reduce(DataType::Float32, RedOp::Sum, &f(1.5), &f(2.0), 2), f(3.5));
        assert_eq!(reduce(DataType::Float32, RedOp::Avg, &f(1.0), &f(2.0), 2), f(1.5));
        assert_eq!(reduce(DataType::Float32, RedOp::Min, &f(f32::NAN), &f(2.0), 2), f(2.0));
        assert_eq!(reduce(DataType::Int8, RedOp::Sum, &[100], &[100], 2), [200]);
        assert_eq!(reduce(DataType::Int8, RedOp::Avg, &[0x80], &[0], 200), [0]);
        assert_eq!(reduce(DataType::Uint8, RedOp::Max, &[200], &[100], 2), [200]);
        assert_eq!(reduce(DataType::Int8, RedOp::Max, &[200], &[100], 2), [100]);
        // 448 + 448 saturates
        assert_eq!(reduce(DataType::Float8E4m3, RedOp::Sum, &[0x7e], &[0x7e], 2), [0x7e]);
    }
}
