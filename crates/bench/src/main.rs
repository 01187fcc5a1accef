//! `./bench`: what a frame and a request cost in the gateway, as ratios to a bare pass-through in the same round.
//!
//! Three kinds of processes: the gateway under test and the pass-through on one core, the mock backend and the load
//! generator on the other. This binary is the last three of them.

mod client;
mod measure;
mod mock;
mod pass;
mod process;
mod report;
mod rows;
mod targets;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Measures the gateway next to a bare pass-through")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure, and print a table of ratios
    Run(RunArguments),
    /// Serve as mock backend
    #[command(hide = true)]
    Mock,
    /// Serve as bare pass-through to this address
    #[command(hide = true)]
    Pass { backend: SocketAddr },
}

#[derive(clap::Args)]
pub struct RunArguments {
    /// The gateway's binary
    #[arg(long)]
    gateway: PathBuf,
    /// The document with the targets
    #[arg(long)]
    targets: PathBuf,
    /// About two minutes: three rounds with short windows
    #[arg(long)]
    quick: bool,
    /// Rounds; all rows are measured once in each [default: 5, with --quick 3]
    #[arg(long)]
    rounds: Option<usize>,
    /// Only the rows with this text in their name
    #[arg(long)]
    only: Option<String>,
    /// Another gateway for clients of Responses, measured in the same rounds: its command, with `{backend}` (HOST:PORT)
    /// and `{port}`
    #[arg(long)]
    peer: Option<String>,
    /// The API of the mock backend
    #[arg(long, default_value = "chat")]
    backend: rows::Api,
}

fn main() -> Result<ExitCode> {
    match Arguments::parse().command {
        Command::Run(arguments) => {
            let passed = measure::run(&arguments)?;
            return Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Command::Mock => single_thread()?.block_on(mock::serve())?,
        // As many threads as cores it may use: one, like the gateway.
        Command::Pass { backend } => {
            tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(pass::serve(backend))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn single_thread() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}
