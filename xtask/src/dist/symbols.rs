//! What a binary asks of the system that it starts on.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

/// Libraries that every glibc system has, and no others.
const ALLOWED: [&str; 6] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
];

/// What `objdump` says of a binary.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Shared libraries.
    pub(super) needed: Vec<String>,
    /// Newest version of a glibc symbol.
    pub(super) newest: (u32, u32),
    /// A symbol of that version.
    pub(super) symbol: String,
    /// Whether a symbol table was left in the file.
    pub(super) symbols_left: bool,
}

/// Reads a binary with binutils' `objdump`.
pub(super) fn read(binary: &Path) -> anyhow::Result<Asked> {
    let objdump = |option: &str| -> anyhow::Result<String> {
        let out = Command::new("objdump")
            .arg(option)
            .arg(binary)
            .output()
            .context("objdump (Debian package binutils)")?;
        if !out.status.success() {
            bail!("objdump: {}", String::from_utf8_lossy(&out.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    };
    Ok(parse(&objdump("-T")?, &objdump("-p")?, &objdump("-t")?))
}

fn parse(dynamic: &str, headers: &str, table: &str) -> Asked {
    let needed = headers
        .lines()
        .filter_map(|line| line.trim().strip_prefix("NEEDED"))
        .map(|name| name.trim().to_owned())
        .collect();
    let (mut newest, mut symbol) = ((0, 0), String::new());
    for line in dynamic.lines() {
        let mut version = line
            .split_once("GLIBC_")
            .map_or("", |(_, rest)| rest.split([')', ' ']).next().unwrap_or_default())
            .split('.')
            .map_while(|part| part.parse::<u32>().ok());
        if let (Some(major), Some(minor)) = (version.next(), version.next())
            && (major, minor) > newest
        {
            newest = (major, minor);
            symbol = line.split_whitespace().next_back().unwrap_or_default().to_owned();
        }
    }
    Asked { needed, newest, symbol, symbols_left: !table.contains("no symbols") }
}

impl Asked {
    /// Fails where the binary would not start on glibc `floor` or on a system without more libraries.
    pub(super) fn check(&self, floor: (u32, u32)) -> anyhow::Result<()> {
        if self.newest > floor {
            let (major, minor) = self.newest;
            bail!(
                "{} needs glibc {major}.{minor}, the floor is {}.{}",
                self.symbol,
                floor.0,
                floor.1
            );
        }
        if let Some(other) = self.needed.iter().find(|name| !ALLOWED.contains(&name.as_str())) {
            bail!("the binary needs {other}, which not every system has");
        }
        if self.symbols_left {
            bail!("the binary is not stripped");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "SYMBOL TABLE:\nno symbols\n";

    #[test]
    fn floor_libraries_and_symbols_are_held_against_what_objdump_says() {
        let dynamic = "0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.2.5) read\n\
                       0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.14)  memcpy\n\
                       0000000000000000  w   DF *UND*\t0000000000000000  Base         statx\n";
        let good = parse(dynamic, "  NEEDED               libc.so.6\n", TABLE);
        assert_eq!((good.newest, good.symbol.as_str()), ((2, 14), "memcpy"));
        good.check((2, 17)).unwrap();
        assert!(
            good.check((2, 13)).unwrap_err().to_string().starts_with("memcpy needs glibc 2.14")
        );
        let other = parse(dynamic, "  NEEDED               libgcc_s.so.1\n", TABLE);
        assert!(other.check((2, 17)).unwrap_err().to_string().contains("libgcc_s.so.1"));
        assert!(parse(dynamic, "", "0000 l  F .text main").check((2, 17)).is_err());
    }
}
