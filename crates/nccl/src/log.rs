//! NCCL's log: one pass over bytes, whatever a collector put in front of each line, into a
//! [`Model`] of what ran, over what, and what went wrong.
//!
//! [`Reader`] takes bytes in pieces of any size and never holds more than one line;
//! [`mod@line`] knows the shape of a line, [`message`] what a message says, [`signal`] the lines of
//! other programs that matter (PyTorch's watchdog, libfabric, the kernel), [`warning`] the
//! catalogue of warnings by version.
//!
//! Sources for the grammar: `src/debug.cc` and the INFO/WARN calls of NCCL 2.3.5 to 2.32.

pub mod address;
pub mod build;
pub mod failure;
pub mod line;
pub mod message;
pub mod model;
pub mod prefix;
pub mod reader;
pub mod signal;
pub mod time;
pub mod warning;

pub use line::{Level, Line};
pub use model::{At, Communicator, Edge, Model, Notice, Process, Transport};
pub use reader::Reader;
pub use signal::Signal;
