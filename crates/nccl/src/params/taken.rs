//! What NCCL makes of the text of a setting: the value in force, and what the writer probably did
//! not expect.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Kind, Param, Reading, read_integer};
use crate::ifname::Filter;
use crate::version::Version;

/// Names of path types, as `NCCL_P2P_LEVEL` and `NCCL_NET_GDR_LEVEL` know them.
/// Source: NCCL 2.30.7 `src/graph/paths.cc`.
pub const PATH_LEVELS: [&str; 10] =
    ["LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"];

/// Settings whose value is a path level.
const LEVELS: [&str; 2] = ["NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL"];

/// Since this release `NCCL_DEBUG=ATTN` is a level; before, it is an unknown name.
const ATTN_SINCE: Version = Version::new(2, 32, 0);

/// A value as NCCL takes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Taken {
    /// The value in force; `None` is the default.
    pub value: Option<String>,
    /// What differs from what is written.
    pub trap: Option<Trap>,
}

/// Why a value is not what it looks like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trap {
    /// Text where a number is read: 0, without a message.
    NotANumber,
    /// Text behind the number is ignored.
    Trailing(String),
    /// A leading 0 makes it octal.
    Octal,
    /// Beyond 64 bits: the default.
    OutOfRange,
    /// Empty: the default, and a value of a weaker layer is hidden.
    Empty,
    /// A word that is not known: the default.
    UnknownWord,
    /// `*` is no wildcard: it matches only a real asterisk.
    Wildcard,
    /// A blank is part of a name in a list.
    Blank,
    /// Quotes are part of the value.
    Quoted,
    /// A carriage return is part of the value.
    CarriageReturn,
    /// One character counts as unset.
    OneCharacter,
    /// An unknown level turns logging off.
    LoggingOff,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber => f.write_str("text counts as 0"),
            Self::Trailing(text) => write!(f, "`{}` is ignored", text.escape_debug()),
            Self::Octal => f.write_str("a leading 0 makes it octal"),
            Self::OutOfRange => f.write_str("beyond 64 bits: the default"),
            Self::Empty => f.write_str("empty: the default"),
            Self::UnknownWord => f.write_str("no known word: the default"),
            Self::Wildcard => f.write_str("`*` is no wildcard and matches nothing"),
            Self::Blank => f.write_str("a blank is part of the name"),
            Self::Quoted => f.write_str("the quotes are part of the value"),
            Self::CarriageReturn => f.write_str("a carriage return is part of the value"),
            Self::OneCharacter => f.write_str("one character counts as unset"),
            Self::LoggingOff => f.write_str("an unknown level turns logging off"),
        }
    }
}

impl Param {
    /// What a release makes of a value of this variable.
    pub fn taken(&self, text: &str, version: Version) -> Taken {
        if self.is_integer_in(version) {
            return integer(text);
        }
        if text.is_empty() {
            return Taken { value: None, trap: Some(Trap::Empty) };
        }
        if matches!(self.default_in(version), "true" | "false") {
            return word(text, &["1", "T", "TRUE", "0", "F", "FALSE"]);
        }
        let as_is = |trap| Taken { value: Some(text.to_owned()), trap };
        let default = |trap| Taken { value: None, trap: Some(trap) };
        if LEVELS.contains(&self.name) {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            return match PATH_LEVELS.contains(&text) || digits {
                true => as_is(None),
                false => default(Trap::UnknownWord),
            };
        }
        match self.name {
            "NCCL_DEBUG" => return debug_level(text, version),
            "NCCL_SOCKET_FAMILY" => {
                return match text {
                    "AF_INET" | "AF_INET6" => as_is(None),
                    _ => default(Trap::UnknownWord),
                };
            }
            "NCCL_SOCKET_IFNAME" if Filter::parse(text).is_none() => {
                return default(Trap::OneCharacter);
            }
            _ => {}
        }
        let trap = if text.ends_with('\r') {
            Some(Trap::CarriageReturn)
        } else if text.len() > 1 && text.starts_with(['"', '\'']) && text.ends_with(['"', '\'']) {
            Some(Trap::Quoted)
        } else if self.kind == Kind::List && text.contains('*') {
            Some(Trap::Wildcard)
        } else if matches!(self.name, "NCCL_SOCKET_IFNAME" | "NCCL_IB_HCA") && text.contains(' ') {
            Some(Trap::Blank)
        } else {
            None
        };
        as_is(trap)
    }
}

