//! A run: made, followed, looked at, removed.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ncclctl_trial::Token;
use serde::Serialize;
use serde_json::{Value, json};

use crate::archive::{Entry, ustar};
use crate::container::{MOUNT, Network, Workers};
use crate::engine::{Engine, EngineError};
use crate::http::escape;
use crate::logs::{self, Line, Stream};
use crate::{INDEX, NONCE, ROLE, RUN};

/// Port of a coordinator that has its network to itself.
const PORT: u16 = 7171;

/// A run that was started.
#[derive(Debug)]
pub struct Deployed {
    engine: Engine,
    /// Its name.
    pub name: String,
    coordinator: String,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    /// What the coordinator wrote to standard output: the result, as JSON.
    pub output: String,
    /// Exit code of the coordinator.
    pub code: i64,
    /// What the engine knows of workers that did not end well, one sentence each.
    pub losses: Vec<String>,
}

/// One container of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Worker {
    /// Name of the container.
    pub name: String,
    /// `coordinator`, `worker` or `loader`.
    pub role: String,
    /// The engine's word: created, running, paused, exited, …
    pub state: String,
    /// The engine's sentence, with exit code and age.
    pub status: String,
    #[serde(skip)]
    id: String,
}

/// State of a run as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Still on its way to its coordinator.
    Starting,
    /// The coordinator runs.
    Running,
    /// The coordinator has ended.
    Ended,
}

/// A run that is on an engine.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Its name.
    pub name: String,
    /// State.
    pub state: State,
    /// When it was made, seconds since 1970.
    pub created: i64,
    /// Exit code of the coordinator, once it has ended.
    pub code: Option<i64>,
    /// Its containers, the coordinator first.
    pub containers: Vec<Worker>,
}

/// Starts a run: `binary` is what runs in the containers, `options` are bench's own.
pub fn deploy(
    engine: &Engine,
    name: &str,
    workers: &Workers,
    binary: &[u8],
    options: &[String],
) -> Result<Deployed, EngineError> {
    if runs(engine, Some(name))?.iter().any(|run| run.name == name) {
        return Err(EngineError::Run(format!(
            "run {name} is there already: `ncclctl cleanup {name}` removes it, or choose another --name"
        )));
    }
    let token = Token::new().map_err(|error| EngineError::Run(error.to_string()))?;
    let nonce = Token::new().map_err(|error| EngineError::Run(error.to_string()))?;
    let nonce = nonce.text()[..16].to_owned();
    let plan = Plan { engine, name, workers, nonce };
    match plan.carry_out(&token, binary, options) {
        Ok(coordinator) => {
            Ok(Deployed { engine: engine.clone(), name: name.to_owned(), coordinator })
        }
        Err(error) => {
            // what could not be started whole is taken away whole
            let _ = cleanup(engine, name);
            Err(error)
        }
    }
}

struct Plan<'a> {
    engine: &'a Engine,
    name: &'a str,
    workers: &'a Workers,
    nonce: String,
}

