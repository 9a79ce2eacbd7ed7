//! Libraries that decide: NCCL, its plug-ins, user-space verbs, CUDA. Nothing is loaded: versions come
//! from file names and package data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use ncclctl_nccl::Version;

use crate::facts::Facts;
use crate::live::Live;
use crate::root::Root;

/// Libraries that were found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Software {
    /// Every libnccl, the one that a plain program would load first.
    pub nccl: Vec<Library>,
    /// NCCL's plug-ins by kind.
    pub plugins: Vec<Plugin>,
    /// libibverbs, where it was found.
    pub verbs: Option<String>,
    /// Providers of libibverbs, like `mlx5`, `efa`.
    pub providers: Vec<String>,
    /// libfabric.
    pub libfabric: Option<String>,
    /// UCX.
    pub ucx: Option<String>,
    /// CUDA runtime libraries or toolkits.
    pub cuda: Vec<Library>,
    /// HAMi's or another vGPU interception library.
    pub interception: Option<String>,
    /// CUDA multi-process service is in use.
    pub mps: Option<String>,
}

/// A library.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Library {
    /// Path.
    pub path: String,
    /// Version, where its name or its package tells one.
    pub version: Option<String>,
    /// Major version of CUDA that it was built for, where its package tells.
    pub cuda: Option<u32>,
    /// Who would load it: `LD_LIBRARY_PATH`, `system`, `python package`.
    pub loaded_by: String,
}

/// A plug-in of NCCL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Plugin {
    /// `net`, `tuner`, `profiler`, `env`.
    pub kind: String,
    /// Path.
    pub path: String,
    /// Whether NCCL finds it by itself: the loader searches its folder.
    pub found_by_loader: bool,
}

impl Software {
    /// Version of the library that a plain program would load, or the newest where none tells.
    pub fn nccl_version(&self) -> Option<Version> {
        self.nccl.iter().find_map(|l| l.version.as_ref()?.parse().ok())
    }
}

/// Folders that the loader searches by default.
const SYSTEM: [&str; 8] = [
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
];

/// Folders of others: providers' plug-ins and CUDA.
const OTHERS: [&str; 9] = [
    "/usr/local/cuda/lib64",
    "/usr/local/nvidia/lib64",
    "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu",
    "/opt/amazon/ofi-nccl/lib",
    "/opt/amazon/efa/lib",
    "/opt/amazon/efa/lib64",
    "/opt/hpcx/nccl_rdma_sharp_plugin/lib",
    "/usr/local/tcpx/lib64",
    "/usr/local/gib/lib64",
];

/// Fills the software part.
pub(crate) fn collect(root: &Root, live: &Live, facts: &mut Facts) {
    let mut s = Software::default();
    let path = live.environment.get("LD_LIBRARY_PATH").map(String::as_str).unwrap_or_default();
    let named: Vec<String> = path
        .split(':')
        .filter(|f| f.starts_with('/'))
        .map(|f| f.trim_end_matches('/').to_owned())
        .collect();
    let configured = configured(root);
    let searched = |folder: &str| {
        named.iter().any(|n| n == folder)
            || SYSTEM.contains(&folder)
            || configured.iter().any(|n| n == folder)
    };
    let mut folders: Vec<(String, &str)> =
        named.iter().map(|f| (f.clone(), "LD_LIBRARY_PATH")).collect();
    folders.extend(configured.iter().map(|f| (f.clone(), "system")));
    folders.extend(SYSTEM.iter().map(|f| ((*f).to_owned(), "system")));
    folders.extend(OTHERS.iter().map(|f| ((*f).to_owned(), "nobody by itself")));
    let mut seen = std::collections::BTreeSet::new();
    for (folder, by) in folders {
        // /lib is a link to /usr/lib on most systems: each file once
        let Some(real) = root.real(&folder) else { continue };
        if !seen.insert(real) {
            continue;
        }
        for name in root.list(&folder) {
            let path = format!("{folder}/{name}");
            if name == "libnccl.so.2" {
                s.nccl.push(library(root, path, by));
            } else if let Some(kind) = plugin_kind(&name) {
                s.plugins.push(Plugin {
                    kind: kind.to_owned(),
                    found_by_loader: searched(&folder),
                    path,
                });
            } else if name == "libibverbs.so.1" {
                s.verbs.get_or_insert(path);
            } else if name == "libfabric.so.1" {
                s.libfabric.get_or_insert(path);
            } else if name == "libucp.so.0" {
                s.ucx.get_or_insert(path);
            } else if name.starts_with("libcudart.so.") && name.matches('.').count() == 2 {
                s.cuda.push(library(root, path, by));
            }
        }
        for name in root.list(&format!("{folder}/libibverbs")) {
            // `libmlx5-rdmav34.so`
            if let Some((provider, _)) =
                name.strip_prefix("lib").and_then(|n| n.split_once("-rdmav"))
            {
                s.providers.push(provider.to_owned());
            }
        }
    }
    s.providers.sort();
    s.providers.dedup();
    python(root, live, &mut s);
    let preload = root.read("/etc/ld.so.preload").unwrap_or_default();
    let preloaded = live.environment.get("LD_PRELOAD").map_or("", String::as_str);
    s.interception = preload
        .split_whitespace()
        .chain(preloaded.split([':', ' ']))
        .find(|p| p.contains("vgpu") || p.contains("hami"))
        .map(str::to_owned)
        .or_else(|| {
            root.exists("/usr/local/vgpu/libvgpu.so")
                .then(|| "/usr/local/vgpu/libvgpu.so".to_owned())
        });
    s.mps = live.environment.get("CUDA_MPS_PIPE_DIRECTORY").cloned();
    facts.software = s;
}

