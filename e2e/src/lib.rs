//! Drives the built binary against real parts: network namespaces as hosts, veth links of known
//! rate, kills and partitions.
//!
//! Namespaces and limits need root. Where they can not be had a test calls [`skipped`], which is
//! counted by `./test`; nothing is skipped silently.

pub mod binary;
pub mod cluster;
pub mod docker;
pub mod lab;

use std::io::Write as _;

/// Records that a test could not run here, and why. Use as `return e2e::skipped(…)`.
pub fn skipped(test: &str, why: &str) {
    if let Some(path) = binary::environment("NCCLCTL_SKIPPED")
        && let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path)
    {
        let _ = writeln!(file, "{test}: {why}");
    }
}
