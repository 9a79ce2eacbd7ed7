//! Byte sizes as nccl-tests writes them (`8`, `64K`, `1G`, `0.5G`), and the sweep between two.

use std::fmt;

/// A size that can not be read.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error(
    "`{text}` is no size: {why}; write bytes or K, M, G, T (powers of 1024), like 8, 64K, 0.5G"
)]
pub struct SizeError {
    text: String,
    why: &'static str,
}

/// How a sweep goes from its least to its greatest size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Multiply (`-f`).
    Factor(f64),
    /// Add bytes (`-i`).
    Bytes(u64),
}

/// Reads a size: a number with an optional K, M, G or T (powers of 1024) and an optional `B` or `iB`.
pub fn parse(text: &str) -> Result<u64, SizeError> {
    let fail = |why| SizeError { text: text.to_owned(), why };
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(fail("the unit is unknown")),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(1 << shift).ok_or_else(|| fail("it is too large"));
    }
    let value: f64 = number.parse().map_err(|_| fail("the number can not be read"))?;
    let bytes = value * (1u64 << shift) as f64;
    if bytes.is_finite() && bytes < u64::MAX as f64 {
        Ok(bytes as u64)
    } else {
        Err(fail("it is too large"))
    }
}

/// All sizes from `begin` to `end` inclusive, as nccl-tests steps them. Never endless: a factor of
/// at most 1 or a step of 0 gives the first size alone.
pub fn sweep(begin: u64, end: u64, step: Step) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut size = begin;
    while size <= end {
        sizes.push(size);
        let next = match step {
            Step::Factor(f) => (size as f64 * f).min(u64::MAX as f64) as u64,
            Step::Bytes(b) => size.saturating_add(b),
        };
        if next <= size {
            break;
        }
        size = next;
    }
    sizes
}

/// Shows bytes exactly and shortly: `64K` where it is a whole multiple, else plain bytes.
pub struct Short(pub u64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(40, 'T'), (30, 'G'), (20, 'M'), (10, 'K')] {
            if self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_nccl_tests_reads() {
        assert_eq!(parse("8"), Ok(8));
        assert_eq!(parse("64K"), Ok(65536));
        assert_eq!(parse("0.5g"), Ok(1 << 29));
        assert_eq!(parse("1GiB"), Ok(1 << 30));
        for bad in ["", "K", "1X", "-1", "1e3", "99999999999T", "1.2.3M"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sweeps_end() {
        assert_eq!(sweep(8, 64, Step::Factor(2.0)), [8, 16, 32, 64]);
        assert_eq!(sweep(8, 64, Step::Factor(1.0)), [8]);
        assert_eq!(sweep(8, 20, Step::Bytes(6)), [8, 14, 20]);
        assert!(sweep(9, 8, Step::Factor(2.0)).is_empty());
    }

    #[test]
    fn shows_short() {
        assert_eq!(Short(65536).to_string(), "64K");
        assert_eq!(Short(1000).to_string(), "1000");
    }
}
