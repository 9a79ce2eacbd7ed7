//! `cargo xtask dist`: the files of a release, the same bytes from every build of one commit.
//!
//! One x86_64 binary that starts on every glibc from 2.17 on (`cargo zigbuild`), checked for what it
//! asks of the system, then packed as archive, Debian package and container image.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a build tool: reads the repository and the build's environment, and says what it made"
)]

mod image;
mod symbols;
mod tar;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use self::tar::{Entry, gzip, with_folders};
use crate::packages::PLATFORM;

/// Oldest C library that must do: CentOS 7, and with it every CUDA image since 11.
const FLOOR: (u32, u32) = (2, 17);
/// Most bytes of the binary.
const BINARY_LIMIT: usize = 24 << 20;
/// Most bytes of the image.
const IMAGE_LIMIT: usize = 30 << 20;
/// The linker that knows old C libraries, as PyPI has it.
const ZIG: &str = "ziglang==0.17.1";
/// What lets cargo use it.
const ZIGBUILD: &str = "cargo-zigbuild@0.24.1";

/// Builds, checks and packs into `dist/`. With `twice` a second build from nothing must give the same bytes.
pub(crate) fn run(repository: &Path, twice: bool) -> anyhow::Result<()> {
    let repository = &repository.canonicalize()?;
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| repository.join("target"), PathBuf::from);
    let tools = Tools::install(&target.join("dist-tools"))?;
    let commit = git(repository, "%H")?;
    let seconds: u64 = git(repository, "%ct")?.parse().context("time of the commit")?;
    let binary = tools.build(repository, &target.join("dist"), seconds)?;
    if twice {
        let again = tools.build(repository, &target.join("dist-again"), seconds)?;
        if binary != again {
            bail!("two builds of {commit} differ: {} and {}", sha256(&binary), sha256(&again));
        }
        println!("reproducible: two builds give {}", sha256(&binary));
    }
    let found = symbols::read(&target.join("dist").join(PLATFORM).join("release/ncclctl"))?;
    found.check(FLOOR)?;
    if binary.len() > BINARY_LIMIT {
        bail!("the binary has {} bytes, more than {BINARY_LIMIT}", binary.len());
    }
    let version = env!("CARGO_PKG_VERSION");
    let packages = crate::packages::third_party(repository)?;
    let licences = crate::sbom::licences(&packages)?;
    let sbom = serde_json::to_vec_pretty(&crate::sbom::cyclonedx(&packages, version))?;
    let image = image::archive(&image::Content {
        binary: &binary,
        version,
        commit: &commit,
        seconds,
        licences: &licences,
    })?;
    if image.len() > IMAGE_LIMIT {
        bail!("the image has {} bytes, more than {IMAGE_LIMIT}", image.len());
    }
    let installed = installed(repository, &binary, &licences)?;
    let name = format!("ncclctl-{version}-{PLATFORM}");
    let mut archive = installed.clone();
    for entry in &mut archive {
        entry.path.insert_str(0, &format!("{name}/"));
    }
    let files = [
        (format!("{name}.tar.gz"), gzip(&tar::tar(&with_folders(archive), seconds)?)?),
        (format!("ncclctl_{version}_amd64.deb"), debian(installed, version, seconds)?),
        (format!("ncclctl-{version}-image.tar"), image),
        (format!("ncclctl-{version}.cdx.json"), sbom),
        ("ncclctl".to_owned(), binary),
    ];
    let out = repository.join("dist");
    std::fs::create_dir_all(&out)?;
    let mut sums = String::new();
    for (name, bytes) in &files {
        write(&out.join(name), bytes, name == "ncclctl")?;
        let sum = sha256(bytes);
        println!("{:>10} bytes  {sum}  dist/{name}", bytes.len());
        sums.push_str(&format!("{sum}  {name}\n"));
    }
    write(&out.join("SHA256SUMS"), sums.as_bytes(), false)?;
    println!("needs glibc {}.{} and {}", found.newest.0, found.newest.1, found.needed.join(", "));
    Ok(())
}

/// Programs that a release build needs and Rust does not bring.
struct Tools {
    path: std::ffi::OsString,
    folder: PathBuf,
}

impl Tools {
    /// Those of `PATH` where they are there, else installed into `folder` from PyPI and crates.io.
    fn install(folder: &Path) -> anyhow::Result<Self> {
        let zig = folder.join("zig");
        let cargo = folder.join("cargo");
        if !zig.join("bin/python").exists() {
            step(Command::new("python3").args(["-m", "venv"]).arg(&zig))?;
        }
        step(Command::new(zig.join("bin/pip")).args(["install", "--quiet", ZIG]))?;
        if !cargo.join("bin/cargo-zigbuild").exists() {
            step(
                Command::new(env!("CARGO"))
                    .args(["install", "--quiet", "--locked", ZIGBUILD, "--root"])
                    .arg(&cargo),
            )?;
        }
        let mut path = vec![zig.join("bin"), cargo.join("bin")];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        Ok(Self { path: std::env::join_paths(path)?, folder: folder.to_owned() })
    }

