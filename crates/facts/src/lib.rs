//! What a machine is: collectors that read through one root handle.
//!
//! Reading is allowed to be partial: what could not be read is recorded beside the data.

pub mod counters;
pub mod cpu;
pub mod identity;
pub mod memory;
pub mod net;
mod netlink;
pub mod root;
pub mod settings;

pub use root::Root;