fn integer(text: &str) -> Taken {
    let read = read_integer(text);
    let digits = text.trim_start_matches([' ', '-', '+']);
    let octal = digits.len() > 1
        && digits.starts_with('0')
        && digits[1..].starts_with(|c: char| c.is_ascii_digit());
    let trap = match read.reading {
        Reading::Whole if octal => Some(Trap::Octal),
        Reading::Whole => None,
        Reading::Trailing(tail) if tail.trim().is_empty() => None,
        Reading::Trailing(tail) => Some(Trap::Trailing(tail.to_owned())),
        Reading::NotANumber => Some(Trap::NotANumber),
        Reading::Empty => Some(Trap::Empty),
        Reading::OutOfRange => Some(Trap::OutOfRange),
    };
    Taken { value: read.value.map(|v| v.to_string()), trap }
}

fn word(text: &str, known: &[&str]) -> Taken {
    let bare = text.trim();
    match known.iter().find(|k| k.eq_ignore_ascii_case(bare)) {
        Some(known) => Taken { value: Some((*known).to_owned()), trap: None },
        None => Taken { value: None, trap: Some(Trap::UnknownWord) },
    }
}

fn debug_level(text: &str, version: Version) -> Taken {
    let upper = text.trim_end_matches('\r').to_ascii_uppercase();
    let known = ["VERSION", "WARN", "INFO", "ABORT", "TRACE"].contains(&upper.as_str())
        || (upper == "ATTN" && version >= ATTN_SINCE);
    if text.ends_with('\r') || !known {
        return Taken { value: Some("off".to_owned()), trap: Some(Trap::LoggingOff) };
    }
    Taken { value: Some(upper), trap: None }
}

#[cfg(test)]
mod tests {
    use super::super::get;
    use super::*;

    fn shown(name: &str, text: &str, version: Version) -> String {
        let taken = get(name).unwrap().taken(text, version);
        let value = taken.value.unwrap_or_else(|| "default".to_owned());
        taken.trap.map_or_else(|| value.clone(), |trap| format!("{value} ({trap})"))
    }

    #[test]
    fn what_nccl_makes_of_it() {
        let new = Version::new(2, 30, 7);
        let old = Version::new(2, 21, 5);
        for (name, text, version, want) in [
            ("NCCL_IB_DISABLE", "true", new, "0 (text counts as 0)"),
            ("NCCL_IB_DISABLE", "1", new, "1"),
            ("NCCL_BUFFSIZE", "8M", new, "8 (`M` is ignored)"),
            ("NCCL_BUFFSIZE", "0x800000", new, "8388608"),
            ("NCCL_IB_TIMEOUT", "022", new, "18 (a leading 0 makes it octal)"),
            ("NCCL_IB_GID_INDEX", "", new, "default (empty: the default)"),
            ("NCCL_IB_GID_INDEX", "3", new, "3"),
            (
                "NCCL_SOCKET_IFNAME",
                "eno*,eth*",
                new,
                "eno*,eth* (`*` is no wildcard and matches nothing)",
            ),
            ("NCCL_SOCKET_IFNAME", "^", new, "default (one character counts as unset)"),
            ("NCCL_SOCKET_IFNAME", "eth0, eth1", new, "eth0, eth1 (a blank is part of the name)"),
            ("NCCL_P2P_LEVEL", "nvl", new, "default (no known word: the default)"),
            ("NCCL_P2P_LEVEL", "5", new, "5"),
            ("NCCL_DEBUG", "info", new, "INFO"),
            ("NCCL_DEBUG", "ATTN", new, "off (an unknown level turns logging off)"),
            ("NCCL_DEBUG", "ATTN", Version::new(2, 32, 3), "ATTN"),
            ("NCCL_DEBUG", "WARN\r", old, "off (an unknown level turns logging off)"),
            ("NCCL_SET_THREAD_NAME", "True", new, "TRUE"),
            ("NCCL_SET_THREAD_NAME", "yes", new, "default (no known word: the default)"),
            ("NCCL_IB_HCA", "\"mlx5\"", new, "\"mlx5\" (the quotes are part of the value)"),
        ] {
            assert_eq!(shown(name, text, version), want, "{name}={text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn total(text in "\\PC{0,20}", at in 0..super::super::all().len()) {
            let _ = super::super::all()[at].taken(&text, Version::new(2, 30, 7));
        }
    }
}
