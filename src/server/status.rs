//! The endpoints `/status` and `/metrics`.

use super::{AppState, response};
use crate::diagnostics::{Diagnostic, visible_span};
use crate::reload::{RejectedSet, Reloader};
use crate::telemetry::{LogQueue, RejectedConfigLabels};
use poem::Response;
use poem::http::HeaderValue;

/// The content type of the OpenMetrics text format.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub fn status(reloader: &Reloader) -> Response {
    let mut response = response::json(200, reloader.status(env!("CARGO_PKG_VERSION")).to_string());
    response.headers_mut().insert("cache-control", HeaderValue::from_static("no-store"));
    response
}

pub fn metrics(reloader: &Reloader, app_state: &AppState) -> Response {
    let metrics = &app_state.metrics;
    // Concurrent scrapes must not see each other's half-set gauges: each is a consistent snapshot.
    let _guard = metrics.lock_snapshot();
    let reloads = reloader.reload_counts();
    metrics.turns_in_flight.set(reloader.turns_in_flight() as i64);
    metrics.set_log_lines_dropped(LogQueue::stderr().dropped());
    metrics.generation.set(reloader.current().number as i64);
    metrics.generations.set(reloader.generations_in_memory() as i64);
    metrics.set_reloads("applied", reloads.applied);
    metrics.set_reloads("rejected", reloads.rejected);
    metrics.set_reloads("unchanged", reloads.unchanged);
    metrics.set_rejected_config(reloader.current_rejection().as_deref().map(rejected_labels).unwrap_or_default());
    response::text(METRICS_TYPE, metrics.encode())
}

/// One mistake can cause very many diagnostics; a few suffice to find it.
const MAX_DIAGNOSTICS: usize = 20;

fn rejected_labels(rejected: &RejectedSet) -> Vec<RejectedConfigLabels> {
    let sources = &rejected.error.sources;
    let labels = |d: &Diagnostic| {
        let source = sources.get(d.span.file);
        let file = source.map(|s| escaped(&s.shown)).unwrap_or_default();
        let location = source.and_then(|s| visible_span(s, d.span)).map(|span| sources.location(span));
        let text = |n: Option<usize>| n.map_or(String::new(), |n| n.to_string());
        let (line, column) = (text(location.map(|l| l.line)), text(location.map(|l| l.column)));
        RejectedConfigLabels { code: d.code.as_str(), file, line, column }
    };
    rejected.error.diagnostics.iter().take(MAX_DIAGNOSTICS).map(labels).collect()
}

/// `prometheus_client` writes label values as they are, so they are escaped here.
fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
