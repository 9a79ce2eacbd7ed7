//! Takes in what a user hands over, recognised by content, and joins it to an [`Incident`].
//!
//! Reading files is the caller's work: this takes names and bytes.

use ncclctl_nccl::log::Reader;

use crate::incident::Incident;

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A log, or anything else that is read line by line.
    Log,
}

/// Gathers inputs.
#[derive(Debug, Default)]
pub struct Intake {
    reader: Reader,
}

/// Bytes that are enough to recognise an input.
pub const HEAD: usize = 1 << 16;

/// What an input is, by its first bytes.
pub fn recognise(_name: &str, _head: &[u8]) -> Kind {
    Kind::Log
}

impl Intake {
    /// Begins an input that is read in pieces.
    pub fn begin(&mut self, name: &str) {
        self.reader.source(name);
    }

    /// The next piece of it.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.reader.feed(bytes);
    }

    /// A whole input.
    pub fn add(&mut self, name: &str, bytes: &[u8]) {
        match recognise(name, &bytes[..bytes.len().min(HEAD)]) {
            Kind::Log => {
                self.begin(name);
                self.feed(bytes);
            }
        }
    }

    /// Everything joined.
    pub fn finish(self) -> Incident {
        Incident::of_log(self.reader.finish())
    }
}
