//! Plain text that fits a terminal.

use std::fmt::Write as _;

/// Writes `text` in lines of at most `width` characters: `first` before the first line, `rest` before
/// the others. Words longer than a line stand alone, never cut.
pub fn wrap(out: &mut String, width: usize, first: &str, rest: &str, text: &str) {
    let mut column = 0;
    let mut empty = true;
    let _ = write!(out, "{first}");
    column += first.chars().count();
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !empty && column + 1 + length > width {
            let _ = write!(out, "\n{rest}");
            column = rest.chars().count();
            empty = true;
        }
        if !empty {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        empty = false;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_fit_and_no_word_is_lost() {
        let mut out = String::new();
        wrap(&mut out, 20, "# - ", "#   ", "one two three four averyveryverylongword five");
        insta::assert_snapshot!(out, @r"
        # - one two three
        #   four
        #   averyveryverylongword
        #   five
        ");
    }
}
