//! Seeded data whose result every rank can tell without talking, and the comparison with it.
//!
//! Element i of rank r is `table(r)[phase(i)]`, where the phase is a hash of the position. So what
//! every rank should end with needs one small table per rank that it depends on, however large the
//! buffer is; and the phases, being hashed, give away blocks that went to the wrong place.
//! As in nccl-tests, values are chosen so that results are exact in every order of operations;
//! only `avg` of floats rounds, and is allowed 2 units in the last place.

use ncclctl_nccl::{DataType, RedOp};

use super::kernel::{Reduction, encode};

/// Entries of a table.
const PHASES: usize = 256;

/// A table: one element for each phase, as bytes.
pub(crate) type Table = Vec<u8>;

/// SplitMix64's mixing function (Steele, Lea, Flood 2014): every input bit changes half the output.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Phase of a position.
fn phase(position: usize) -> usize {
    mix(position as u64) as usize % PHASES
}

/// Largest whole number up to which a float type holds every whole number.
fn exact(dtype: DataType) -> i64 {
    match dtype {
        DataType::Float8E5m2 => 1 << 3,
        DataType::Float8E4m3 => 1 << 4,
        DataType::Bfloat16 => 1 << 8,
        DataType::Float16 => 1 << 11,
        DataType::Float32 => 1 << 24,
        _ => 1 << 53,
    }
}

pub(crate) fn is_float(dtype: DataType) -> bool {
    matches!(
        dtype,
        DataType::Float16
            | DataType::Float32
            | DataType::Float64
            | DataType::Bfloat16
            | DataType::Float8E4m3
            | DataType::Float8E5m2
    )
}

/// Value of rank `rank` of `ranks` at a phase, for a reduction of floats.
fn float_value(reduction: Reduction, rank: usize, at: usize) -> f64 {
    let hash = mix((rank * PHASES + at) as u64 ^ 0x5eed);
    let sign = if hash & 1 == 0 { 1.0 } else { -1.0 };
    let ranks = reduction.ranks.max(1);
    match reduction.op {
        RedOp::Min | RedOp::Max => {
            // + 0.0: of two zeros with different signs either may be the least
            sign * (hash >> 8).rem_euclid(exact(reduction.dtype) as u64) as f64 + 0.0
        }
        RedOp::Prod => {
            // at most three ranks double or halve, so no order of factors over- or underflows
            let speaks = (rank + ranks - at % ranks) % ranks < 3;
            sign * if !speaks {
                1.0
            } else if hash & 2 == 0 {
                2.0
            } else {
                0.5
            }
        }
        RedOp::Sum | RedOp::Avg => {
            // what all could add up to must be exact: few ranks speak where the type is narrow
            let room = exact(reduction.dtype);
            let speakers = (room / 2).clamp(1, 1 << 20).min(ranks as i64);
            // NCCL scales before it adds: few speakers and no cancellation keep its rounding small
            let (speakers, sign) =
                if reduction.op == RedOp::Avg { (speakers.min(2), 1.0) } else { (speakers, sign) };
            let speaks = ((rank + ranks - at % ranks) % ranks) < speakers as usize;
            let limit = (room / speakers).max(1) as u64;
            if speaks { sign * (hash >> 8).rem_euclid(limit + 1) as f64 } else { 0.0 }
        }
    }
}

/// What rank `rank` puts in, for a reduction.
pub(crate) fn operand(reduction: Reduction, rank: usize) -> Table {
    let width = reduction.dtype.size();
    let mut table = Vec::with_capacity(PHASES * width);
    for at in 0..PHASES {
        if is_float(reduction.dtype) {
            let value = float_value(reduction, rank, at);
            table.extend_from_slice(&encode(reduction.dtype, value));
        } else {
            table.extend_from_slice(&integer_bits(rank, at).to_le_bytes()[..width]);
        }
    }
    table
}

