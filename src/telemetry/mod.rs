//! Logs and metrics. One line an answer, no bodies, no keys.

mod metrics;

pub use metrics::{Direction, Metrics, RefusedAt};

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// `REFRAME_LOG` chooses what is logged (`info` when it is not set), on standard error.
pub fn init() {
    let filter = EnvFilter::try_from_env("REFRAME_LOG").unwrap_or_else(|_| EnvFilter::new("info,notify=off"));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colour)
        .with_target(false)
        // They would be printed to standard error too, by a macro that panics when nobody reads it any more.
        .log_internal_errors(false)
        .try_init();
}
