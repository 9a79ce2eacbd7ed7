//! Trials in containers of a Docker engine.
//!
//! A run is a coordinator and its workers, one container each, on a network of their own; the binary
//! that runs in them is the one that runs here, put into a volume, so that any glibc image will do.
//! All state is the engine's: labels say what belongs to a run, so that a run can be looked at and
//! removed from anywhere, also after the client that made it died.

mod archive;
mod container;
mod endpoint;
mod engine;
mod http;
mod inspect;
mod logs;
mod look;
mod run;

pub use container::{Network, Workers};
pub use endpoint::Endpoint;
pub use engine::{Engine, EngineError};
pub use inspect::{Seen, container, image};
pub use logs::{Line, Stream};
pub use look::files;
pub use run::{Deployed, Ended, Run, State, Worker, cleanup, deploy, logs, names, runs};

/// Label that names the run.
pub const RUN: &str = "ncclctl/run";
/// Label with the run's nonce: two runs of one name are still two.
pub const NONCE: &str = "ncclctl/nonce";
/// Label that says what a container is: `coordinator`, `worker` or `loader`.
pub const ROLE: &str = "ncclctl/role";
/// Label with a worker's number, from 0.
pub const INDEX: &str = "ncclctl/index";
