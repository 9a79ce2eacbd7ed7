//! Slurm's host lists: `n[1-3,7]`, `rack[1-2]n[01-16]`, `login,n4`.

/// Most hosts that a list may stand for: above any machine, below what would fill memory.
const MOST: usize = 1 << 17;

/// Why a host list can not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("host list `{list}`, character {column}: {why}")]
pub struct NodeListError {
    /// The list as given.
    pub list: String,
    /// Where, from 1.
    pub column: usize,
    /// What is wrong there.
    pub why: String,
}

/// The hosts that a list stands for, in its order.
pub fn expand(list: &str) -> Result<Vec<String>, NodeListError> {
    let mut hosts = Vec::new();
    let mut at = 0;
    for entry in split(list)? {
        let expanded = one(list, at, entry)?;
        if hosts.len() + expanded.len() > MOST {
            return Err(fail(list, at, format!("more than {MOST} hosts")));
        }
        hosts.extend(expanded);
        at += entry.len() + 1;
    }
    Ok(hosts)
}

fn fail(list: &str, at: usize, why: impl Into<String>) -> NodeListError {
    NodeListError { list: list.to_owned(), column: at + 1, why: why.into() }
}

/// Splits at commas that are outside brackets.
fn split(list: &str) -> Result<Vec<&str>, NodeListError> {
    let mut entries = Vec::new();
    let (mut start, mut open) = (0, None);
    for (at, c) in list.char_indices() {
        match (c, open) {
            ('[', None) => open = Some(at),
            ('[', Some(_)) => return Err(fail(list, at, "`[` inside brackets")),
            (']', Some(_)) => open = None,
            (']', None) => return Err(fail(list, at, "`]` without `[`")),
            (',', None) => {
                entries.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if let Some(at) = open {
        return Err(fail(list, at, "`[` is never closed"));
    }
    entries.push(&list[start..]);
    Ok(entries)
}

/// Expands one entry; brackets may stand in it several times.
fn one(list: &str, at: usize, entry: &str) -> Result<Vec<String>, NodeListError> {
    if entry.is_empty() {
        return Err(fail(list, at, "an empty name"));
    }
    let Some((head, rest)) = entry.split_once('[') else { return Ok(vec![entry.to_owned()]) };
    let inner_at = at + head.len() + 1;
    let Some((inside, tail)) = rest.split_once(']') else {
        return Err(fail(list, inner_at, "`[` is never closed"));
    };
    let tails = if tail.is_empty() {
        vec![String::new()]
    } else {
        one(list, inner_at + inside.len() + 1, tail)?
    };
    let mut hosts = Vec::new();
    let mut part_at = inner_at;
    for part in inside.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| text.parse::<u64>().ok()).flatten()
        };
        let (Some(low), Some(high)) = (number(first), number(last)) else {
            return Err(fail(list, part_at, format!("`{part}` is no number or range")));
        };
        if high < low {
            return Err(fail(list, part_at, format!("`{part}` runs backwards")));
        }
        let width = if first.len() > 1 && first.starts_with('0') { first.len() } else { 0 };
        let count = (high - low).saturating_add(1).saturating_mul(tails.len() as u64);
        if count.saturating_add(hosts.len() as u64) > MOST as u64 {
            return Err(fail(list, part_at, format!("more than {MOST} hosts")));
        }
        for n in low..=high {
            hosts.extend(tails.iter().map(|tail| format!("{head}{n:0width$}{tail}")));
        }
        part_at += part.len() + 1;
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::expand;

    #[test]
    fn slurm_forms() {
        for (list, hosts) in [
            ("n1", "n1"),
            ("n[1-3,7]", "n1 n2 n3 n7"),
            ("login,n[08-10]", "login n08 n09 n10"),
            ("rack[1-2]n[1-2]", "rack1n1 rack1n2 rack2n1 rack2n2"),
            ("gpu-a[001,003]-ib,x", "gpu-a001-ib gpu-a003-ib x"),
            ("a.example.org", "a.example.org"),
        ] {
            assert_eq!(expand(list).unwrap().join(" "), hosts, "{list}");
        }
    }

    #[test]
    fn errors_name_the_place() {
        for (list, text) in [
            ("", "host list ``, character 1: an empty name"),
            ("n[1-3", "host list `n[1-3`, character 2: `[` is never closed"),
            ("n1],n2", "host list `n1],n2`, character 3: `]` without `[`"),
            ("a,n[3-1]", "host list `a,n[3-1]`, character 5: `3-1` runs backwards"),
            ("n[1,x]", "host list `n[1,x]`, character 5: `x` is no number or range"),
            ("n[]", "host list `n[]`, character 3: `` is no number or range"),
        ] {
            assert_eq!(expand(list).unwrap_err().to_string(), text);
        }
        let huge = expand("n[0-18446744073709551615]").unwrap_err().to_string();
        assert!(huge.contains("more than"), "{huge}");
        assert!(expand("a[1-999]b[1-999]c[1-999]").is_err());
    }

    proptest! {
        #[test]
        fn never_a_panic(list in "[an0-9,\\[\\]\\-é]{0,24}") {
            let _ = expand(&list);
        }

        #[test]
        fn a_range_is_its_numbers(low in 0u64..500, more in 0u64..50, prefix in "[a-z]{1,5}") {
            let high = low + more;
            let expected: Vec<String> = (low..=high).map(|n| format!("{prefix}{n}")).collect();
            prop_assert_eq!(expand(&format!("{prefix}[{low}-{high}]")).unwrap(), expected);
        }

        #[test]
        fn plain_names_stand_for_themselves(names in proptest::collection::vec("[a-z][a-z0-9-]{0,8}", 1..6)) {
            prop_assert_eq!(expand(&names.join(",")).unwrap(), names);
        }
    }
}
