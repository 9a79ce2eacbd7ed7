//! Time stamps in front of a line, as seconds; only differences between them are used.

/// Width of an ISO 8601 date and time at the start of the text, with its zone.
pub fn iso_width(text: &[u8]) -> Option<usize> {
    let date = text.get(..19)?;
    let shape = b"dddd-dd-ddTdd:dd:dd";
    for (have, want) in date.iter().zip(shape) {
        let fits = match want {
            b'd' => have.is_ascii_digit(),
            b'T' => matches!(have, b'T' | b' '),
            other => have == other,
        };
        if !fits {
            return None;
        }
    }
    let mut at = 19;
    if matches!(text.get(at), Some(b'.' | b',')) {
        at += 1;
        while text.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
    }
    match text.get(at) {
        Some(b'Z') => at += 1,
        Some(b'+' | b'-') => {
            let zone = text.get(at + 1..at + 6).filter(|z| z[2] == b':').map(|_| 6);
            let short =
                text.get(at + 1..at + 5).filter(|z| z.iter().all(u8::is_ascii_digit)).map(|_| 5);
            at += zone.or(short).unwrap_or(0);
        }
        _ => {}
    }
    Some(at)
}

/// Seconds since 1970 of the first ISO date in the text, ignoring its zone.
pub fn seconds(text: &[u8]) -> Option<f64> {
    let start = (0..text.len().saturating_sub(18))
        .find(|&at| text[at].is_ascii_digit() && iso_width(&text[at..]).is_some())?;
    let stamp = &text[start..];
    let number = |from: usize, to: usize| -> i64 {
        stamp[from..to].iter().fold(0, |n, b| n * 10 + i64::from(b - b'0'))
    };
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    if !(1..=12).contains(&month) {
        return None;
    }
    // days from civil, Howard Hinnant
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y - era * 400;
    let doy = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468;
    let whole = days * 86_400 + number(11, 13) * 3600 + number(14, 16) * 60 + number(17, 19);
    let mut fraction = 0.0;
    if matches!(stamp.get(19), Some(b'.' | b',')) {
        let mut scale = 0.1;
        for b in stamp[20..].iter().take_while(|b| b.is_ascii_digit()).take(9) {
            fraction += f64::from(b - b'0') * scale;
            scale /= 10.0;
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "seconds fit in 53 bits")]
    Some(whole as f64 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_stamps() {
        assert_eq!(iso_width(b"2025-05-16T16:39:51.208-07:00ip-10"), Some(29));
        assert_eq!(iso_width(b"2026-04-22 21:34:20] h"), Some(19));
        assert_eq!(iso_width(b"2021-06-20T10:31:12.199999999Z x"), Some(30));
        assert_eq!(iso_width(b"2021-06-20"), None);
        assert_eq!(seconds(b"1970-01-02T00:00:01Z"), Some(86401.0));
        assert_eq!(seconds(b"[2026-04-22 21:34:20] h"), Some(1_776_893_660.0));
        assert_eq!(seconds(b"nothing"), None);
    }
}
