//! How failures of sockets become errors that name the peer.

use std::time::Duration;

use crate::engine::{EngineError, ErrorKind};

/// A connected peer went away.
pub(super) fn lost(peer: usize, seen: impl std::fmt::Display) -> EngineError {
    EngineError {
        message: format!("lost rank {peer}: {seen}"),
        kind: ErrorKind::PeerLost,
        peer: Some(peer),
    }
}

/// A peer that is connected and does nothing.
pub(super) fn silent(peer: usize, what: &str, waited: Duration) -> EngineError {
    lost(peer, format_args!("{what} for {:.0} s", waited.as_secs_f64()))
}

/// A peer that can not be reached.
pub(super) fn unreachable(peer: usize, seen: impl std::fmt::Display) -> EngineError {
    EngineError {
        message: format!("can not reach rank {peer}: {seen}"),
        kind: ErrorKind::Unreachable,
        peer: Some(peer),
    }
}

/// A failure of this rank alone.
pub(super) fn own(kind: ErrorKind, message: impl Into<String>) -> EngineError {
    EngineError { message: message.into(), kind, peer: None }
}

/// What the kernel said, in the field's words.
pub(super) fn seen(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ECONNREFUSED) => {
            "connection refused (nothing listens there, or a firewall rejects)".to_owned()
        }
        Some(libc::ETIMEDOUT) => "no answer (host down, or a firewall drops)".to_owned(),
        Some(libc::EHOSTUNREACH) => "no route to host".to_owned(),
        Some(libc::ENETUNREACH) => "network unreachable (no route)".to_owned(),
        Some(libc::ECONNRESET) => "connection reset (its process ended)".to_owned(),
        Some(libc::EPIPE) => "connection closed (its process ended)".to_owned(),
        _ => error.to_string(),
    }
}
