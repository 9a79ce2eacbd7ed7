//! Where a process takes its NCCL settings from: its environment and the files that NCCL merges
//! into it, read as the process would see them.

use std::collections::BTreeMap;

use ncclctl_nccl::conf::CONF_FILE_SINCE;
use ncclctl_nccl::layers::{ENV_PLUGIN_SINCE, Layer, LayerKind};
use ncclctl_nccl::version::Version;

use crate::root::Root;

/// Layers that were found, and what could not be read.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// Layers, in no particular order.
    pub layers: Vec<Layer>,
    /// The environment plug-in that would answer after them: what names it, or where it lies.
    pub env_plugin: Option<String>,
    /// Sources that could not be read, with why.
    pub unread: Vec<(String, String)>,
}

/// Folders that the dynamic loader searches for a plug-in, after `LD_LIBRARY_PATH`.
const LIBRARY_FOLDERS: [&str; 6] = [
    "/usr/local/lib",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/lib",
];

/// The layers of this process.
pub fn of_this(root: &Root, version: Version) -> Layers {
    gather(root, "", "this process", root.environment(), version)
}

/// The layers of another process, files as it sees them.
pub fn of_process(root: &Root, pid: u32, version: Version) -> std::io::Result<Layers> {
    let environment = environment_of(root, pid)?;
    let prefix = format!("/proc/{pid}/root");
    Ok(gather(root, &prefix, &format!("pid {pid}"), &environment, version))
}

/// The environment that a process was started with. What it changed itself since is not to be seen.
pub fn environment_of(root: &Root, pid: u32) -> std::io::Result<BTreeMap<String, String>> {
    let text = root.read(&format!("/proc/{pid}/environ"))?;
    let pairs = text.split('\0').filter_map(|pair| pair.split_once('='));
    Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Memory that a process may lock, bytes.
pub fn memlock_of(root: &Root, pid: u32) -> Option<u64> {
    let limits = root.read(&format!("/proc/{pid}/limits")).ok()?;
    crate::container::limit(&limits, "Max locked memory")
}

/// The version of the libnccl that a process has loaded, by the name of its file.
pub fn library_of(root: &Root, pid: u32) -> Option<Version> {
    let maps = root.read(&format!("/proc/{pid}/maps")).ok()?;
    let path = maps.lines().find_map(|line| {
        let path = &line[line.find('/')?..];
        path.rsplit('/').next()?.starts_with("libnccl.so").then_some(path)
    })?;
    let file = path.trim_end_matches(" (deleted)");
    file.rsplit_once(".so.")?.1.parse().ok()
}

fn gather(
    root: &Root,
    prefix: &str,
    origin: &str,
    environment: &BTreeMap<String, String>,
    version: Version,
) -> Layers {
    let mut found = Layers::default();
    found.layers.push(Layer::pairs(
        LayerKind::Process,
        origin,
        environment.iter().map(|(name, value)| (name.as_str(), value.as_str())),
    ));
    let mut file = |kind, path: &str| match root.read(&format!("{prefix}{path}")) {
        Ok(text) => found.layers.push(Layer::conf(kind, path, &text, version)),
        // a file that is not there is no news: NCCL says nothing about it either
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => found.unread.push((path.to_owned(), error.to_string())),
    };
    file(LayerKind::SystemConf, "/etc/nccl.conf");
    let named = environment.get("NCCL_CONF_FILE").filter(|path| !path.is_empty());
    match named.filter(|_| version >= CONF_FILE_SINCE) {
        Some(path) => file(LayerKind::UserConf, path),
        None => {
            if let Some(home) = environment.get("HOME").filter(|home| home.starts_with('/')) {
                file(LayerKind::UserConf, &format!("{}/.nccl.conf", home.trim_end_matches('/')));
            }
        }
    }
    if version >= ENV_PLUGIN_SINCE {
        found.env_plugin = env_plugin(root, prefix, environment);
    }
    found
}

/// The environment plug-in that a process would load.
fn env_plugin(root: &Root, prefix: &str, environment: &BTreeMap<String, String>) -> Option<String> {
    match environment.get("NCCL_ENV_PLUGIN").map(String::as_str) {
        Some("none") => return None,
        Some(named) if !named.is_empty() => return Some(format!("NCCL_ENV_PLUGIN={named}")),
        _ => {}
    }
    let named = environment.get("LD_LIBRARY_PATH").map_or("", String::as_str).split(':');
    named
        .filter(|folder| folder.starts_with('/'))
        .chain(LIBRARY_FOLDERS)
        .map(|folder| format!("{}/libnccl-env.so", folder.trim_end_matches('/')))
        .find(|path| root.path(&format!("{prefix}{path}")).exists())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncclctl_nccl::layers::in_force;

    fn write(root: &std::path::Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn layers_of_a_process_as_it_sees_them() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        write(at, "proc/7/environ", "NCCL_DEBUG=WARN\0HOME=/home/u\0LD_LIBRARY_PATH=/opt/g\0");
        write(at, "proc/7/root/etc/nccl.conf", "NCCL_DEBUG=INFO\nNCCL_IB_TIMEOUT=22\n");
        write(at, "proc/7/root/home/u/.nccl.conf", "NCCL_IB_TIMEOUT=20\n");
        write(at, "proc/7/root/opt/g/libnccl-env.so", "");
        write(at, "proc/7/maps", "7f00-7f01 r-xp 0 08:01 1   /usr/lib/libnccl.so.2.21.5\n");
        let root = Root::captured(at, BTreeMap::new());
        let version = Version::new(2, 30, 7);
        let found = of_process(&root, 7, version).unwrap();
        let all = in_force(&found.layers, version);
        let text: Vec<String> =
            all.iter().map(|i| format!("{}={} {}", i.name, i.value, i.origin)).collect();
        assert_eq!(text, ["NCCL_DEBUG=WARN pid 7", "NCCL_IB_TIMEOUT=20 /home/u/.nccl.conf:1"]);
        assert_eq!(found.env_plugin.as_deref(), Some("/opt/g/libnccl-env.so"));
        assert_eq!(library_of(&root, 7), Some(Version::new(2, 21, 5)));
        assert!(of_process(&root, 8, version).is_err());
    }

    #[test]
    fn a_named_file_takes_the_place_of_the_one_at_home() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        write(at, "root/.nccl.conf", "NCCL_DEBUG=INFO\n");
        write(at, "cfg/n.conf", "NCCL_DEBUG=WARN\n");
        let environment = BTreeMap::from([
            ("HOME".to_owned(), "/root".to_owned()),
            ("NCCL_CONF_FILE".to_owned(), "/cfg/n.conf".to_owned()),
        ]);
        let root = Root::captured(at, environment);
        let debug = |version| {
            let all = in_force(&of_this(&root, version).layers, version);
            all.iter().find(|i| i.name == "NCCL_DEBUG").map(|i| i.value.clone())
        };
        assert_eq!(debug(Version::new(2, 30, 7)).as_deref(), Some("WARN"));
        assert_eq!(debug(Version::new(2, 21, 5)).as_deref(), Some("INFO"));
    }
}
