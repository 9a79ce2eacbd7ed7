//! Element types as the kernels see them: how bytes become a number to compute with, and back.
//!
//! Conversions are written without branches, so that the loops around them vectorise.

/// Bits of an `f32` without its sign.
const ABS: u32 = 0x7fff_ffff;
/// Bits of `f32` infinity.
const INF: u32 = 0x7f80_0000;

/// An element type: `W` bytes in memory, a number of type `Acc` in a register.
pub(super) trait Number<const W: usize> {
    /// What is computed with.
    type Acc: Copy + Arithmetic;
    /// From native-endian bytes.
    fn load(bytes: [u8; W]) -> Self::Acc;
    /// To native-endian bytes, rounded to nearest even.
    fn store(value: Self::Acc) -> [u8; W];
}

/// What NCCL's reductions need of a number. Integers wrap, as CUDA's do.
pub(super) trait Arithmetic {
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// Of a number and a NaN, the number (CUDA's `fminf`).
    fn least(self, other: Self) -> Self;
    /// Of a number and a NaN, the number (CUDA's `fmaxf`).
    fn greatest(self, other: Self) -> Self;
    /// Divides by a number of ranks; integers towards zero.
    fn divide(self, ranks: usize) -> Self;
}

macro_rules! integer {
    ($($t:ty, $wide:ty, $w:literal);+) => {$(
        impl Arithmetic for $t {
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn least(self, other: Self) -> Self { self.min(other) }
            #[inline(always)]
            fn greatest(self, other: Self) -> Self { self.max(other) }
            #[inline(always)]
            fn divide(self, ranks: usize) -> Self { (self as $wide / ranks as $wide) as $t }
        }
        impl Number<$w> for $t {
            type Acc = $t;
            #[inline(always)]
            fn load(bytes: [u8; $w]) -> $t { <$t>::from_ne_bytes(bytes) }
            #[inline(always)]
            fn store(value: $t) -> [u8; $w] { value.to_ne_bytes() }
        }
    )+};
}
integer!(i8, i64, 1; u8, u64, 1; i32, i64, 4; u32, u64, 4; i64, i64, 8; u64, u64, 8);

