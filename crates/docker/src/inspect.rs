//! What an engine says of a container or an image.

use std::collections::BTreeMap;

use ncclctl_facts::container::{HostNamespaces, UNLIMITED};
use ncclctl_facts::given::{Given, Gpus};
use serde_json::Value;

use crate::engine::{Engine, EngineError};
use crate::http::escape;

/// A container or an image, as the engine describes it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// What it gives.
    pub given: Given,
    /// Image by the name that it was started with.
    pub image: String,
    /// The engine's id of the container; empty for an image.
    pub id: String,
    /// Process id of its first process on the engine's machine, while it runs.
    pub pid: Option<u32>,
    /// `ENV` of the image.
    pub image_environment: BTreeMap<String, String>,
    /// Made by Compose.
    pub compose: bool,
}

/// Capabilities of a privileged container that decide something here.
const ALL: [&str; 6] =
    ["NET_ADMIN", "NET_RAW", "IPC_LOCK", "SYS_ADMIN", "SYS_NICE", "SYS_RESOURCE"];

/// A container by name or id.
pub fn container(engine: &Engine, name: &str) -> Result<Seen, EngineError> {
    let path = format!("/containers/{}/json", escape(name));
    let said = engine.json("GET", &path, None, &format!("container {name}"))?;
    let id = said["Image"].as_str().unwrap_or_default();
    let image = engine.json("GET", &format!("/images/{}/json", escape(id)), None, "its image");
    let mut seen = read(&said);
    if let Ok(image) = image {
        seen.image_environment = environment(&image["Config"]["Env"]);
    }
    Ok(seen)
}

/// An image by name.
pub fn image(engine: &Engine, name: &str) -> Result<Seen, EngineError> {
    let path = format!("/images/{}/json", escape(name));
    let said = engine.json("GET", &path, None, &format!("image {name}"))?;
    let environment = environment(&said["Config"]["Env"]);
    Ok(Seen {
        given: Given {
            name: name.to_owned(),
            user: user(said["Config"]["User"].as_str().unwrap_or_default()),
            seccomp: "filter".to_owned(),
            environment: environment.clone(),
            ..Given::default()
        },
        image: name.to_owned(),
        image_environment: environment,
        ..Seen::default()
    })
}

fn read(said: &Value) -> Seen {
    let (config, host) = (&said["Config"], &said["HostConfig"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|v| v.as_str())
            .map(str::to_owned)
            .collect()
    };
    let environment = environment(&config["Env"]);
    let privileged = host["Privileged"].as_bool() == Some(true);
    let security = names(&host["SecurityOpt"]);
    let limit = host["Ulimits"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|limit| limit["Name"] == "memlock")
        .and_then(|limit| limit["Soft"].as_i64());
    let shared = |mode: &str| Some(host[mode].as_str() == Some("host"));
    Seen {
        id: text(&said["Id"]),
        image: text(&config["Image"]),
        pid: said["State"]["Pid"].as_u64().filter(|p| *p > 0).and_then(|p| u32::try_from(p).ok()),
        compose: !config["Labels"]["com.docker.compose.project"].is_null(),
        given: Given {
            name: text(&said["Name"]).trim_start_matches('/').to_owned(),
            user: user(config["User"].as_str().unwrap_or_default()),
            capabilities: capabilities(
                privileged,
                &names(&host["CapAdd"]),
                &names(&host["CapDrop"]),
            ),
            memlock: limit.map(|soft| u64::try_from(soft).unwrap_or(UNLIMITED)),
            shm: match host["IpcMode"].as_str() {
                Some("host") => None,
                _ => host["ShmSize"].as_u64().filter(|bytes| *bytes > 0),
            },
            memory: host["Memory"].as_u64().filter(|bytes| *bytes > 0),
            seccomp: if privileged || security.iter().any(|s| s == "seccomp=unconfined") {
                "off".to_owned()
            } else {
                "filter".to_owned()
            },
            no_new_privileges: security.iter().any(|s| s.starts_with("no-new-privileges")),
            host: HostNamespaces {
                net: shared("NetworkMode"),
                ipc: shared("IpcMode"),
                pid: shared("PidMode"),
                uts: shared("UTSMode"),
            },
            devices: host["Devices"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|d| d["PathOnHost"].as_str())
                .map(str::to_owned)
                .collect(),
            all_devices: privileged,
            gpus: gpus(host, &environment),
            environment,
        },
        image_environment: BTreeMap::new(),
    }
}

