//! One data row.

use super::{Cell, TestRow};

/// What a line turned out to be.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// A row.
    Row(TestRow),
    /// Begins like a row and is none.
    Torn,
    /// Something else.
    Other,
}

fn number(text: &str) -> Option<f64> {
    match text {
        "nan" | "-nan" | "NaN" => Some(f64::NAN),
        _ => text.parse().ok(),
    }
}

/// NCCL type names as nccl-tests prints them.
const TYPES: &[&str] = &[
    "int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16",
    "f8e4m3", "f8e5m2", "char", "int", "fp8_e4m3", "fp8_e5m2",
];

/// The four figures of one half. In new tables the fourth is a count or `N/A`, before 2.13.0 it is
/// a greatest difference such as `2e-07`.
fn cell(words: &[&str], errors: bool) -> Option<Cell> {
    let [time, algbw, busbw, last] = words else { return None };
    let (wrong, error) = match *last {
        "N/A" => (None, None),
        text if errors => (None, Some(number(text)?)),
        text => match text.parse::<u64>() {
            Ok(wrong) => (Some(wrong), None),
            // counts beyond a few digits are printed with an exponent
            Err(_) => (Some(number(text).filter(|v| *v >= 0.0)? as u64), None),
        },
    };
    Some(Cell {
        time_us: number(time)?,
        algbw: number(algbw)?,
        busbw: number(busbw)?,
        wrong,
        error,
    })
}

/// Reads one line. `errors` says that the header of this table has an `error` column.
pub(super) fn read(text: &str, at: u64, errors: bool) -> Line {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [size, count, dtype, rest @ ..] = words.as_slice() else {
        return if words.len() == 2 && words.iter().all(|w| w.parse::<u64>().is_ok()) {
            Line::Torn
        } else {
            Line::Other
        };
    };
    let (Ok(size), Ok(count)) = (size.parse::<u64>(), count.parse::<u64>()) else {
        return Line::Other;
    };
    if !TYPES.contains(dtype) {
        return Line::Other;
    }
    // before 2.13.0 the columns redop and root are only there where they mean something
    let mut rest = rest;
    let mut redop = None;
    let mut root = None;
    if let [first, more @ ..] = rest
        && first.starts_with(|c: char| c.is_ascii_alphabetic())
        && number(first).is_none()
        && *first != "N/A"
    {
        redop = (*first != "none").then(|| (*first).to_owned());
        rest = more;
    }
    // eight figures, or twelve and more with statistics and time stamps after them
    let with_root = matches!(rest.len(), 9 | 11 | 17 | 19);
    if with_root && let [first, more @ ..] = rest {
        let Ok(r) = first.parse::<i64>() else { return Line::Torn };
        root = (r >= 0).then_some(r);
        rest = more;
    }
    // with per-iteration statistics: four more figures after each half
    let (first, second) = match rest.len() {
        8 | 10 => (0, 4),
        16 | 18 => (0, 8),
        _ => return Line::Torn,
    };
    let half = |from: usize| rest.get(from..from + 4).and_then(|w| cell(w, errors));
    match (half(first), half(second)) {
        (Some(out), Some(inside)) => Line::Row(TestRow {
            line: at,
            size,
            count,
            dtype: (*dtype).to_owned(),
            redop,
            root,
            out_of_place: Some(out),
            in_place: Some(inside),
        }),
        _ => Line::Torn,
    }
}
