//! NCCL's version numbers.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A version of NCCL, like 2.21.5.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub struct Version {
    /// Major, 2 since 2017.
    pub major: u32,
    /// Minor.
    pub minor: u32,
    /// Patch.
    pub patch: u32,
}

/// Text that is no version.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no NCCL version; expected something like 2.21.5")]
pub struct VersionError(String);

impl Version {
    /// A version from its parts.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// From what `ncclGetVersion` gives: 21805 is 2.18.5, and up to 2.8 one digit fewer, 2708 is
    /// 2.7.8. Source: `NCCL_VERSION` in `nccl.h`.
    pub const fn from_code(code: u32) -> Self {
        if code < 10_000 {
            Self::new(code / 1000, code / 100 % 10, code % 100)
        } else {
            Self::new(code / 10_000, code / 100 % 100, code % 100)
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for Version {
    type Err = VersionError;

    /// Reads `2.21.5`, `v2.30.7-1`, `2.21.5+cuda12.4`, `2.31`, and the code `22105`.
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let fail = || VersionError(text.to_owned());
        let bare = text.trim();
        let bare = bare.strip_prefix(['v', 'V']).unwrap_or(bare);
        let end = bare.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(bare.len());
        let mut parts = bare[..end].split('.').map(|p| p.parse::<u32>().map_err(|_| fail()));
        let major = parts.next().ok_or_else(fail)??;
        let Some(minor) = parts.next() else {
            return if end == bare.len() && (1000..1_000_000).contains(&major) {
                Ok(Self::from_code(major))
            } else {
                Err(fail())
            };
        };
        let patch = parts.next().transpose()?.unwrap_or(0);
        if parts.next().is_some() { Err(fail()) } else { Ok(Self::new(major, minor?, patch)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_spelling() {
        for (text, want) in [
            ("2.21.5", Version::new(2, 21, 5)),
            ("v2.30.7-1", Version::new(2, 30, 7)),
            ("2.21.5+cuda12.4", Version::new(2, 21, 5)),
            ("v2.31.2(wheel)", Version::new(2, 31, 2)),
            ("2.31", Version::new(2, 31, 0)),
            ("21805", Version::new(2, 18, 5)),
            ("2708", Version::new(2, 7, 8)),
        ] {
            assert_eq!(text.parse(), Ok(want), "{text}");
        }
        for bad in ["", "x", "2", "2.", "2.x", "2.1.2.3", "99999999999.1", "2..1", "21805x"] {
            assert!(bad.parse::<Version>().is_err(), "{bad}");
        }
        assert!(Version::new(2, 9, 9) < Version::new(2, 10, 3));
    }

    proptest::proptest! {
        #[test]
        fn never_panics_and_shows_what_it_read(text in ".{0,20}") {
            if let Ok(v) = text.parse::<Version>() {
                proptest::prop_assert_eq!(v.to_string().parse::<Version>(), Ok(v));
            }
        }
    }
}