impl Plan<'_> {
    fn labels(&self, role: &str, index: Option<usize>) -> Value {
        let mut labels = json!({RUN: self.name, NONCE: self.nonce, ROLE: role});
        if let Some(index) = index {
            labels[INDEX] = index.to_string().into();
        }
        labels
    }

    fn carry_out(
        &self,
        token: &Token,
        binary: &[u8],
        options: &[String],
    ) -> Result<String, EngineError> {
        self.volume(token, binary)?;
        let network = self.network()?;
        let port = self.port();
        let mut command: Vec<String> = ["bench", "--listen"].map(str::to_owned).to_vec();
        // on the host's network nobody else needs to reach it
        let listen =
            if network == "host" { format!("127.0.0.1:{port}") } else { format!("[::]:{port}") };
        command.extend([listen, "--workers".to_owned(), self.workers.count.to_string()]);
        command.extend(["--token-file", &format!("{MOUNT}/token")].map(str::to_owned));
        if self.workers.gpus > 0 && !options.iter().any(|option| option.starts_with("--engine")) {
            // the coordinator has no GPU to see
            command.extend(["--engine", "nccl"].map(str::to_owned));
        }
        command.extend(options.iter().cloned());
        command.extend(["-o", "json"].map(str::to_owned));
        let labels = self.labels("coordinator", None);
        let body = self.workers.container(self.name, &network, &labels, &command, None);
        let coordinator = self.start(&format!("{}-coordinator", self.name), &body)?;
        let address = self.address(&coordinator, &network)?;
        for index in 0..self.workers.count {
            let worker = format!("{}-worker-{index}", self.name);
            let mut command: Vec<String> = ["worker", "--join"].map(str::to_owned).to_vec();
            command.extend([
                format!("{address}:{port}"),
                "--name".to_owned(),
                format!("worker-{index}"),
            ]);
            command.extend(["--token-file", &format!("{MOUNT}/token")].map(str::to_owned));
            if self.workers.gpus > 1 {
                command.extend(["--ranks".to_owned(), self.workers.gpus.to_string()]);
            }
            let labels = self.labels("worker", Some(index));
            let gpus_from = Some(index * self.workers.gpus);
            let body = self.workers.container(self.name, &network, &labels, &command, gpus_from);
            self.start(&worker, &body)?;
        }
        Ok(coordinator)
    }

    /// Puts binary and token where all containers of the run see them, read-only.
    fn volume(&self, token: &Token, binary: &[u8]) -> Result<(), EngineError> {
        let body = json!({"Name": self.name, "Labels": self.labels("volume", None)});
        self.engine.json("POST", "/volumes/create", Some(&body), "making the volume")?;
        let body = json!({
            "Image": self.workers.image,
            "Entrypoint": [format!("{MOUNT}/ncclctl")],
            "Labels": self.labels("loader", None),
            "HostConfig": {"NetworkMode": "none", "Mounts": [{"Type": "volume", "Source": self.name, "Target": MOUNT}]},
        });
        let loader = self.create(&format!("{}-loader", self.name), &body)?;
        let text = token.text();
        let archive = ustar(&[
            Entry { name: "ncclctl", mode: 0o755, owner: 0, bytes: binary },
            Entry {
                name: "token",
                mode: 0o400,
                owner: self.workers.user.0,
                bytes: text.as_bytes(),
            },
        ]);
        let path = format!("/containers/{loader}/archive?path={}", escape(MOUNT));
        let patience = Some(Duration::from_secs(120));
        let mut answer = self.engine.send(
            "PUT",
            &path,
            "application/x-tar",
            &archive,
            patience,
            "copying ncclctl into the volume",
        )?;
        let _ = answer.body.read_to_end(&mut Vec::new());
        remove(self.engine, &format!("/containers/{loader}?force=1"), "removing the loader")
    }

    fn network(&self) -> Result<String, EngineError> {
        let (driver, options, internal) = match &self.workers.network {
            Network::Host => return Ok("host".to_owned()),
            Network::Existing(name) => {
                self.engine.json("GET", &format!("/networks/{}", escape(name)), None, "network")?;
                return Ok(name.clone());
            }
            Network::Bridge => ("bridge", json!({}), true),
            Network::Macvlan(parent) => ("macvlan", json!({"parent": parent}), false),
        };
        let body = json!({
            "Name": self.name, "Driver": driver, "Options": options, "Internal": internal,
            "CheckDuplicate": true, "Labels": self.labels("network", None),
        });
        self.engine.json("POST", "/networks/create", Some(&body), "making the network")?;
        Ok(self.name.to_owned())
    }

    fn create(&self, name: &str, body: &Value) -> Result<String, EngineError> {
        let path = format!("/containers/create?name={}", escape(name));
        let answer = self.engine.json("POST", &path, Some(body), &format!("making {name}"))?;
        Ok(answer["Id"].as_str().unwrap_or_default().to_owned())
    }

    fn start(&self, name: &str, body: &Value) -> Result<String, EngineError> {
        let id = self.create(name, body)?;
        let path = format!("/containers/{id}/start");
        self.engine.json("POST", &path, None, &format!("starting {name}"))?;
        Ok(id)
    }

    /// A port of its own on the host's network, where several runs may be.
    fn port(&self) -> u16 {
        match self.workers.network {
            Network::Host => {
                20_000 + u16::from_str_radix(&self.nonce[..4], 16).unwrap_or(PORT) % 12_000
            }
            _ => PORT,
        }
    }

    /// Where the workers reach the coordinator: an address, as not every network has names.
    fn address(&self, id: &str, network: &str) -> Result<String, EngineError> {
        if network == "host" {
            return Ok("127.0.0.1".to_owned());
        }
        let seen =
            self.engine.json("GET", &format!("/containers/{id}/json"), None, "inspecting")?;
        let networks = seen["NetworkSettings"]["Networks"].as_object();
        let address = networks
            .and_then(|all| all.values().next())
            .and_then(|one| one["IPAddress"].as_str())
            .filter(|address| !address.is_empty());
        address.map(str::to_owned).ok_or_else(|| {
            EngineError::Run(format!(
                "the coordinator got no address on network {network}: {}",
                seen["State"]["Error"]
                    .as_str()
                    .filter(|e| !e.is_empty())
                    .unwrap_or("it ended at once; `ncclctl logs` with --keep says why")
            ))
        })
    }
}