    /// Builds the binary and gives its bytes.
    fn build(&self, repository: &Path, target: &Path, seconds: u64) -> anyhow::Result<Vec<u8>> {
        let home = std::env::var_os("CARGO_HOME").map_or_else(
            || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo"),
            PathBuf::from,
        );
        // no path of this machine may end in the file
        let flags = format!(
            "--remap-path-prefix={}=/cargo --remap-path-prefix={}=/ncclctl",
            home.display(),
            repository.display()
        );
        step(
            Command::new(env!("CARGO"))
                .current_dir(repository)
                .args(["zigbuild", "--locked", "--release", "--package", "ncclctl", "--target"])
                .arg(format!("{PLATFORM}.{}.{}", FLOOR.0, FLOOR.1))
                .arg("--target-dir")
                .arg(target)
                .env("PATH", &self.path)
                .env("XDG_CACHE_HOME", self.folder.join("cache"))
                .env("RUSTFLAGS", flags)
                .env("SOURCE_DATE_EPOCH", seconds.to_string()),
        )?;
        bytes(&target.join(PLATFORM).join("release/ncclctl"))
    }
}

/// What lands under a prefix such as `/usr`.
fn installed(repository: &Path, binary: &[u8], licences: &str) -> anyhow::Result<Vec<Entry>> {
    let generated = repository.join("docs/generated");
    let mut entries = vec![
        Entry::file("bin/ncclctl", 0o755, binary),
        Entry::link("bin/kubectl-nccl", "ncclctl"),
        Entry::file("share/doc/ncclctl/LICENSE", 0o644, bytes(&repository.join("LICENSE"))?),
        Entry::file("share/doc/ncclctl/THIRD-PARTY.md", 0o644, licences),
    ];
    for (from, to) in [
        ("ncclctl.bash", "share/bash-completion/completions/ncclctl"),
        ("_ncclctl", "share/zsh/vendor-completions/_ncclctl"),
        ("ncclctl.fish", "share/fish/vendor_completions.d/ncclctl.fish"),
    ] {
        entries.push(Entry::file(to, 0o644, bytes(&generated.join("completions").join(from))?));
    }
    let mut pages: Vec<PathBuf> = folder(&generated.join("man"))?;
    pages.sort();
    for page in pages {
        let name = page.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        entries.push(Entry::file(
            &format!("share/man/man1/{name}.gz"),
            0o644,
            gzip(&bytes(&page)?)?,
        ));
    }
    Ok(entries)
}

fn debian(installed: Vec<Entry>, version: &str, seconds: u64) -> anyhow::Result<Vec<u8>> {
    let size: usize = installed
        .iter()
        .map(|entry| match &entry.kind {
            tar::Kind::File(bytes) => bytes.len(),
            _ => 0,
        })
        .sum();
    let control = format!(
        "Package: ncclctl\nVersion: {version}\nArchitecture: amd64\nMaintainer: the ncclctl authors\n\
         Installed-Size: {}\nDepends: libc6 (>= {}.{})\nSection: admin\nPriority: optional\n\
         Description: get NCCL right in containers\n \
         Sees what NCCL sees inside a container, measures what it gives, and says why it is slow.\n",
        size.div_ceil(1024),
        FLOOR.0,
        FLOOR.1
    );
    let mut data = installed;
    for entry in &mut data {
        entry.path.insert_str(0, "usr/");
    }
    data.push(Entry::file(
        "usr/share/doc/ncclctl/copyright",
        0o644,
        "Licence: Apache-2.0, see /usr/share/common-licenses/Apache-2.0 and THIRD-PARTY.md\n",
    ));
    tar::deb(&[Entry::file("control", 0o644, control)], &with_folders(data), seconds)
}

fn git(repository: &Path, format: &str) -> anyhow::Result<String> {
    let out = Command::new("git")
        .current_dir(repository)
        .args(["log", "-1", &format!("--format={format}")])
        .output()
        .context("git log")?;
    if !out.status.success() {
        bail!("git log: {}", String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(String::from_utf8(out.stdout)?.trim().to_owned())
}

fn step(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}

fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| path.display().to_string())
}

fn folder(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn write(path: &Path, bytes: &[u8], executable: bool) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, bytes).with_context(|| path.display().to_string())?;
    let mode = if executable { 0o755 } else { 0o644 };
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?)
}

/// SHA-256 in hexadecimal.
fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A time as RFC 3339.
fn rfc3339(seconds: u64) -> String {
    jiff::Timestamp::from_second(seconds as i64).unwrap_or_default().to_string()
}
