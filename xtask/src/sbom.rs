//! Bill of materials (CycloneDX 1.5) and the licences of what the binary is built from.
//!
//! Both follow from the lock file alone, so that two runs give the same bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::packages::Package;

/// CycloneDX 1.5 document; `scope` tells what is in the binary (`required`) from what only builds it (`excluded`).
pub(crate) fn cyclonedx(packages: &[Package], version: &str) -> Value {
    let components: Vec<Value> = packages
        .iter()
        .map(|package| {
            let purl = format!("pkg:cargo/{}@{}", package.name, package.version);
            let mut component = json!({
                "type": "library",
                "bom-ref": purl,
                "name": package.name,
                "version": package.version,
                "scope": if package.shipped { "required" } else { "excluded" },
                "licenses": [{"expression": package.licence}],
                "purl": purl,
            });
            if let Some(sum) = &package.checksum {
                component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
            }
            if let Some(url) = &package.repository {
                component["externalReferences"] = json!([{"type": "vcs", "url": url}]);
            }
            component
        })
        .collect();
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": format!("pkg:cargo/ncclctl@{version}"),
                "name": "ncclctl",
                "version": version,
                "licenses": [{"expression": "Apache-2.0"}],
                "purl": format!("pkg:cargo/ncclctl@{version}"),
            },
        },
        "components": components,
    })
}

/// The licence texts that must travel with the binary, each once, with the crates that it covers.
pub(crate) fn licences(packages: &[Package]) -> anyhow::Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut table = String::new();
    for package in packages.iter().filter(|package| package.shipped) {
        let label = format!("{} {}", package.name, package.version);
        let _ = writeln!(table, "| {label} | {} |", package.licence);
        for file in licence_files(&package.folder)? {
            let text = crate::pages::read(&file).unwrap_or_default();
            let text: Vec<&str> = text.lines().map(str::trim_end).collect();
            let text = text.join("\n").trim_matches('\n').to_owned();
            // Apache's text is the same for all of them, but for the appendix and white space
            let text = if text.contains("Apache License")
                && text.contains("Version 2.0")
                && text.len() > 8000
            {
                "Apache License, Version 2.0: see LICENSE of this project, it is the same."
                    .to_owned()
            } else {
                text
            };
            if !text.is_empty() {
                texts.entry(text).or_default().push(label.clone());
            }
        }
    }
    let mut out = format!(
        "# Third-party crates in the ncclctl binary\n\nGenerated from `Cargo.lock` by `cargo xtask dist`.\n\n\
         | crate | licence |\n| --- | --- |\n{table}\n"
    );
    let mut texts: Vec<_> = texts
        .into_iter()
        .map(|(text, mut crates)| {
            crates.dedup();
            (crates, text)
        })
        .collect();
    texts.sort();
    for (crates, text) in texts {
        let _ = writeln!(
            out,
            "## {}\n\n```text\n{}\n```\n",
            crates.join(", "),
            text.replace("```", "'''")
        );
    }
    Ok(out.trim_end().to_owned() + "\n")
}

/// Licence and notice files of a crate, by their usual names.
#[expect(clippy::disallowed_methods, reason = "reads the sources that the binary is built from")]
fn licence_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name =
            path.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
        let wanted = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"]
            .iter()
            .any(|start| name.starts_with(start));
        if wanted && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_once_with_all_its_crates() {
        let folder = std::env::temp_dir().join(format!("ncclctl-xtask-{}", std::process::id()));
        let package = |name: &str, shipped: bool| {
            let folder = folder.join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("LICENSE-MIT"), "Permission is granted.\n\n").unwrap();
            Package {
                name: name.to_owned(),
                version: "1.0.0".to_owned(),
                licence: "MIT".to_owned(),
                checksum: Some("ab".to_owned()),
                repository: None,
                shipped,
                folder,
            }
        };
        let packages = [package("a", true), package("b", true), package("tool", false)];
        let text = licences(&packages).unwrap();
        let _ = std::fs::remove_dir_all(&folder);
        assert_eq!(text.matches("Permission is granted.").count(), 1);
        assert!(text.contains("## a 1.0.0, b 1.0.0") && !text.contains("tool"), "{text}");
        let bom = cyclonedx(&packages, "0.1.0");
        assert_eq!(bom["components"][0]["hashes"][0]["content"], "ab");
        assert_eq!(bom["components"][2]["scope"], "excluded");
    }
}
