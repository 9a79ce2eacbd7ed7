//! Quantities as people type them: durations, shares, bit rates.

use std::time::Duration;

/// `500ms`, `15s`, `2m`, `1h`; a plain number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let value: f64 = number
        .parse()
        .map_err(|_| format!("`{text}` is no duration; write 500ms, 15s, 2m or 1h"))?;
    let seconds = match unit {
        "ms" => value / 1e3,
        "" | "s" => value,
        "m" | "min" => value * 60.0,
        "h" => value * 3600.0,
        _ => return Err(format!("`{unit}` is no unit of time; write 500ms, 15s, 2m or 1h")),
    };
    if !(0.001..=1e7).contains(&seconds) {
        return Err(format!("`{text}` is out of range; between 1ms and 2700h is possible"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// `2%` or `0.02`; between 0 and 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let value = match text.strip_suffix('%') {
        Some(number) => number.trim().parse::<f64>().map(|v| v / 100.0),
        None => text.parse::<f64>(),
    };
    match value {
        Ok(value) if value > 0.0 && value <= 1.0 => Ok(value),
        _ => Err(format!("`{text}` is no share; write 2% or 0.02, more than 0 and at most 1")),
    }
}

/// Bits per second: `100G`, `2.5Gbit`, `200gbps`, `10000M`; powers of 1000.
pub(crate) fn bits(text: &str) -> Result<u64, String> {
    let fail = || format!("`{text}` is no line rate; write bits per second like 100G, 25G or 2.5G");
    let (number, unit) = split(text);
    let value: f64 = number.parse().map_err(|_| fail())?;
    let unit = unit.to_ascii_lowercase();
    let unit = unit
        .trim_end_matches("/s")
        .trim_end_matches("bps")
        .trim_end_matches("bits")
        .trim_end_matches("bit")
        .trim_end_matches('b');
    let factor = match unit {
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        _ => return Err(fail()),
    };
    let bits = value * factor;
    if (1e6..1e15).contains(&bits) { Ok(bits as u64) } else { Err(fail()) }
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("15"), Ok(Duration::from_secs(15)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(share("2%"), Ok(0.02));
        assert_eq!(share("0.9"), Ok(0.9));
        assert_eq!(bits("100G"), Ok(100_000_000_000));
        assert_eq!(bits("2.5 Gbit/s"), Ok(2_500_000_000));
        assert_eq!(bits("200gbps"), Ok(200_000_000_000));
    }

    #[test]
    fn what_can_not_be_meant() {
        for bad in ["", "s", "-1s", "1e999", "0s", "3 days", "1..2s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        for bad in ["0", "200%", "-1", "x", "NaN"] {
            assert!(share(bad).is_err(), "{bad}");
        }
        for bad in ["100", "100K", "0G", "fast"] {
            assert!(bits(bad).is_err(), "{bad}");
        }
    }
}