/// Beginnings of the names that this collector looks for, folders on the way to them included.
const LOOKED_FOR: [&str; 9] = [
    "libnccl",
    "libibverbs",
    "libfabric.so",
    "libucp.so",
    "libcudart.so",
    "python3",
    "site-packages",
    "dist-packages",
    "nvidia",
];

/// Whether the name of a file or folder means something to this collector.
pub(crate) fn looks_for(name: &str) -> bool {
    LOOKED_FOR.iter().any(|start| name.starts_with(start)) || name.contains("-rdmav")
}

/// Folders that the loader's configuration adds.
fn configured(root: &Root) -> Vec<String> {
    let mut out = Vec::new();
    for name in root.list("/etc/ld.so.conf.d") {
        let text = root.read(&format!("/etc/ld.so.conf.d/{name}")).unwrap_or_default();
        out.extend(
            text.lines()
                .map(str::trim)
                .filter(|l| l.starts_with('/'))
                .map(|l| l.trim_end_matches('/').to_owned()),
        );
    }
    out
}

fn plugin_kind(name: &str) -> Option<&'static str> {
    ["net", "tuner", "profiler", "env"].into_iter().find(|kind| {
        name.strip_prefix("libnccl-")
            .and_then(|n| n.strip_prefix(kind))
            .is_some_and(|rest| rest.ends_with(".so") && (rest == ".so" || rest.starts_with('-')))
    })
}

fn library(root: &Root, path: String, by: &str) -> Library {
    let real = root.real(&path).unwrap_or_else(|| path.clone());
    let version = real.rsplit_once(".so.").map(|(_, v)| v.to_owned()).filter(|v| v.contains('.'));
    Library { path, version, cuda: None, loaded_by: by.to_owned() }
}

/// The version in NCCL's own header.
fn header(root: &Root, path: &str) -> Option<String> {
    let text = root.read(path).ok()?;
    let number = |name: &str| {
        text.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            (words.next() == Some("#define") && words.next() == Some(name))
                .then(|| words.next().map(str::to_owned))?
        })
    };
    Some(format!("{}.{}.{}", number("NCCL_MAJOR")?, number("NCCL_MINOR")?, number("NCCL_PATCH")?))
}

/// Wheels: the library's own name tells no version, the package's folder does.
fn python(root: &Root, live: &Live, s: &mut Software) {
    let mut bases: Vec<String> = ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .iter()
        .filter_map(|name| live.environment.get(*name))
        .map(|base| format!("{}/lib", base.trim_end_matches('/')))
        .collect();
    bases.extend(
        ["/usr/local/lib", "/usr/lib", "/opt/conda/lib", "/opt/venv/lib"].map(str::to_owned),
    );
    if let Some(home) = live.environment.get("HOME") {
        bases.push(format!("{home}/.local/lib"));
    }
    let mut seen = std::collections::BTreeSet::new();
    for base in bases {
        for python in root.list(&base).into_iter().filter(|n| n.starts_with("python3")) {
            for packages in ["site-packages", "dist-packages"] {
                let folder = format!("{base}/{python}/{packages}");
                let path = format!("{folder}/nvidia/nccl/lib/libnccl.so.2");
                let Some(real) = root.real(&path) else { continue };
                if !seen.insert(real) {
                    continue;
                }
                let package = root.list(&folder).iter().find_map(|n| {
                    let rest = n.strip_prefix("nvidia_nccl_cu")?.strip_suffix(".dist-info")?;
                    let (cuda, version) = rest.split_once('-')?;
                    Some((cuda.parse().ok(), version.to_owned()))
                });
                let (cuda, version) = match package {
                    Some((cuda, version)) => (cuda, Some(version)),
                    None => (None, header(root, &format!("{folder}/nvidia/nccl/include/nccl.h"))),
                };
                let loaded_by = "python package".to_owned();
                s.nccl.push(Library { path, version, cuda, loaded_by });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_tells_the_version() {
        let folder = tempfile::tempdir().unwrap();
        let text = "#define NCCL_MAJOR 2\n#define NCCL_MINOR 21\n#define NCCL_PATCH 5\n";
        std::fs::write(folder.path().join("nccl.h"), text).unwrap();
        let root = Root::captured(folder.path(), std::collections::BTreeMap::new());
        assert_eq!(header(&root, "/nccl.h").as_deref(), Some("2.21.5"));
        assert_eq!(header(&root, "/none.h"), None);
    }

    #[test]
    fn plugins_by_name() {
        assert_eq!(plugin_kind("libnccl-net.so"), Some("net"));
        assert_eq!(plugin_kind("libnccl-net-ofi.so"), Some("net"));
        assert_eq!(plugin_kind("libnccl-tuner.so"), Some("tuner"));
        assert_eq!(plugin_kind("libnccl-network.txt"), None);
        assert_eq!(plugin_kind("libnccl.so.2"), None);
    }
}
