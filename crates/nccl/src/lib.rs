//! What NCCL is, as data and pure functions: collectives and how nccl-tests measures them, data
//! types, reduction operations, settings by version, grammars, log lines and the bandwidth model.
//!
//! Nothing in this crate reads a file, a socket or the environment.

pub mod bandwidth;
pub mod collective;
pub mod conf;
pub mod datatype;
pub mod doubt;
pub mod flight_recorder;
pub mod ifname;
pub mod layers;
pub mod log;
pub mod nccl_tests;
pub mod params;
pub mod pickle;
pub mod ras;
pub mod redop;
pub mod size;
pub mod version;
pub mod watchdog;

pub use collective::Collective;
pub use datatype::DataType;
pub use redop::RedOp;
pub use version::Version;
