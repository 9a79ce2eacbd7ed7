//! The bandwidth model: what a collective may reach on given hardware.
//!
//! Rates are GB/s (10^9 bytes per second) in one direction, bus bandwidth as nccl-tests defines it.
//! `n` is ranks, `N` nodes, `G` ranks per node, `B` the payload rate of all NICs of a node that
//! carry traffic, `V` the NVLink (or PCIe) rate of one GPU.

pub mod link;
pub mod traffic;

pub use link::{Link, line_rate_payload};
pub use traffic::{Algorithm, Layout, NodeBytes, node_bytes, rank_bytes};