impl Deployed {
    /// Follows the coordinator until it ends; `tell` gets what it writes to standard error.
    pub fn wait(&self, limit: Duration, mut tell: impl FnMut(&str)) -> Result<Ended, EngineError> {
        let started = Instant::now();
        let (to, from) = mpsc::channel();
        let (engine, id) = (self.engine.clone(), self.coordinator.clone());
        std::thread::spawn(move || {
            let _ = follow(&engine, &id, true, None, |line| {
                let _ = to.send(line);
            });
        });
        let mut output = String::new();
        loop {
            match from.recv_timeout(limit.saturating_sub(started.elapsed())) {
                Ok(line) if line.stream == Stream::Error => tell(&line.text),
                Ok(line) => {
                    output.push_str(&line.text);
                    output.push('\n');
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let losses = self.losses()?;
                    let mut message = format!("run {} did not end within {limit:.0?}", self.name);
                    for loss in losses {
                        message.push_str("\n  ");
                        message.push_str(&loss);
                    }
                    return Err(EngineError::Run(message));
                }
            }
        }
        let path = format!("/containers/{}/wait", self.coordinator);
        let answer = self.engine.json("POST", &path, None, "waiting for the coordinator")?;
        // asked before anything is removed: afterwards nobody knows who was killed
        let losses = self.losses()?;
        Ok(Ended { output, code: answer["StatusCode"].as_i64().unwrap_or(4), losses })
    }

    fn losses(&self) -> Result<Vec<String>, EngineError> {
        let mut found = Vec::new();
        for container in containers(&self.engine, Some(&self.name))? {
            let path = format!("/containers/{}/json", container.id);
            let seen = self.engine.json("GET", &path, None, "inspecting")?;
            found.extend(loss(&container.name, &seen));
        }
        Ok(found)
    }
}

