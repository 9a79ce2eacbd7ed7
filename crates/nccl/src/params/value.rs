//! How NCCL turns text into an integer: `strtoll` with base 0, and nothing more.
//!
//! Source: NCCL 2.30.7 `src/misc/param.cc` (`ncclLoadParam`).

/// An integer setting as NCCL takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer<'a> {
    /// The value in force; `None` means the default.
    pub value: Option<i64>,
    /// What happened on the way.
    pub reading: Reading<'a>,
}

/// What happened to the text of an integer setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading<'a> {
    /// All of it is a number.
    Whole,
    /// A number, then text that is ignored without a message: `8M` is 8.
    Trailing(&'a str),
    /// No number at all: 0, without a message. `NCCL_IB_DISABLE=true` leaves IB on.
    NotANumber,
    /// Empty: the default.
    Empty,
    /// Beyond 64 bits: the default, with an INFO line.
    OutOfRange,
}

/// Reads text as NCCL reads an integer setting: leading blanks and a sign are allowed, `0x` starts
/// base 16 and `0` base 8.
pub fn read_integer(text: &str) -> Integer<'_> {
    if text.is_empty() {
        return Integer { value: None, reading: Reading::Empty };
    }
    let rest = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let (negative, rest) = match rest.as_bytes().first() {
        Some(b'-') => (true, &rest[1..]),
        Some(b'+') => (false, &rest[1..]),
        _ => (false, rest),
    };
    let bytes = rest.as_bytes();
    let hex = bytes.len() > 2
        && bytes[0] == b'0'
        && matches!(bytes[1], b'x' | b'X')
        && bytes[2].is_ascii_hexdigit();
    let (radix, digits) = match bytes.first() {
        _ if hex => (16, &rest[2..]),
        Some(b'0') => (8, rest),
        _ => (10, rest),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (number, tail) = digits.split_at(end);
    if number.is_empty() {
        return Integer { value: Some(0), reading: Reading::NotANumber };
    }
    let mut value: i64 = 0;
    for digit in number.chars().filter_map(|c| c.to_digit(radix)) {
        let digit = i64::from(digit);
        let digit = if negative { -digit } else { digit };
        match value.checked_mul(i64::from(radix)).and_then(|v| v.checked_add(digit)) {
            Some(v) => value = v,
            None => return Integer { value: None, reading: Reading::OutOfRange },
        }
    }
    let reading = if tail.is_empty() { Reading::Whole } else { Reading::Trailing(tail) };
    Integer { value: Some(value), reading }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_strtoll_base_0() {
        for (text, value, reading) in [
            ("1", Some(1), Reading::Whole),
            (" -2", Some(-2), Reading::Whole),
            ("0x10", Some(16), Reading::Whole),
            ("010", Some(8), Reading::Whole),
            ("08", Some(0), Reading::Trailing("8")),
            ("0x", Some(0), Reading::Trailing("x")),
            ("4M", Some(4), Reading::Trailing("M")),
            ("3 ", Some(3), Reading::Trailing(" ")),
            ("true", Some(0), Reading::NotANumber),
            ("-", Some(0), Reading::NotANumber),
            ("", None, Reading::Empty),
            ("9223372036854775807", Some(i64::MAX), Reading::Whole),
            ("-9223372036854775808", Some(i64::MIN), Reading::Whole),
            ("9223372036854775808", None, Reading::OutOfRange),
        ] {
            assert_eq!(read_integer(text), Integer { value, reading }, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn total(text in "\\PC{0,30}") {
            let _ = read_integer(&text);
        }

        #[test]
        fn plain_numbers_are_themselves(n: i64) {
            proptest::prop_assert_eq!(read_integer(&n.to_string()).value, Some(n));
        }
    }
}
