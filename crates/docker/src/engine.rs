//! An engine, by its API (<https://docs.docker.com/reference/api/engine/>).

use std::io::Read;
use std::time::Duration;

use serde_json::Value;

use crate::endpoint::Endpoint;
use crate::http::{Answer, exchange};

/// Version that is spoken where the engine lets one choose: that of Engine 20.10.
const WANTED: (u32, u32) = (1, 41);
/// Oldest that will do: requests for GPUs came with 1.40 (Engine 19.03).
const OLDEST: (u32, u32) = (1, 40);
/// Longest that an engine may think about a request.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest answer that is read, bytes.
const LONGEST: u64 = 256 << 20;

/// Why an engine does not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The address is none.
    #[error(transparent)]
    Endpoint(#[from] crate::endpoint::EndpointError),
    /// Nobody answers.
    #[error(
        "no Docker engine answers at {endpoint} ({source}): is it started, may this user reach it (group docker), is --host or DOCKER_HOST right?"
    )]
    Unreachable {
        /// Where.
        endpoint: Endpoint,
        /// Why.
        source: std::io::Error,
    },
    /// Neither side's versions fit.
    #[error(
        "the engine at {endpoint} speaks API {least} to {most}; 1.40 (Docker 19.03) or newer is needed"
    )]
    Version {
        /// Where.
        endpoint: Endpoint,
        /// Oldest that it speaks.
        least: String,
        /// Newest that it speaks.
        most: String,
    },
    /// The engine refused.
    #[error("{what}: {message}{hint}")]
    Refused {
        /// What was asked for.
        what: String,
        /// Status of HTTP.
        status: u16,
        /// The engine's words.
        message: String,
        /// What to do.
        hint: &'static str,
    },
    /// The run can not be as asked for.
    #[error("{0}")]
    Run(String),
}

/// An engine that answers.
#[derive(Clone, Debug)]
pub struct Engine {
    endpoint: Endpoint,
    version: String,
}

impl Engine {
    /// Asks the engine for its versions and settles on one.
    pub fn open(endpoint: Endpoint) -> Result<Self, EngineError> {
        let mut engine = Self { endpoint, version: String::new() };
        let answer = engine.json("GET", "/version", None, "version")?;
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        let (least, most) = (text("MinAPIVersion"), text("ApiVersion"));
        engine.version = settle(&least, &most).ok_or_else(|| EngineError::Version {
            endpoint: engine.endpoint.clone(),
            least,
            most,
        })?;
        Ok(engine)
    }

    /// Where it is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// A request with a JSON answer; `what` names it in errors.
    pub(crate) fn json(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        what: &str,
    ) -> Result<Value, EngineError> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut answer =
            self.send(method, path, "application/json", body.as_bytes(), Some(PATIENCE), what)?;
        let mut text = String::new();
        let read = (&mut answer.body).take(LONGEST).read_to_string(&mut text);
        read.map_err(|source| self.unreachable(source))?;
        Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// A request whose answer is read by the caller.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        content: &str,
        body: &[u8],
        patience: Option<Duration>,
        what: &str,
    ) -> Result<Answer, EngineError> {
        let prefix =
            if self.version.is_empty() { String::new() } else { format!("/v{}", self.version) };
        let connection =
            self.endpoint.connect(patience).map_err(|source| self.unreachable(source))?;
        let mut answer = exchange(connection, method, &format!("{prefix}{path}"), content, body)
            .map_err(|source| self.unreachable(source))?;
        if answer.status < 400 {
            return Ok(answer);
        }
        let mut text = String::new();
        let _ = (&mut answer.body).take(64 << 10).read_to_string(&mut text);
        let said = serde_json::from_str::<Value>(&text).ok();
        let message = said
            .and_then(|value| value["message"].as_str().map(str::to_owned))
            .unwrap_or_else(|| text.trim().to_owned());
        let hint = hint(&message);
        Err(EngineError::Refused { what: what.to_owned(), status: answer.status, message, hint })
    }

    fn unreachable(&self, source: std::io::Error) -> EngineError {
        EngineError::Unreachable { endpoint: self.endpoint.clone(), source }
    }
}

impl EngineError {
    /// Whether the thing was not there.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }
}

/// What to do about what an engine says.
fn hint(message: &str) -> &'static str {
    for (part, hint) in [
        ("No such image", "; pull or build it on the engine's host: nothing is pulled here"),
        (
            "could not select device driver",
            "; install nvidia-container-toolkit on the engine's host and run `nvidia-ctk runtime configure --runtime=docker`",
        ),
        (
            "no such file or directory",
            "; an image without glibc (Alpine, scratch) can not run this binary: use a Debian, Ubuntu or CUDA image, or ncclctl's own",
        ),
        ("shm-size", "; raise --shm-size"),
        (
            "error setting rlimit",
            "; the engine itself has a lower limit: raise LimitMEMLOCK of docker.service",
        ),
        (
            "is already in use by container",
            "; another run has this name: choose --name, or `ncclctl cleanup` it",
        ),
    ] {
        if message.contains(part) {
            return hint;
        }
    }
    ""
}

/// The version to speak with an engine that speaks `least` to `most`.
fn settle(least: &str, most: &str) -> Option<String> {
    let parse = |text: &str| {
        let (major, minor) = text.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    };
    let most = parse(most)?;
    let least = parse(least).unwrap_or(OLDEST);
    let chosen = WANTED.min(most).max(least);
    (chosen >= OLDEST && chosen <= most).then(|| format!("{}.{}", chosen.0, chosen.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_and_newer_engines() {
        assert_eq!(settle("1.12", "1.41").as_deref(), Some("1.41"));
        assert_eq!(settle("1.12", "1.40").as_deref(), Some("1.40"));
        assert_eq!(settle("1.44", "1.52").as_deref(), Some("1.44"));
        assert_eq!(settle("1.24", "1.47").as_deref(), Some("1.41"));
        assert_eq!(settle("1.12", "1.39"), None);
        assert_eq!(settle("", "podman"), None);
    }

    #[test]
    fn an_engine_that_is_not_there() {
        let error = Engine::open(Endpoint::Unix("/nonexistent/docker.sock".into())).unwrap_err();
        insta::assert_snapshot!(error, @"no Docker engine answers at unix:///nonexistent/docker.sock (No such file or directory (os error 2)): is it started, may this user reach it (group docker), is --host or DOCKER_HOST right?");
    }
}