/// What rank `rank` puts in, for a collective that only moves: any bytes.
pub(crate) fn payload(dtype: DataType, rank: usize) -> Table {
    let mut table: Table = (0..PHASES * dtype.size() / 8 + 1)
        .flat_map(|i| mix(((rank as u64) << 20) ^ i as u64 ^ 0x7a11).to_le_bytes())
        .collect();
    table.truncate(PHASES * dtype.size());
    table
}

/// What the reduction of all ranks' operands comes to, by plain arithmetic that shares nothing with
/// the kernels under test.
pub(crate) fn expected(reduction: Reduction) -> Table {
    let mut table = Vec::with_capacity(PHASES * reduction.dtype.size());
    for at in 0..PHASES {
        let ranks = 0..reduction.ranks;
        if is_float(reduction.dtype) {
            let values = ranks.map(|rank| float_value(reduction, rank, at));
            let result = match reduction.op {
                RedOp::Sum => values.sum(),
                RedOp::Avg => values.sum::<f64>() / reduction.ranks as f64,
                RedOp::Prod => values.product(),
                RedOp::Min => values.fold(f64::INFINITY, f64::min),
                RedOp::Max => values.fold(f64::NEG_INFINITY, f64::max),
            };
            table.extend_from_slice(&encode(reduction.dtype, result));
        } else {
            let width = reduction.dtype.size();
            let values = ranks.map(|rank| whole(reduction.dtype, integer_bits(rank, at)));
            let wrap = |v: i128| whole(reduction.dtype, v as u64);
            let result = match reduction.op {
                RedOp::Sum => values.fold(0, |a, b| wrap(a + b)),
                RedOp::Avg => values.fold(0, |a, b| wrap(a + b)) / reduction.ranks as i128,
                RedOp::Prod => values.fold(1i128, |a, b| wrap(a.wrapping_mul(b))),
                RedOp::Min => values.fold(i128::MAX, i128::min),
                RedOp::Max => values.fold(i128::MIN, i128::max),
            };
            table.extend_from_slice(&(result as u64).to_le_bytes()[..width]);
        }
    }
    table
}

fn integer_bits(rank: usize, at: usize) -> u64 {
    mix((rank * PHASES + at) as u64 ^ 0x1d2c_3b4a)
}

/// The low bits of `bits` as a whole number of an integer type.
fn whole(dtype: DataType, bits: u64) -> i128 {
    let shift = 64 - 8 * dtype.size();
    match dtype {
        DataType::Int8 | DataType::Int32 | DataType::Int64 => {
            i128::from(((bits << shift) as i64) >> shift)
        }
        _ => i128::from((bits << shift) >> shift),
    }
}

/// Writes elements `first..` of a table's data over `buffer`.
pub(super) fn fill(buffer: &mut [u8], table: &[u8], width: usize, first: usize) {
    for (i, element) in buffer.chunks_exact_mut(width).enumerate() {
        let at = phase(first + i) * width;
        element.copy_from_slice(&table[at..at + width]);
    }
}

/// Counts elements of `buffer` that are not what the table says.
pub(super) fn wrong(
    buffer: &[u8],
    table: &[u8],
    dtype: DataType,
    first: usize,
    rounded: bool,
) -> u64 {
    let width = dtype.size();
    let mut wrong = 0;
    for (i, element) in buffer.chunks_exact(width).enumerate() {
        let at = phase(first + i) * width;
        let want = &table[at..at + width];
        if element != want && !(rounded && is_float(dtype) && close(element, want)) {
            wrong += 1;
        }
    }
    wrong
}

/// Within 2 units in the last place: neighbours of a float are neighbours as sign-magnitude
/// integers.
fn close(a: &[u8], b: &[u8]) -> bool {
    let ordered = |bytes: &[u8]| {
        let mut wide = [0u8; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(wide) as i128;
        let sign = 1i128 << (bytes.len() * 8 - 1);
        if bits & sign == 0 { bits } else { sign - bits }
    };
    ordered(a).abs_diff(ordered(b)) <= 2
}