macro_rules! float {
    ($($t:ty, $w:literal);+) => {$(
        impl Arithmetic for $t {
            #[inline(always)]
            fn add(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn least(self, other: Self) -> Self { self.min(other) }
            #[inline(always)]
            fn greatest(self, other: Self) -> Self { self.max(other) }
            #[inline(always)]
            fn divide(self, ranks: usize) -> Self { self / ranks as $t }
        }
        impl Number<$w> for $t {
            type Acc = $t;
            #[inline(always)]
            fn load(bytes: [u8; $w]) -> $t { <$t>::from_ne_bytes(bytes) }
            #[inline(always)]
            fn store(value: $t) -> [u8; $w] { value.to_ne_bytes() }
        }
    )+};
}
float!(f32, 4; f64, 8);

/// IEEE binary16.
pub(super) struct Half;
/// The upper half of an `f32`.
pub(super) struct Brain;
/// OCP 8-bit float with 4 exponent bits: largest 448, no infinity.
pub(super) struct E4m3;
/// OCP 8-bit float with 5 exponent bits: largest 57344.
pub(super) struct E5m2;

/// Widens a small IEEE-like float: `code` without its sign, `mantissa` bits of mantissa.
/// The code is put where an `f32` has exponent and mantissa, then scaled: exact, subnormals too.
#[inline(always)]
fn widen(code: u32, mantissa: u32, bias: u32) -> f32 {
    f32::from_bits(code << (23 - mantissa)) * f32::from_bits((254 - bias) << 23)
}

/// Narrows `|value|` to nearest even; the result may be beyond the largest code. NaN not handled.
#[inline(always)]
fn narrow(bits: u32, mantissa: u32, bias: u32) -> u32 {
    let cut = 23 - mantissa;
    // normal numbers: round the bits that fall off, the carry runs into the exponent as it must
    let normal = (bits.wrapping_add((1 << (cut - 1)) - 1 + ((bits >> cut) & 1)))
        .wrapping_sub((127 - bias) << 23)
        >> cut;
    // subnormals: adding a number whose last place is the least subnormal lets the FPU round
    let magic = f32::from_bits((127 - bias + 1 + cut) << 23);
    let subnormal = (f32::from_bits(bits) + magic).to_bits().wrapping_sub(magic.to_bits());
    if bits < (127 - bias + 1) << 23 { subnormal } else { normal }
}

impl Number<2> for Half {
    type Acc = f32;
    #[inline(always)]
    fn load(bytes: [u8; 2]) -> f32 {
        let h = u32::from(u16::from_ne_bytes(bytes));
        let code = h & 0x7fff;
        let finite = widen(code, 10, 15).to_bits();
        let value = if code >= 0x7c00 { finite | INF } else { finite };
        f32::from_bits(value | (h & 0x8000) << 16)
    }
    #[inline(always)]
    fn store(value: f32) -> [u8; 2] {
        let all = value.to_bits();
        let bits = all & ABS;
        let rounded = narrow(bits, 10, 15).min(0x7c00);
        let finite = if bits >= 0x4780_0000 { 0x7c00 } else { rounded };
        let code = if bits > INF { 0x7e00 } else { finite };
        ((code | (all >> 16 & 0x8000)) as u16).to_ne_bytes()
    }
}

impl Number<2> for Brain {
    type Acc = f32;
    #[inline(always)]
    fn load(bytes: [u8; 2]) -> f32 {
        f32::from_bits(u32::from(u16::from_ne_bytes(bytes)) << 16)
    }
    #[inline(always)]
    fn store(value: f32) -> [u8; 2] {
        let all = value.to_bits();
        let rounded = all.wrapping_add(0x7fff + (all >> 16 & 1)) >> 16;
        let code = if all & ABS > INF { (all >> 16) | 0x40 } else { rounded };
        (code as u16).to_ne_bytes()
    }
}

impl Number<1> for E4m3 {
    type Acc = f32;
    #[inline(always)]
    fn load(bytes: [u8; 1]) -> f32 {
        let c = u32::from(bytes[0]);
        let code = c & 0x7f;
        let finite = widen(code, 3, 7).to_bits();
        let value = if code == 0x7f { 0x7fc0_0000 } else { finite };
        f32::from_bits(value | (c & 0x80) << 24)
    }
    // beyond the largest: the largest, as CUDA's conversions saturate (`__NV_SATFINITE`)
    #[inline(always)]
    fn store(value: f32) -> [u8; 1] {
        let all = value.to_bits();
        let bits = all & ABS;
        let finite = if bits >= 0x43e0_0000 { 0x7e } else { narrow(bits, 3, 7).min(0x7e) };
        let code = if bits > INF { 0x7f } else { finite };
        [(code | (all >> 24 & 0x80)) as u8]
    }
}

impl Number<1> for E5m2 {
    type Acc = f32;
    #[inline(always)]
    fn load(bytes: [u8; 1]) -> f32 {
        let c = u32::from(bytes[0]);
        let code = c & 0x7f;
        let finite = widen(code, 2, 15).to_bits();
        let value = if code >= 0x7c { finite | INF } else { finite };
        f32::from_bits(value | (c & 0x80) << 24)
    }
    // saturates like [`E4m3`]
    #[inline(always)]
    fn store(value: f32) -> [u8; 1] {
        let all = value.to_bits();
        let bits = all & ABS;
        let finite = if bits >= 0x4760_0000 { 0x7b } else { narrow(bits, 2, 15).min(0x7b) };
        let code = if bits > INF { 0x7f } else { finite };
        [(code | (all >> 24 & 0x80)) as u8]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every code of a type, decoded the slow and obvious way.
    fn decode(code: u32, mantissa: u32, bias: i32, nan_from: u32, infinity: Option<u32>) -> f64 {
        if infinity == Some(code) {
            return f64::INFINITY;
        }
        if code >= nan_from {
            return f64::NAN;
        }
        let exponent = (code >> mantissa) as i32;
        let fraction = f64::from(code & ((1 << mantissa) - 1)) / f64::from(1u32 << mantissa);
        if exponent == 0 {
            fraction * 2f64.powi(1 - bias)
        } else {
            (1.0 + fraction) * 2f64.powi(exponent - bias)
        }
    }

    /// Nearest even by search over all codes.
    fn nearest(value: f64, table: &[f64]) -> usize {
        let mut best = 0;
        for (code, &v) in table.iter().enumerate() {
            let (d, b) = ((v - value).abs(), (table[best] - value).abs());
            if d < b || (d == b && code % 2 == 0) {
                best = code;
            }
        }
        best
    }

    fn samples(table: &[f64]) -> Vec<f32> {
        let mut values = vec![0.0f32, 1e-30];
        for pair in table.windows(2) {
            let middle = f64::midpoint(pair[0], pair[1]);
            for v in [pair[0], middle, middle * (1.0 + 1e-7), middle * (1.0 - 1e-7)] {
                values.push(v as f32);
            }
        }
        values
    }

    #[test]
    fn fp8_rounds_to_nearest_even_and_saturates() {
        let e4: Vec<f64> = (0..0x7f).map(|c| decode(c, 3, 7, 0x7f, None)).collect();
        let e5: Vec<f64> = (0..0x7c).map(|c| decode(c, 2, 15, 0x7d, Some(0x7c))).collect();
        for v in samples(&e4) {
            assert_eq!(usize::from(E4m3::store(v)[0]), nearest(f64::from(v), &e4), "{v}");
            assert_eq!(usize::from(E4m3::store(-v)[0]), nearest(f64::from(v), &e4) | 0x80);
        }
        for v in samples(&e5) {
            assert_eq!(usize::from(E5m2::store(v)[0]), nearest(f64::from(v), &e5), "{v}");
        }
        assert_eq!((E4m3::store(3e38), E5m2::store(3e38)), ([0x7e], [0x7b]));
        assert_eq!(E4m3::store(f32::INFINITY), [0x7e]);
        assert_eq!(E5m2::store(f32::NEG_INFINITY), [0xfb]);
        assert_eq!(E4m3::store(f32::NAN)[0] & 0x7f, 0x7f);
        assert_eq!(E5m2::store(f32::NAN)[0] & 0x7f, 0x7f);
        assert!(E4m3::load([0x7f]).is_nan() && E4m3::load([0xff]).is_nan());
        for (c, &v) in e4.iter().enumerate() {
            assert_eq!(f64::from(E4m3::load([c as u8])), v);
            assert_eq!(f64::from(E4m3::load([c as u8 | 0x80])), -v);
        }
        for (c, &v) in e5.iter().enumerate() {
            assert_eq!(f64::from(E5m2::load([c as u8])), v);
        }
    }

    #[test]
    fn half_and_bfloat_round_trip_and_round() {
        for code in 0..=u16::MAX {
            let (h, b) = (Half::load(code.to_ne_bytes()), Brain::load(code.to_ne_bytes()));
            let magnitude = u32::from(code & 0x7fff);
            if magnitude <= 0x7c00 {
                let want = decode(magnitude, 10, 15, 0x7c01, Some(0x7c00));
                assert_eq!(f64::from(h.abs()), want, "{code:x}");
                assert_eq!(Half::store(h), code.to_ne_bytes(), "{code:x}");
            } else {
                assert!(h.is_nan() && Half::load(Half::store(h)).is_nan());
            }
            if b.is_nan() {
                assert!(Brain::load(Brain::store(b)).is_nan());
            } else {
                assert_eq!(Brain::store(b), code.to_ne_bytes());
            }
        }
        let cases: [(f32, u16); 7] = [
            (65519.9, 0x7bff),
            (65520.0, 0x7c00),
            (1e10, 0x7c00),
            (2049.0, 0x6800), // between 2048 and 2050: even
            (2051.0, 0x6802),
            (2.980_232_2e-8, 0x0000), // half the least subnormal: even
            (2.980_232_6e-8, 0x0001),
        ];
        for (value, code) in cases {
            assert_eq!(u16::from_ne_bytes(Half::store(value)), code, "{value}");
        }
        assert_eq!(u16::from_ne_bytes(Brain::store(f32::from_bits(0x3f80_8000))), 0x3f80);
        assert_eq!(u16::from_ne_bytes(Brain::store(f32::from_bits(0x3f81_8000))), 0x3f82);
    }
}
