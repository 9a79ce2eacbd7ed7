//! `ncclctl`: get NCCL right in containers. Arguments → stages → exit code; nothing else lives here.

mod arguments;
mod command;
mod exit;
mod input;
mod output;
mod quantity;

use clap::Parser as _;

use crate::arguments::Arguments;
use crate::exit::Exit;

fn main() -> std::process::ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // help and version are answers, not errors
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Pass };
            let _ = error.print();
            return exit.into();
        }
    };
    match command::run(arguments) {
        Ok(exit) => exit.into(),
        Err(error) if exit::is_broken_pipe(&error) => Exit::Pass.into(),
        Err(error) => {
            anstream::eprintln!("ncclctl: {error:#}");
            exit::of(&error).into()
        }
    }
}
