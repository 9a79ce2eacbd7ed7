//! The bandwidth model: what a collective may reach on given hardware.
//!
//! Rates are GB/s (10^9 bytes per second) in one direction, bus bandwidth as nccl-tests defines it.
//! `n` is ranks, `N` nodes, `G` ranks per node, `B` the payload rate of all NICs of a node that
//! carry traffic, `V` the NVLink (or PCIe) rate of one GPU.
//!
//! The expectation is the lowest of link rate times payload share, NVLink or PCIe, and NCCL's own
//! tuning model; a figure published for the very platform outranks it. Where the algorithm or the
//! way is not known it is a range: a result passes against its upper end and fails against its
//! lower one.

pub mod ceiling;
pub mod expected;
pub mod gpu;
pub mod link;
pub mod published;
pub mod traffic;

pub use ceiling::{Ceiling, ceiling};
pub use expected::{Expectation, Job, Nics, Standing, expected};
pub use gpu::Gpu;
pub use link::{Link, line_rate_payload};
pub use traffic::{Algorithm, Layout, NodeBytes, node_bytes, rank_bytes};
