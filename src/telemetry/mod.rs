//! Logs and metrics. One log line per response, and one per turn; no bodies and no keys are logged.

pub mod file_log;
mod json_format;
mod log_queue;
mod metrics;
mod plain_fields;
mod plain_metrics;
mod turn_metrics;
pub mod usage_reader;
mod utc_time;

pub use file_log::{FileLog, LogFile};
pub use log_queue::LogQueue;
pub use metrics::{ClientTimeout, Direction, Metrics, RejectedConfigLabels};
pub use plain_metrics::plain_text;
pub use turn_metrics::{EndedTurn, OperationLabels, TurnLabels, TurnMetrics};

use json_format::JsonFormat;
use plain_fields::PlainFields;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;
use utc_time::UtcTime;

/// The target of the line of a response.
pub const ACCESS_TARGET: &str = "reframe::access";

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    // One object per line. No doc comment: the help would list the values over several lines.
    Json,
}

/// Logs to standard error, through a queue that never blocks. `REFRAME_LOG` sets the filter (default: `info`).
pub fn init(format: LogFormat) {
    let filter = EnvFilter::try_from_env("REFRAME_LOG").unwrap_or_else(|_| EnvFilter::new("info,notify=off"));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(LogQueue::stderr())
        .with_ansi(colour)
        .with_target(false)
        // These errors are printed by a macro that panics if standard error is closed.
        .log_internal_errors(false);
    let _ = match format {
        LogFormat::Text => log.with_timer(UtcTime).fmt_fields(PlainFields).try_init(),
        LogFormat::Json => log.event_format(JsonFormat).try_init(),
    };
}
