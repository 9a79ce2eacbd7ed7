//! The variable that was most likely meant by a name that is none.

use super::{Param, all, get};

/// The variable nearest to a name that is not in the catalogue: the same name without or with its
/// prefix, one that differs by a few letters, or the shortest one that holds all its words.
pub fn nearest(name: &str) -> Option<&'static Param> {
    let upper = name.trim().to_ascii_uppercase().replace(['-', '.'], "_");
    if let Some(p) = get(&upper).or_else(|| get(&format!("NCCL_{upper}"))) {
        return Some(p);
    }
    let tail = upper.strip_prefix("NCCL_").unwrap_or(&upper);
    // a name of four letters with two wrong is another name; a long one may carry three
    let allowed = (tail.len() / 4).clamp(1, 3);
    let by_letters = all()
        .iter()
        .map(|p| {
            let own = p.name.strip_prefix("NCCL_").unwrap_or(p.name);
            (distance(tail, own).min(distance(&upper, p.name)), p)
        })
        .filter(|(d, _)| *d <= allowed)
        .min_by_key(|(d, p)| (*d, p.removed(), !p.documented));
    if let Some((_, p)) = by_letters {
        return Some(p);
    }
    let words: Vec<&str> = tail.split('_').filter(|w| !w.is_empty()).collect();
    if words.is_empty() || !upper.starts_with("NCCL_") {
        return None;
    }
    all()
        .iter()
        .filter(|p| {
            let own: Vec<&str> = p.name.split('_').collect();
            words.iter().all(|w| own.contains(w))
        })
        .min_by_key(|p| (p.removed(), !p.documented, p.name.len()))
}

/// Edits between two names: insert, remove, replace, or swap two neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = a[i - 1] == b[j - 1];
            let mut best =
                (above[j - 1] + usize::from(!same)).min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = above;
        above = row;
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(typed: &str) -> Option<&'static str> {
        nearest(typed).map(|p| p.name)
    }

    #[test]
    fn finds_what_was_meant() {
        for (typed, meant) in [
            ("NCCL_SOCKET_IFNAMES", "NCCL_SOCKET_IFNAME"),
            ("NCCL_SOCKET_INAME", "NCCL_SOCKET_IFNAME"),
            ("NCLL_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"),
            ("nccl_socket_ifname", "NCCL_SOCKET_IFNAME"),
            ("SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"),
            ("NCCL_IFNAME", "NCCL_SOCKET_IFNAME"),
            ("NCCL_IB_GID_IDX", "NCCL_IB_GID_INDEX"),
            ("NCCL_DEUBG", "NCCL_DEBUG"),
            ("NCCL_IB_TIMEOUTS", "NCCL_IB_TIMEOUT"),
        ] {
            assert_eq!(name(typed), Some(meant), "{typed}");
        }
    }

    #[test]
    fn does_not_guess_wildly() {
        for typed in ["", "PATH", "NCCL_", "NCCL_QUUX_FROBNICATE", "LD_LIBRARY_PATH"] {
            assert_eq!(name(typed), None, "{typed}");
        }
    }

    proptest::proptest! {
        #[test]
        fn total(text in "\\PC{0,30}") {
            let _ = nearest(&text);
        }
    }
}
