//! `reframe launch-child`: becomes a child process of the gateway, which ends with the gateway. Only the gateway uses it.

use crate::upstream::child;
use clap::Args;
use std::ffi::OsString;

#[derive(Args)]
pub struct LaunchArgs {
    /// The process id of the gateway
    parent: u32,
    /// The program, and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

/// Returns only if the program cannot be started.
pub fn run(args: &LaunchArgs) -> String {
    let Some((program, arguments)) = args.command.split_first() else { return "no command".to_owned() };
    let why = child::launch(args.parent, program, arguments);
    format!("cannot start {}: {why}", program.to_string_lossy())
}
