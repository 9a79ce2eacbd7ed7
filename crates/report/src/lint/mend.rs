//! Edits: applied byte by byte, or shown as lines taken out and put in.

use std::fmt::Write as _;

use ncclctl_findings::Finding;

/// Applies the edits of one file: those that overlap an earlier one are left for the next time.
/// Returns the new text and how many were applied.
pub fn mend(file: &str, text: &str, findings: &[Finding], unsafe_too: bool) -> (String, usize) {
    let mut fixes: Vec<_> = findings
        .iter()
        .filter_map(|f| f.fix.as_ref())
        .filter(|f| f.file == file && (f.safe || unsafe_too))
        .filter(|f| {
            f.start <= f.end && text.is_char_boundary(f.start) && text.is_char_boundary(f.end)
        })
        .collect();
    fixes.sort_by_key(|f| (f.start, f.end));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let mut applied = 0;
    let mut last: Option<(usize, usize)> = None;
    for fix in fixes {
        if fix.start < at || last == Some((fix.start, fix.end)) || fix.end > text.len() {
            continue;
        }
        out.push_str(&text[at..fix.start]);
        out.push_str(&fix.text);
        at = fix.end;
        last = Some((fix.start, fix.end));
        applied += 1;
    }
    out.push_str(&text[at..]);
    (out, applied)
}

/// What an edit changes, as lines taken out and put in.
pub fn difference(file: &str, old: &str, new: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let before = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let after =
        a[before..].iter().rev().zip(b[before..].iter().rev()).take_while(|(x, y)| x == y).count();
    let mut out = format!("--- {file}\n+++ {file}\n");
    let (gone, come) = (&a[before..a.len() - after], &b[before..b.len() - after]);
    let _ = writeln!(out, "@@ -{},{} +{},{} @@", before + 1, gone.len(), before + 1, come.len());
    for line in gone {
        let _ = writeln!(out, "-{line}");
    }
    for line in come {
        let _ = writeln!(out, "+{line}");
    }
    out
}
