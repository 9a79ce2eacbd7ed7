//! Trials: real ranks, real traffic.
//!
//! A *trial* is one run of collectives over one set of ranks with one set of settings. The
//! *coordinator* ([`coordinator`]) speaks to one *worker* ([`worker`]) per machine, container or pod
//! over TLS; a worker spawns one fresh child process per rank ([`rank`]), because NCCL reads its
//! settings once at start. In that process an [`engine::Engine`] moves the bytes. What comes out
//! is `ncclctl_findings::Evidence`, the same from every engine.

pub mod engine;
pub mod event;
pub mod tcp;
