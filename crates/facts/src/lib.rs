//! What a machine is: collectors that read through one root handle.
//!
//! Reading is allowed to be partial: what could not be read is recorded beside the data.

pub mod net;