/// What the engine knows of a container that would explain a lost worker.
fn loss(name: &str, seen: &Value) -> Option<String> {
    let state = &seen["State"];
    let code = state["ExitCode"].as_i64().unwrap_or_default();
    let networks = seen["NetworkSettings"]["Networks"].as_object();
    if state["OOMKilled"] == true {
        let limit = seen["HostConfig"]["Memory"].as_u64().unwrap_or_default() >> 20;
        return Some(format!("{name}: out of memory, its limit is {limit} MiB: raise --memory"));
    }
    if state["Paused"] == true {
        return Some(format!("{name}: paused: `docker unpause {name}`"));
    }
    // an engine forgets the network of a container that was disconnected, not that of one that ended
    if networks.is_some_and(serde_json::Map::is_empty) {
        return Some(format!("{name}: disconnected from its network"));
    }
    if state["Running"] == true {
        return None;
    }
    match code {
        137 => Some(format!("{name}: killed (signal 9) by somebody, not for want of memory")),
        143 => Some(format!("{name}: stopped (signal 15), as `docker stop` does")),
        _ => None,
    }
}

/// Runs on an engine, the newest first; only `name` where given.
pub fn runs(engine: &Engine, name: Option<&str>) -> Result<Vec<Run>, EngineError> {
    let mut runs: BTreeMap<String, Run> = BTreeMap::new();
    for (label, created, container) in listed(engine, name)? {
        let run = runs.entry(label.clone()).or_insert_with(|| Run {
            name: label,
            state: State::Starting,
            created,
            code: None,
            containers: Vec::new(),
        });
        run.created = run.created.min(created);
        if container.role == "coordinator" {
            run.state = match container.state.as_str() {
                "created" => State::Starting,
                "exited" | "dead" => State::Ended,
                _ => State::Running,
            };
            run.code = exit_code(&container.status);
        }
        run.containers.push(container);
    }
    let mut runs: Vec<Run> = runs.into_values().collect();
    for run in &mut runs {
        run.containers.sort_by(|a, b| {
            (a.role.as_str(), a.name.len(), &a.name).cmp(&(b.role.as_str(), b.name.len(), &b.name))
        });
    }
    runs.sort_by_key(|run| std::cmp::Reverse(run.created));
    Ok(runs)
}

/// Names of all runs that left anything, also those that have only a network or a volume.
pub fn names(engine: &Engine) -> Result<Vec<String>, EngineError> {
    let mut names = std::collections::BTreeSet::new();
    let all = selected(None);
    for (path, key) in [
        (format!("/containers/json?all=1&filters={all}"), None),
        (format!("/networks?filters={all}"), None),
        (format!("/volumes?filters={all}"), Some("Volumes")),
    ] {
        let found = engine.json("GET", &path, None, "listing runs")?;
        let found = key.map_or(&found, |key| &found[key]);
        let list = found.as_array().into_iter().flatten();
        names.extend(list.filter_map(|one| one["Labels"][RUN].as_str().map(str::to_owned)));
    }
    Ok(names.into_iter().collect())
}

/// The code in the engine's `Exited (3) 5 minutes ago`.
fn exit_code(status: &str) -> Option<i64> {
    status.strip_prefix("Exited (")?.split(')').next()?.parse().ok()
}

fn containers(engine: &Engine, name: Option<&str>) -> Result<Vec<Worker>, EngineError> {
    Ok(listed(engine, name)?.into_iter().map(|(_, _, container)| container).collect())
}

/// Query that only selects what runs of this program made.
fn selected(name: Option<&str>) -> String {
    let mut labels = vec![NONCE.to_owned()];
    labels.push(name.map_or_else(|| RUN.to_owned(), |name| format!("{RUN}={name}")));
    escape(&json!({"label": labels}).to_string())
}

fn listed(engine: &Engine, name: Option<&str>) -> Result<Vec<(String, i64, Worker)>, EngineError> {
    let path = format!("/containers/json?all=1&filters={}", selected(name));
    let list = engine.json("GET", &path, None, "listing containers")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(list
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            let container = Worker {
                name: text(&one["Names"][0]).trim_start_matches('/').to_owned(),
                role: text(&one["Labels"][ROLE]),
                state: text(&one["State"]),
                status: text(&one["Status"]),
                id: text(&one["Id"]),
            };
            (text(&one["Labels"][RUN]), one["Created"].as_i64().unwrap_or_default(), container)
        })
        .collect())
}

