//! What a machine is: collectors that read through one root handle.
//!
//! Reading is allowed to be partial: what could not be read is recorded beside the data.

pub mod capture;
pub mod cloud;
pub mod container;
pub mod counters;
pub mod cpu;
pub mod difference;
pub mod environment;
pub mod facts;
pub mod given;
pub mod gpu;
pub mod gpudirect;
pub mod identity;
pub mod live;
pub mod memory;
mod mempolicy;
pub mod net;
mod netlink;
pub mod pasted;
pub mod pci;
pub mod rdma;
pub mod root;
pub mod settings;
pub mod software;
pub mod topology;

pub use facts::{COLLECTORS, Facts, Missing};
pub use root::Root;
