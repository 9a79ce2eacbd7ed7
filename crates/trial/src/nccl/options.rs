//! What the engine is to do, and the environment that its ranks start with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ncclctl_facts::Root;
use serde::{Deserialize, Serialize};

use crate::engine::Setup;

/// Where NCCL's log goes, besides the evidence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogTo {
    /// Every line to standard error of the rank's worker, with the rank in front.
    #[default]
    Stderr,
    /// To a file for each rank; `%h` and `%p` as NCCL has them, and `%r` for the rank.
    File(PathBuf),
    /// Nowhere.
    Off,
}

/// Options of the `nccl` engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The library to load and no other.
    pub library: Option<String>,
    /// Where the log goes.
    pub log: LogTo,
    /// Several ranks may use one GPU, each as a host of its own, over sockets: a test mode.
    pub share_gpu: bool,
    /// Operations are launched as CUDA graphs.
    pub graph: bool,
    /// Buffers come from NCCL's allocator and are registered.
    pub registered: bool,
    /// NCCL's built-in diagnostics run once at the start (2.31 and later).
    pub diagnostics: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            library: None,
            log: LogTo::default(),
            share_gpu: false,
            graph: false,
            registered: false,
            diagnostics: true,
        }
    }
}

/// What NCCL is asked to log where the user says nothing: what evidence is read from. TUNING costs a
/// line for every call and is the only place that tells the algorithm.
const SUBSYSTEMS: &str = "INIT,ENV,BOOTSTRAP,TUNING";

/// Settings that a rank starts with besides the user's own, which win but for the log's file.
pub(crate) fn environment(
    setup: &Setup,
    log: &str,
    worker: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut added = BTreeMap::new();
    let theirs = |name: &str| setup.settings.contains_key(name) || worker.contains_key(name);
    let mut add = |name: &str, value: String| {
        if !theirs(name) {
            added.insert(name.to_owned(), value);
        }
    };
    add("NCCL_DEBUG", "INFO".to_owned());
    add("NCCL_DEBUG_SUBSYS", SUBSYSTEMS.to_owned());
    if setup.nccl.share_gpu {
        let job: String = setup.nonce[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        add("NCCL_HOSTID", format!("ncclctl-{job}-{}", setup.rank));
    }
    if setup.nccl.diagnostics {
        add("NCCL_RUN_DIAGNOSTICS", "1".to_owned());
    }
    added.insert("NCCL_DEBUG_FILE".to_owned(), log.to_owned());
    added
}

/// GPUs that this container shows, without opening any library: device files, else the driver's list.
pub fn gpus_here(root: &Root) -> usize {
    let files = root
        .list("/dev")
        .iter()
        .filter(|name| {
            name.strip_prefix("nvidia")
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
        .count();
    match root.variable("CUDA_VISIBLE_DEVICES") {
        Some(list) if files > 0 => {
            list.split(',').filter(|s| !s.trim().is_empty() && s.trim() != "-1").count().min(files)
        }
        _ => files,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn setup(share_gpu: bool, settings: &[(&str, &str)]) -> Setup {
        Setup {
            rank: 3,
            ranks: 4,
            nonce: [0xab; 16],
            settings: settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            largest: 1024,
            gpu: Some(0),
            deadline: Duration::from_secs(1),
            nccl: Options { share_gpu, ..Options::default() },
        }
    }

    #[test]
    fn the_users_own_settings_win_but_for_the_file() {
        let worker = BTreeMap::from([("NCCL_DEBUG_SUBSYS".to_owned(), "NET".to_owned())]);
        let setup = setup(true, &[("NCCL_DEBUG", "TRACE"), ("NCCL_DEBUG_FILE", "/my/file")]);
        let added = environment(&setup, "/proc/1/fd/9", &worker);
        let shown: Vec<String> = added.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(
            shown,
            [
                "NCCL_DEBUG_FILE=/proc/1/fd/9",
                "NCCL_HOSTID=ncclctl-abababab-3",
                "NCCL_RUN_DIAGNOSTICS=1"
            ]
        );
    }

    #[test]
    fn gpus_are_counted_by_their_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("dev")).unwrap();
        for name in ["nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"] {
            std::fs::write(folder.path().join("dev").join(name), "").unwrap();
        }
        let root = |pairs: &[(&str, &str)]| {
            let environment =
                pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            Root::captured(folder.path(), environment)
        };
        assert_eq!(gpus_here(&root(&[])), 2);
        assert_eq!(gpus_here(&root(&[("CUDA_VISIBLE_DEVICES", "1")])), 1);
        assert_eq!(gpus_here(&root(&[("CUDA_VISIBLE_DEVICES", "")])), 0);
    }
}