/// Gives the lines of every container of a run, with the container's name; with `all` standard output too.
pub fn logs(
    engine: &Engine,
    name: &str,
    keep_up: bool,
    tail: Option<u32>,
    mut give: impl FnMut(&str, Line),
) -> Result<usize, EngineError> {
    let found = containers(engine, Some(name))?;
    let (to, from) = mpsc::channel();
    for container in &found {
        let (engine, container, to) = (engine.clone(), container.clone(), to.clone());
        std::thread::spawn(move || {
            let _ = follow(&engine, &container.id, keep_up, tail, |line| {
                let _ = to.send((container.name.clone(), line));
            });
        });
    }
    drop(to);
    for (container, line) in from {
        give(&container, line);
    }
    Ok(found.len())
}

fn follow(
    engine: &Engine,
    id: &str,
    keep_up: bool,
    tail: Option<u32>,
    give: impl FnMut(Line),
) -> Result<(), EngineError> {
    let tail = tail.map_or_else(|| "all".to_owned(), |lines| lines.to_string());
    let follow = u8::from(keep_up);
    let path = format!("/containers/{id}/logs?stdout=1&stderr=1&follow={follow}&tail={tail}");
    let answer = engine.send("GET", &path, "application/json", b"", None, "reading logs")?;
    // an engine that goes away ends the stream: what came is given
    let _ = logs::read(answer.body, give);
    Ok(())
}

/// Removes what carries a run's label: containers, then networks, then volumes. Gives how many. Idempotent.
pub fn cleanup(engine: &Engine, name: &str) -> Result<usize, EngineError> {
    let mut removed = 0;
    for container in containers(engine, Some(name))? {
        let path = format!("/containers/{}?force=1&v=1", container.id);
        remove(engine, &path, &format!("removing {}", container.name))?;
        removed += 1;
    }
    let filters = selected(Some(name));
    for (list, key, what) in
        [("/networks", None, "network"), ("/volumes", Some("Volumes"), "volume")]
    {
        let found = engine.json(
            "GET",
            &format!("{list}?filters={filters}"),
            None,
            &format!("listing {what}s"),
        )?;
        let found = key.map_or(&found, |key| &found[key]);
        for one in found.as_array().into_iter().flatten() {
            let id = one["Id"].as_str().or_else(|| one["Name"].as_str()).unwrap_or_default();
            remove(engine, &format!("{list}/{}", escape(id)), &format!("removing {what} {name}"))?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn remove(engine: &Engine, path: &str, what: &str) -> Result<(), EngineError> {
    match engine.json("DELETE", path, None, what) {
        Err(error) if !error.is_gone() => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_worker_was_lost() {
        let seen = |state: Value, networks: Value| {
            loss(
                "r-worker-1",
                &json!({"State": state, "NetworkSettings": {"Networks": networks}, "HostConfig": {"Memory": 64 << 20}}),
            )
        };
        let one = || json!({"r": {}});
        insta::assert_snapshot!(seen(json!({"OOMKilled": true, "ExitCode": 137}), one()).unwrap(), @"r-worker-1: out of memory, its limit is 64 MiB: raise --memory");
        insta::assert_snapshot!(seen(json!({"ExitCode": 137}), one()).unwrap(), @"r-worker-1: killed (signal 9) by somebody, not for want of memory");
        insta::assert_snapshot!(seen(json!({"Running": true, "Paused": true}), one()).unwrap(), @"r-worker-1: paused: `docker unpause r-worker-1`");
        insta::assert_snapshot!(seen(json!({"Running": true}), json!({})).unwrap(), @"r-worker-1: disconnected from its network");
        assert_eq!(seen(json!({"ExitCode": 0}), one()), None);
        assert_eq!(seen(json!({"Running": true}), one()), None);
        assert_eq!(exit_code("Exited (3) 5 minutes ago"), Some(3));
        assert_eq!(exit_code("Up 4 seconds (Paused)"), None);
    }
}
