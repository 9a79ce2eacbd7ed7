//! What the containers of a run are: least privilege, and what the user asked for on top.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Network of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// A bridge of the run's own, without a way out.
    Bridge,
    /// That of the host.
    Host,
    /// A macvlan network of the run's own on this interface of the host.
    Macvlan(String),
    /// One that is there.
    Existing(String),
}

/// What every worker gets.
#[derive(Clone, Debug)]
pub struct Workers {
    /// How many.
    pub count: usize,
    /// Image; any with glibc.
    pub image: String,
    /// Network.
    pub network: Network,
    /// GPUs of each worker; consecutive ones of the host.
    pub gpus: usize,
    /// Devices of the host, such as `/dev/infiniband/uverbs0`.
    pub devices: Vec<String>,
    /// Size of `/dev/shm`, bytes.
    pub shm: u64,
    /// Memory limit, bytes; 0 is none.
    pub memory: u64,
    /// User and group, numbers.
    pub user: (u32, u32),
    /// Whether locked memory is unlimited.
    pub memlock: bool,
    /// Environment of the workers.
    pub environment: BTreeMap<String, String>,
}

/// Where the run's volume is mounted.
pub(crate) const MOUNT: &str = "/ncclctl";

impl Workers {
    /// The body of `ContainerCreate`. `gpus_from` is the first GPU, for a container that gets some.
    pub(crate) fn container(
        &self,
        run: &str,
        network: &str,
        labels: &Value,
        command: &[String],
        gpus_from: Option<usize>,
    ) -> Value {
        let mut host = json!({
            "NetworkMode": network,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "ReadonlyRootfs": true,
            "ShmSize": self.shm,
            "Memory": self.memory,
            "PidsLimit": 4096,
            "RestartPolicy": {"Name": "no"},
            // the result is read from here, whatever the engine's default is
            "LogConfig": {"Type": "json-file", "Config": {}},
            "Tmpfs": {"/tmp": "rw,nosuid,nodev,noexec,mode=1777,size=64m"},
            "Mounts": [{"Type": "volume", "Source": run, "Target": MOUNT, "ReadOnly": true}],
        });
        let mut environment = BTreeMap::new();
        if let Some(from) = gpus_from {
            environment = self.environment.clone();
            if self.gpus > 0 {
                let ids: Vec<String> =
                    (from..from + self.gpus).map(|gpu| gpu.to_string()).collect();
                host["DeviceRequests"] = json!([{"Driver": "", "DeviceIDs": ids, "Capabilities": [["gpu", "compute", "utility"]]}]);
            }
            let devices: Vec<Value> = self
                .devices
                .iter()
                .map(|path| json!({"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rw"}))
                .collect();
            if !devices.is_empty() {
                host["Devices"] = devices.into();
            }
            if self.memlock {
                host["Ulimits"] = json!([{"Name": "memlock", "Soft": -1, "Hard": -1}]);
            }
        }
        let environment: Vec<String> =
            environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        json!({
            "Image": self.image,
            "Entrypoint": [format!("{MOUNT}/ncclctl")],
            "Cmd": command,
            "Env": environment,
            "User": format!("{}:{}", self.user.0, self.user.1),
            "Labels": labels,
            "HostConfig": host,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workers() -> Workers {
        Workers {
            count: 2,
            image: "cuda".to_owned(),
            network: Network::Bridge,
            gpus: 2,
            devices: vec!["/dev/infiniband/uverbs0".to_owned()],
            shm: 1 << 30,
            memory: 0,
            user: (65532, 65532),
            memlock: true,
            environment: [("NCCL_DEBUG".to_owned(), "INFO".to_owned())].into(),
        }
    }

    #[test]
    fn least_privilege_and_only_what_was_asked_for() {
        let body = workers().container("r", "r", &json!({}), &["worker".to_owned()], Some(2));
        let host = &body["HostConfig"];
        assert_eq!(host["DeviceRequests"][0]["DeviceIDs"], json!(["2", "3"]));
        assert_eq!(host["CapDrop"], json!(["ALL"]));
        for never in ["Privileged", "IpcMode", "PidMode", "CapAdd", "Binds"] {
            assert!(host[never].is_null(), "{never}");
        }
        // the coordinator moves no bytes: it gets neither devices nor settings
        let coordinator = workers().container("r", "r", &json!({}), &[], None);
        let host = &coordinator["HostConfig"];
        for none in ["DeviceRequests", "Devices", "Ulimits"] {
            assert!(host[none].is_null(), "{none}");
        }
        assert_eq!(coordinator["Env"], json!([]));
        assert_eq!(coordinator["User"], "65532:65532");
    }
}
