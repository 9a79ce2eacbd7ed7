//! `ncclConfig_t` for the version at hand.
//!
//! The struct starts with its own size, a magic number and the caller's version. NCCL copies as many
//! bytes as both know, rejects a wrong magic, and resets fields that are newer than the version
//! given; fields that are not set hold `INT_MIN` or null. Source: `nccl.h`, `init.cc` of NCCL 2.14.3
//! to 2.32.

use std::ffi::c_int;

use ncclctl_nccl::Version;

/// Largest size of any known version.
const LARGEST: usize = 120;
/// `NCCL_API_MAGIC`.
const MAGIC: u32 = 0xcafe_beef;
/// `NCCL_CONFIG_UNDEF_INT`.
const UNSET: c_int = c_int::MIN;
/// Byte offsets of the pointers among the fields; all others are ints.
const POINTERS: [usize; 2] = [32, 48];

/// The bytes of an `ncclConfig_t`, with every field unset but for `blocking`.
#[repr(C, align(8))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Config {
    bytes: [u8; LARGEST],
    size: usize,
}

/// `sizeof(ncclConfig_t)` of a version; `None` before 2.14, where there is none.
pub(super) const fn size_of(version: Version) -> Option<usize> {
    if version.major != 2 {
        return if version.major > 2 { Some(LARGEST) } else { None };
    }
    Some(match version.minor {
        0..=13 => return None,
        14..=16 => 24,
        17 => 40,
        18..=26 => 48,
        27 => 72,
        28 => 80,
        29 => 88,
        30 => 96,
        31 => 112,
        _ => LARGEST,
    })
}

impl Config {
    /// A blocking communicator's configuration, all else left to NCCL; `None` before 2.14.
    pub(super) fn new(version: Version) -> Option<Self> {
        let size = size_of(version)?;
        let mut config = Self { bytes: [0; LARGEST], size };
        config.bytes[..8].copy_from_slice(&(size as u64).to_ne_bytes());
        config.put(8, MAGIC as c_int);
        let code = version.major * 10_000 + version.minor * 100 + version.patch;
        config.put(12, code as c_int);
        let mut at = 16;
        while at + 4 <= size {
            if POINTERS.contains(&at) {
                at += 8;
            } else {
                config.put(at, UNSET);
                at += 4;
            }
        }
        // blocking; 2.14 to 2.16 know no unset value
        config.put(16, 1);
        Some(config)
    }

    fn put(&mut self, at: usize, value: c_int) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    /// The struct as the C side sees it.
    pub(super) fn as_mut_ptr(&mut self) -> *mut std::ffi::c_void {
        self.bytes.as_mut_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(config: &Config, at: usize) -> i32 {
        i32::from_ne_bytes(config.bytes[at..at + 4].try_into().unwrap())
    }

    #[test]
    fn sizes_follow_the_versions() {
        let sizes: Vec<Option<usize>> =
            (10..=33).map(|minor| size_of(Version::new(2, minor, 3))).collect();
        let known = [24, 24, 24, 40, 48, 48, 48, 48, 48, 48, 48, 48, 48, 72, 80, 88, 96, 112];
        assert!(sizes[..4].iter().all(Option::is_none));
        let mut all: Vec<usize> = known.to_vec();
        all.extend([120, 120]);
        assert_eq!(sizes[4..].iter().map(|s| s.unwrap()).collect::<Vec<_>>(), all);
    }

    #[test]
    fn unset_fields_are_int_min_and_null() {
        let config = Config::new(Version::new(2, 28, 9)).unwrap();
        assert_eq!(config.bytes[..8], 80u64.to_ne_bytes());
        assert_eq!(int(&config, 8) as u32, 0xcafe_beef);
        assert_eq!(int(&config, 12), 22809);
        assert_eq!(int(&config, 16), 1);
        for at in [20, 24, 28, 40, 44, 56, 60, 64, 68, 72, 76] {
            assert_eq!(int(&config, at), i32::MIN, "offset {at}");
        }
        for at in [32, 48] {
            assert_eq!(config.bytes[at..at + 8], [0; 8], "offset {at}");
        }
        assert!(config.bytes[80..].iter().all(|b| *b == 0));
        assert!(Config::new(Version::new(2, 13, 4)).is_none());
    }
}
