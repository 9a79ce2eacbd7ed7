//! Exit codes, decided in one place.

use std::process::ExitCode;

/// How a command ended. The numbers are part of the interface and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: it worked; the verdict is pass, nothing was found at or over the chosen severity.
    Pass = 0,
    /// 1: the verdict is fail, or something was found.
    Fail = 1,
    /// 2: the arguments or an input file are wrong.
    Usage = 2,
    /// 3: what was seen is not enough to say.
    Inconclusive = 3,
    /// 4: the environment broke: cluster, network, library, a lost rank.
    Environment = 4,
    /// 126: `exec` found the program, and it can not be run, as in shells.
    NotExecutable = 126,
    /// 127: `exec` found no such program, as in shells.
    NotFound = 127,
    /// 130: ended by Ctrl-C, as shells expect.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error that carries its exit code.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Coded {
    /// What to print.
    pub(crate) message: String,
    /// How to end.
    pub(crate) exit: Exit,
}

/// Bad arguments or input.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    Coded { message: message.into(), exit: Exit::Usage }.into()
}

/// The environment broke.
pub(crate) fn environment(message: impl Into<String>) -> anyhow::Error {
    Coded { message: message.into(), exit: Exit::Environment }.into()
}

/// The exit code of an error.
pub(crate) fn of(error: &anyhow::Error) -> Exit {
    error.downcast_ref::<Coded>().map_or(Exit::Environment, |coded| coded.exit)
}

/// Whether a reader went away, as in `ncclctl … | head`.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}
