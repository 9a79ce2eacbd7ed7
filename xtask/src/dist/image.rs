//! The container image, written without an engine: `docker load`, `podman load`, `ctr images import`
//! and `skopeo copy docker-archive:` all read it.
//!
//! As `FROM scratch`: the binary, the loader and the C library that it needs, a user, a `/tmp`. No shell.

use anyhow::Context as _;
use serde_json::json;

use super::tar::{Entry, tar, with_folders};

/// The user that everything runs as.
const USER: &str = "65532:65532";
/// What the binary may need of the C library, and nothing else.
pub(super) const LIBRARIES: [&str; 5] =
    ["libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"];

/// What goes in.
pub(super) struct Content<'a> {
    /// The binary.
    pub(super) binary: &'a [u8],
    /// Version of ncclctl.
    pub(super) version: &'a str,
    /// Commit that it was built from.
    pub(super) commit: &'a str,
    /// Time of that commit, seconds since 1970.
    pub(super) seconds: u64,
    /// Licence texts.
    pub(super) licences: &'a str,
}

/// The image as a docker archive.
pub(super) fn archive(content: &Content<'_>) -> anyhow::Result<Vec<u8>> {
    let mut files = vec![
        Entry::file(
            "etc/passwd",
            0o644,
            "root:x:0:0:root:/:/sbin/nologin\nncclctl:x:65532:65532:ncclctl:/tmp:/sbin/nologin\n",
        ),
        Entry::file("etc/group", 0o644, "root:x:0:\nncclctl:x:65532:\n"),
        Entry::file("usr/bin/ncclctl", 0o755, content.binary),
        Entry::link("usr/bin/kubectl-nccl", "ncclctl"),
        Entry::file("usr/share/doc/ncclctl/THIRD-PARTY.md", 0o644, content.licences),
        Entry::folder("tmp", 0o1777),
        Entry::file("lib64/ld-linux-x86-64.so.2", 0o755, system("/lib64/ld-linux-x86-64.so.2")?),
    ];
    for name in LIBRARIES {
        let bytes = system(&format!("/lib/x86_64-linux-gnu/{name}"))?;
        files.push(Entry::file(&format!("lib/x86_64-linux-gnu/{name}"), 0o755, bytes));
    }
    if let Ok(text) = system("/usr/share/doc/libc6/copyright") {
        files.push(Entry::file("usr/share/doc/libc6/copyright", 0o644, text));
    }
    let layer = tar(&with_folders(files), content.seconds)?;
    let layer_id = super::sha256(&layer);
    let created = super::rfc3339(content.seconds);
    let config = json!({
        "architecture": "amd64",
        "os": "linux",
        "created": created,
        "config": {
            "User": USER,
            "Entrypoint": ["ncclctl"],
            "Cmd": ["--help"],
            "WorkingDir": "/tmp",
            "Env": ["PATH=/usr/bin", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"],
            "Labels": {
                "org.opencontainers.image.title": "ncclctl",
                "org.opencontainers.image.description": "Get NCCL right in containers",
                "org.opencontainers.image.version": content.version,
                "org.opencontainers.image.revision": content.commit,
                "org.opencontainers.image.created": created,
                "org.opencontainers.image.licenses": "Apache-2.0 AND LGPL-2.1-or-later",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer_id}")]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}],
    });
    let config = serde_json::to_vec(&config)?;
    let config_name = format!("{}.json", super::sha256(&config));
    let layer_name = format!("{layer_id}/layer.tar");
    let manifest = json!([{
        "Config": config_name,
        "RepoTags": [format!("ncclctl:{}", content.version)],
        "Layers": [layer_name],
    }]);
    let parts = vec![
        Entry::file(&config_name, 0o644, config),
        Entry::file(&layer_name, 0o644, layer),
        Entry::file("manifest.json", 0o644, serde_json::to_vec(&manifest)?),
    ];
    tar(&with_folders(parts), content.seconds)
}

#[expect(clippy::disallowed_methods, reason = "the build machine's C library goes into the image")]
fn system(path: &str) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("{path}: the image carries the C library of the machine that builds it; build on Debian or Ubuntu"))
}
