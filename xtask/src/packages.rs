//! The third-party crates of the shipped binary, as `cargo metadata` resolves them for its target.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

/// Platform that is shipped.
pub(crate) const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// One crate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Package {
    /// Name in the registry.
    pub(crate) name: String,
    /// Version.
    pub(crate) version: String,
    /// SPDX expression; the older `A/B` is written `A OR B`.
    pub(crate) licence: String,
    /// SHA-256 of the archive in the registry, as `Cargo.lock` has it; none for the project's own crates.
    pub(crate) checksum: Option<String>,
    /// Page of its source.
    pub(crate) repository: Option<String>,
    /// Whether its code is in the binary: not so for what only generates code while building.
    pub(crate) shipped: bool,
    /// Folder of its source.
    pub(crate) folder: PathBuf,
}

/// Every crate that the binary is built from but the project's own, sorted by name and version.
pub(crate) fn third_party(repository: &Path) -> anyhow::Result<Vec<Package>> {
    let out = Command::new(env!("CARGO"))
        .current_dir(repository)
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", PLATFORM])
        .output()
        .context("cargo metadata")?;
    if !out.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&out.stderr).trim());
    }
    let lock = crate::pages::read(&repository.join("Cargo.lock")).context("Cargo.lock")?;
    resolve(&serde_json::from_slice(&out.stdout)?, &checksums(&lock))
}

fn resolve(
    metadata: &Value,
    checksums: &BTreeMap<(String, String), String>,
) -> anyhow::Result<Vec<Package>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|p| (text(&p["id"]), p)).collect();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|n| (text(&n["id"]), n)).collect();
    let root = packages
        .iter()
        .find(|(_, package)| package["name"] == "ncclctl")
        .map(|(id, _)| id.clone())
        .context("the workspace has no package ncclctl")?;
    let generates =
        |id: &str| list(&packages[id]["targets"]).iter().any(|t| t["kind"][0] == "proc-macro");
    // two walks: all that is built, and what of it ends in the binary
    let (mut built, mut shipped) = (BTreeSet::new(), BTreeSet::new());
    let mut open = vec![(root, true)];
    while let Some((id, linked)) = open.pop() {
        let news = built.insert(id.clone()) | (linked && shipped.insert(id.clone()));
        if !news {
            continue;
        }
        for dep in list(&nodes[&id]["deps"]) {
            let kinds = list(&dep["dep_kinds"]);
            let target = text(&dep["pkg"]);
            if kinds.iter().any(|kind| kind["kind"].is_null()) {
                open.push((target.clone(), linked && !generates(&target)));
            }
            if kinds.iter().any(|kind| kind["kind"] == "build") {
                open.push((target, false));
            }
        }
    }
    let mut found = Vec::new();
    for id in &built {
        let package = &packages[id];
        if package["source"].is_null() {
            continue;
        }
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        let Some(licence) = package["license"].as_str() else {
            bail!("{name} {version} states no licence");
        };
        let folder = Path::new(&text(&package["manifest_path"])).with_file_name("");
        found.push(Package {
            checksum: checksums.get(&(name.clone(), version.clone())).cloned(),
            licence: licence.replace('/', " OR ").replace("  ", " "),
            repository: package["repository"].as_str().map(str::to_owned),
            shipped: shipped.contains(id),
            name,
            version,
            folder,
        });
    }
    found.sort();
    Ok(found)
}

/// Checksums by name and version, from the lock file.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for block in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            block.lines().find_map(|line| {
                line.strip_prefix(name)?
                    .trim()
                    .strip_prefix('=')?
                    .trim()
                    .strip_prefix('"')?
                    .strip_suffix('"')
            })
        };
        if let (Some(name), Some(version), Some(sum)) =
            (field("name"), field("version"), field("checksum"))
        {
            found.insert((name.to_owned(), version.to_owned()), sum.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_generates_code_is_built_but_not_shipped() {
        let package = |name: &str, kind: &str, source: Value| {
            serde_json::json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "source": source,
                "manifest_path": format!("/r/{name}/Cargo.toml"), "repository": null, "targets": [{"kind": [kind]}]})
        };
        let node = |id: &str, deps: &[(&str, Option<&str>)]| {
            let deps: Vec<_> = deps
                .iter()
                .map(|(pkg, kind)| serde_json::json!({"pkg": pkg, "dep_kinds": [{"kind": kind}]}))
                .collect();
            serde_json::json!({"id": id, "deps": deps})
        };
        let registry = Value::from("registry");
        let metadata = serde_json::json!({
            "packages": [
                package("ncclctl", "bin", Value::Null), package("lib", "lib", registry.clone()), package("derive", "proc-macro", registry.clone()),
                package("syn", "lib", registry.clone()), package("cc", "lib", registry.clone()), package("mock", "lib", registry.clone()),
            ],
            "resolve": {"nodes": [
                node("ncclctl", &[("lib", None), ("derive", None), ("cc", Some("build")), ("mock", Some("dev"))]),
                node("lib", &[]), node("derive", &[("syn", None)]), node("syn", &[("lib", None)]), node("cc", &[]), node("mock", &[]),
            ]},
        });
        let sums =
            checksums("[[package]]\nname = \"lib\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n");
        let found = resolve(&metadata, &sums).unwrap();
        let seen: Vec<_> = found.iter().map(|p| (p.name.as_str(), p.shipped)).collect();
        assert_eq!(seen, [("cc", false), ("derive", false), ("lib", true), ("syn", false)]);
        assert_eq!(found[2].checksum.as_deref(), Some("ab"));
        assert_eq!(found[2].licence, "MIT OR Apache-2.0");
    }
}
