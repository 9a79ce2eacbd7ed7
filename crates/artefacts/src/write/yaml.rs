//! YAML text that every reader takes as the same text.

/// A scalar: plain where it can not be taken for anything else, else in double quotes.
pub(super) fn scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/:@+".contains(c))
        && !text.ends_with(':')
        && !["true", "false", "yes", "no", "on", "off", "null", "y", "n"]
            .contains(&text.to_ascii_lowercase().as_str());
    if plain {
        return text.to_owned();
    }
    quoted(text)
}

/// A scalar in double quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A text of several lines as a literal block under an indent.
pub(super) fn block(text: &str, indent: usize) -> String {
    let pad = " ".repeat(indent);
    let mut out = String::from("|\n");
    for line in text.lines() {
        if !line.is_empty() {
            out.push_str(&pad);
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_text() {
        for (text, want) in [
            ("Socket", "Socket"),
            ("0", "\"0\""),
            ("no", "\"no\""),
            ("=mlx5_0,mlx5_1", "\"=mlx5_0,mlx5_1\""),
            ("/opt/x.xml", "/opt/x.xml"),
            ("a\"b", "\"a\\\"b\""),
            ("", "\"\""),
        ] {
            assert_eq!(scalar(text), want);
        }
    }
}
