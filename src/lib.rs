//! Reframe is an LLM gateway programmed in YAML: mapping files translate a backend's stream into what a client's API
//! expects.
//!
//! The library exists for the `reframe` binary; its public surface is [`run`]. The modules, in the order of the data path,
//! are described in ARCHITECTURE.md. Start reading at `engine::pipeline`.

mod domain;

mod diagnostics;
mod mapping;

mod server;

mod engine;
mod order;
mod turn;
mod upstream;

mod capture;
mod openapi;
mod reload;
mod verify;

mod cli;
mod telemetry;

#[doc(hidden)]
pub mod testing;

/// Runs the command line of the current process: parses the arguments, executes the command, and returns the exit code
/// (0: success, 1: findings or failed tests, 2: the command could not run).
pub fn run() -> std::process::ExitCode {
    cli::run()
}
