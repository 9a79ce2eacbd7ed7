//! Names: unknown, removed, not yet there, old.

use super::{Doubt, Part, Setting, Weight, Write};
use crate::layers::{self, Read};
use crate::params;
use crate::version::Version;

/// A name that no release reads: `env-unknown-name`.
pub fn unknown(s: Setting<'_>, found: &mut Vec<Doubt>) {
    let upper = s.name.to_ascii_uppercase();
    // `nccl_debug`: names are exact
    if upper != s.name && upper.starts_with("NCCL_") && params::get(&upper).is_some() {
        found.push(
            s.doubt(
                "env-unknown-name",
                Weight::Error,
                format!("{} is no variable of NCCL: names are in capitals", s.name),
                "names of variables are compared letter by letter; this one is ignored without a \
                 message",
                format!("write {upper}"),
            )
            .on(Part::Name)
            .writing(Write::Name { name: upper, safe: false }),
        );
        return;
    }
    if !s.name.starts_with("NCCL_") && !s.name.starts_with("NCLL_") && !s.name.starts_with("NCCL-")
    {
        return;
    }
    if TRAINERS.contains(&s.name) {
        return;
    }
    let Read::Unknown(nearest) = layers::read_in(s.name, s.version) else { return };
    let remedy = match &nearest {
        Some(name) => format!("write {name}, or take the line out"),
        None => "take the line out, or check which plug-in reads it".to_owned(),
    };
    // without a name that is near, it may be of a plug-in that is not known here
    let weight = if nearest.is_some() { Weight::Warning } else { Weight::Info };
    let doubt = s
        .doubt(
            "env-unknown-name",
            weight,
            match &nearest {
                Some(name) => format!("{} is no variable of NCCL; {name} is", s.name),
                None => format!("{} is no variable of NCCL", s.name),
            },
            "no release of NCCL reads this name; it is ignored without a message",
            remedy,
        )
        .on(Part::Name);
    found.push(match nearest {
        Some(name) => doubt.writing(Write::Name { name, safe: false }),
        None => doubt,
    });
}

/// Names with NCCL's prefix that programs around it read: PyTorch's old names (now TORCH_NCCL_*),
/// build arguments of images, site scripts of nccl-tests.
const TRAINERS: [&str; 24] = [
    "NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_BLOCKING_WAIT",
    "NCCL_DESYNC_DEBUG",
    "NCCL_ENABLE_TIMING",
    "NCCL_USE_COMM_NONBLOCKING",
    "NCCL_HOME",
    "NCCL_ROOT",
    "NCCL_ROOT_DIR",
    "NCCL_PATH",
    "NCCL_DIR",
    "NCCL_LIB_DIR",
    "NCCL_LIBRARY",
    "NCCL_LIBRARIES",
    "NCCL_INCLUDE_DIR",
    "NCCL_INCLUDE_DIRS",
    "NCCL_LIB",
    "NCCL_VERSION",
    "NCCL_VER",
    "NCCL_BUILD",
    "NCCL_TESTS_VERSION",
    "NCCL_TIMEOUT",
    "NCCL_LIB_PATH",
    "NCCL_DEV_VERSION",
    "NCCL_TESTS_DEVICE",
];

/// A name that an older release read: `env-removed-name`.
pub fn removed(s: Setting<'_>, found: &mut Vec<Doubt>) {
    let Some(param) = params::get(s.name) else { return };
    let Some(last) = param.last else { return };
    if last >= s.version || param.since.is_some_and(|since| since > s.version) {
        return;
    }
    let remedy = match param.replaced_by {
        "" => format!("take {} out", s.name),
        by if by.contains("removed") || by.contains("replaces") => format!("take it out; {by}"),
        by => format!("take it out; its place was taken by {by}"),
    };
    found.push(
        s.doubt(
            "env-removed-name",
            Weight::Warning,
            format!("{} is not read by NCCL {}", s.name, s.version),
            format!(
                "the last release that reads it is {last}; it is ignored without a message, so the \
                 line does nothing"
            ),
            remedy,
        )
        .on(Part::Name)
        .writing(Write::Remove { safe: true }),
    );
}

/// A name that the target release does not know yet: `env-name-too-new`.
pub fn too_new(s: Setting<'_>, found: &mut Vec<Doubt>) {
    let Some(since) = params::get(s.name).and_then(|p| p.since) else { return };
    if !s.version_known || since <= s.version {
        return;
    }
    found.push(
        s.doubt(
            "env-name-too-new",
            Weight::Warning,
            format!("{} is not read by NCCL {}", s.name, s.version),
            format!(
                "{since} is the first release that reads it; {} ignores it without a message",
                s.version
            ),
            format!("take it out, or use NCCL {since} or later"),
        )
        .on(Part::Name),
    );
}

/// A name that works but has a better one: `env-deprecated-name`.
pub fn deprecated(s: Setting<'_>, found: &mut Vec<Doubt>) {
    // old name, new name, first release of the new one, and whether the value stays the same
    const CTAS: Version = Version::new(2, 17, 1);
    const OLD: [(&str, &str, Version, bool); 5] = [
        ("NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", CTAS, true),
        ("NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS", CTAS, true),
        ("NCCL_MAX_NRINGS", "NCCL_MAX_CTAS", CTAS, true),
        ("NCCL_MIN_NRINGS", "NCCL_MIN_CTAS", CTAS, true),
        ("NCCL_CHECK_POINTERS", "NCCL_CHECK_MODE=DEBUG_LOCAL", Version::new(2, 29, 7), false),
    ];
    let Some((_, new, since, same)) = OLD.iter().find(|(old, ..)| *old == s.name) else { return };
    if *since > s.version {
        return;
    }
    let doubt = s
        .doubt(
            "env-deprecated-name",
            Weight::Info,
            format!("{} is the old name of {new}", s.name),
            format!("it is still read; {new} took its place in {since}"),
            format!("write {new}"),
        )
        .on(Part::Name);
    found.push(match *same {
        true => doubt.writing(Write::Name { name: (*new).to_owned(), safe: false }),
        false => doubt,
    });
}

#[cfg(test)]
mod tests {
    use super::super::doubts_of;
    use super::super::tests::rules;
    use crate::Version;

    #[test]
    fn names_are_compared_letter_by_letter() {
        assert_eq!(rules(&[("nccl_debug", "INFO")]), ["nccl_debug env-unknown-name"]);
        assert_eq!(
            rules(&[("NCLL_SOCKET_IFNAME", "eth0")]),
            ["NCLL_SOCKET_IFNAME env-unknown-name"]
        );
        assert_eq!(rules(&[("nccl_home", "/x"), ("NCCL_ASYNC_ERROR_HANDLING", "1")]), [""; 0]);
    }

    #[test]
    fn versions_decide() {
        let old = Version::new(2, 18, 5);
        let of = |name, version| {
            doubts_of(&[(name, "1")], version).iter().map(|d| d.rule).collect::<Vec<_>>()
        };
        assert_eq!(of("NCCL_RAS_ENABLE", Some(old)), ["env-name-too-new"]);
        assert_eq!(of("NCCL_RAS_ENABLE", None), [""; 0]);
        assert_eq!(of("NCCL_CREATE_THREAD_CONTEXT", Some(old)), [""; 0]);
        assert_eq!(of("NCCL_CREATE_THREAD_CONTEXT", None), ["env-removed-name"]);
    }
}
