//! Trials: real ranks, real traffic.
//!
//! A *trial* is one run of collectives over one set of ranks with one set of settings. The
//! *coordinator* ([`coordinator`]) speaks to one *worker* ([`worker`]) per machine, container or pod
//! over TLS; a worker spawns one fresh child process per rank ([`rank`]), because NCCL reads its
//! settings once at start. In that process an [`engine::Engine`] moves the bytes. What comes out
//! is `ncclctl_findings::Evidence`, the same from every engine.

pub mod agree;
pub mod coordinator;
mod counters;
pub mod engine;
pub mod error;
pub mod event;
mod frame;
mod host;
pub mod launch;
mod message;
pub mod nccl;
pub mod plan;
pub mod rank;
pub mod rendezvous;
mod stats;
pub mod tcp;
mod tls;
pub mod token;
pub mod worker;

pub use error::TrialError;
pub use plan::TrialPlan;
pub use token::Token;
