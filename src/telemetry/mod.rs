//! Logs and metrics. One log line per response; no bodies and no keys are logged.

mod log_queue;
mod metrics;

pub use log_queue::LogQueue;
pub use metrics::{ClientTimeout, Direction, Metrics, RejectedConfigLabels};

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Logs to standard error, through a queue that never blocks. `REFRAME_LOG` sets the filter (default: `info`).
pub fn init() {
    let filter = EnvFilter::try_from_env("REFRAME_LOG").unwrap_or_else(|_| EnvFilter::new("info,notify=off"));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(LogQueue::stderr())
        .with_ansi(colour)
        .with_target(false)
        // These errors are printed by a macro that panics if standard error is closed.
        .log_internal_errors(false)
        .try_init();
}