/// Number of a user as `docker run --user` takes it; a name is some user that is not root.
fn user(text: &str) -> u32 {
    match text.split(':').next().unwrap_or_default() {
        "" | "root" => 0,
        name => name.parse().unwrap_or(u32::MAX),
    }
}

fn capabilities(privileged: bool, add: &[String], drop: &[String]) -> Vec<String> {
    let plain = |name: &String| name.to_ascii_uppercase().trim_start_matches("CAP_").to_owned();
    let (add, drop): (Vec<String>, Vec<String>) =
        (add.iter().map(plain).collect(), drop.iter().map(plain).collect());
    ALL.iter()
        .filter(|name| {
            let given = add.iter().any(|a| a == *name || a == "ALL");
            let taken = drop.iter().any(|d| d == *name || d == "ALL");
            // NET_RAW is among the engine's default ones
            privileged
                || (given && !drop.iter().any(|d| d == *name))
                || (**name == "NET_RAW" && !taken)
        })
        .map(|name| (*name).to_owned())
        .collect()
}

fn gpus(host: &Value, environment: &BTreeMap<String, String>) -> Gpus {
    for request in host["DeviceRequests"].as_array().into_iter().flatten() {
        let capable = request["Capabilities"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|set| set.as_array().into_iter().flatten())
            .any(|c| c == "gpu");
        if !capable {
            continue;
        }
        let ids: Vec<String> = request["DeviceIDs"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|v| v.as_str().map(str::to_owned))
            .collect();
        return match request["Count"].as_i64() {
            _ if !ids.is_empty() => Gpus::Named(ids),
            Some(count) if count >= 0 => Gpus::Count(usize::try_from(count).unwrap_or(0)),
            _ => Gpus::All,
        };
    }
    // NVIDIA's runtime reads the variable
    if host["Runtime"] == "nvidia" {
        return match environment.get("NVIDIA_VISIBLE_DEVICES").map(String::as_str) {
            Some("all") => Gpus::All,
            None | Some("" | "void" | "none") => Gpus::None,
            Some(list) => Gpus::Named(list.split(',').map(str::to_owned).collect()),
        };
    }
    Gpus::None
}

fn environment(pairs: &Value) -> BTreeMap<String, String> {
    pairs
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|pair| pair.as_str()?.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_engine_says_of_a_container() {
        let seen = read(&json!({
            "Id": "abc", "Name": "/train", "State": {"Pid": 0},
            "Config": {
                "Image": "train:1", "User": "1000:1000", "Env": ["NCCL_DEBUG=INFO", "EMPTY="],
                "Labels": {"com.docker.compose.project": "job"}
            },
            "HostConfig": {
                "Privileged": false, "CapAdd": ["IPC_LOCK", "CAP_SYS_NICE"], "CapDrop": null,
                "ShmSize": 67_108_864, "IpcMode": "private", "NetworkMode": "host", "PidMode": "",
                "Ulimits": [{"Name": "memlock", "Soft": -1, "Hard": -1}],
                "Devices": [{"PathOnHost": "/dev/infiniband"}],
                "DeviceRequests": [{"Driver": "", "Count": -1, "Capabilities": [["gpu"]]}],
                "SecurityOpt": ["no-new-privileges"]
            }
        }));
        assert_eq!(seen.given.name, "train");
        assert_eq!(seen.pid, None);
        assert!(seen.compose);
        assert_eq!(seen.given.user, 1000);
        assert_eq!(seen.given.capabilities, ["NET_RAW", "IPC_LOCK", "SYS_NICE"]);
        assert_eq!(seen.given.memlock, Some(UNLIMITED));
        assert_eq!(seen.given.shm, Some(64 << 20));
        assert_eq!(seen.given.host.net, Some(true));
        assert_eq!(seen.given.gpus, Gpus::All);
        assert_eq!(seen.given.environment["EMPTY"], "");
        let none = read(&json!({"HostConfig": {"Privileged": true, "Runtime": "nvidia"}}));
        assert_eq!(none.given.gpus, Gpus::None);
        assert_eq!(none.given.capabilities.len(), ALL.len());
    }

    #[test]
    fn users_and_dropped_capabilities() {
        assert_eq!((user(""), user("root"), user("0:0"), user("65532:65532")), (0, 0, 0, 65532));
        assert!(user("appuser") > 0);
        assert!(capabilities(false, &[], &["ALL".to_owned()]).is_empty());
        let one = capabilities(false, &["IPC_LOCK".to_owned()], &["ALL".to_owned()]);
        assert_eq!(one, ["IPC_LOCK"]);
    }
}
