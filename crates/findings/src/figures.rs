//! Figures as a reader on call wants them: three digits and a unit.

/// GB/s (10^9 bytes per second), three significant digits.
pub(crate) fn gbs(gigabytes: f64) -> String {
    format!("{} GB/s", digits(gigabytes))
}

/// A rate in bytes per second, shown in bits as links are sold.
pub(crate) fn link_rate(bytes_per_second: f64) -> String {
    let mbit = bytes_per_second * 8.0 / 1e6;
    if mbit >= 1000.0 {
        format!("{} Gbit/s", digits(mbit / 1000.0))
    } else {
        format!("{} Mbit/s", digits(mbit))
    }
}

/// A line rate in bits per second.
pub(crate) fn line_rate(bits: u64) -> String {
    link_rate(bits as f64 / 8.0)
}

/// A share as a whole percentage; one decimal under 10%.
pub(crate) fn percent(share: f64) -> String {
    if share.abs() < 0.0995 && share != 0.0 {
        format!("{:.1}%", share * 100.0)
    } else {
        format!("{:.0}%", share * 100.0)
    }
}

fn digits(value: f64) -> String {
    let text = if value >= 99.95 {
        format!("{value:.0}")
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else if value >= 0.9995 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    };
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_with_unit() {
        assert_eq!(gbs(0.11771), "0.118 GB/s");
        assert_eq!(gbs(1.0), "1 GB/s");
        assert_eq!(gbs(392.44), "392 GB/s");
        assert_eq!(link_rate(25e6), "200 Mbit/s");
        assert_eq!(line_rate(100_000_000_000), "100 Gbit/s");
        assert_eq!(percent(0.974), "97%");
        assert_eq!(percent(0.0123), "1.2%");
        assert_eq!(percent(0.0), "0%");
    }
}
