//! The scaling table of `--sweep-workers`: the same sizes on more and more ranks.

use std::fmt::Write as _;

use ncclctl_findings::Evidence;

/// One line a number of ranks and collective: the greatest busbw and its share of the smallest run's.
/// Empty where all results have the same number of ranks.
pub fn render(evidence: &Evidence, prefix: &str) -> String {
    let mut keys: Vec<(String, usize)> = Vec::new();
    for point in &evidence.series {
        let key = (point.collective.name().to_owned(), point.ranks);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let mut numbers: Vec<usize> = keys.iter().map(|key| key.1).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() < 2 {
        return String::new();
    }
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{prefix}{:<15} {:>6} {:>14} {:>9}",
        "scaling", "ranks", "busbw (GB/s)", "of first"
    );
    let best = |name: &str, ranks: usize| {
        evidence
            .series
            .iter()
            .filter(|p| p.collective.name() == name && p.ranks == ranks)
            .map(|p| p.busbw)
            .fold(0.0, f64::max)
    };
    let mut first: Option<(String, f64)> = None;
    for (name, ranks) in keys {
        let busbw = best(&name, ranks);
        let base = match &first {
            Some((known, base)) if *known == name => *base,
            _ => {
                first = Some((name.clone(), busbw));
                busbw
            }
        };
        let share =
            if base > 0.0 { format!("{:.0}%", busbw / base * 100.0) } else { "-".to_owned() };
        let _ = writeln!(out, "{prefix}{name:<15} {ranks:>6} {busbw:>14.3} {share:>9}");
    }
    out
}
