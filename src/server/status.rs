//! The endpoints `/status` and `/metrics`.

use super::{AppState, health, metric_aliases, response};
use crate::diagnostics::{Diagnostic, visible_span};
use crate::domain::{Fault, FaultKind, Tree};
use crate::mapping::config::gateway::Validation;
use crate::openapi::gateway_schemas;
use crate::reload::{RejectedSet, Reloader};
use crate::telemetry::{FileLog, LogQueue, RejectedConfigLabels, plain_text};
use poem::Response;
use poem::http::HeaderValue;
use reframe_json::Schema;

/// The content type of the OpenMetrics text format.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The content type for clients that do not ask for OpenMetrics, such as browsers and older scrapers.
const PLAIN_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub fn status(reloader: &Reloader) -> Result<Response, Fault> {
    let status = reloader.status(env!("CARGO_PKG_VERSION"));
    validate("status", reloader, gateway_schemas::status_validator(), || Tree::from_value(&status))?;
    let mut response = response::json(200, status.to_string());
    response.headers_mut().insert("cache-control", HeaderValue::from_static("no-store"));
    Ok(response)
}

/// `accept`: the content types that the client asks for.
pub fn metrics(reloader: &Reloader, app_state: &AppState, accept: Option<&str>) -> Result<Response, Fault> {
    let text = metrics_text(reloader, app_state);
    validate("metrics", reloader, gateway_schemas::metrics_validator(), || Tree::from(text.as_str()))?;
    let is_openmetrics = accept.is_some_and(|accept| accept.contains("application/openmetrics-text"));
    Ok(match is_openmetrics {
        true => response::text(METRICS_TYPE, text),
        false => response::text(PLAIN_TYPE, plain_text(&text)),
    })
}

/// Validates a document of the gateway itself, as `validation:` demands of everything that is sent.
fn validate(
    document: &str,
    reloader: &Reloader,
    schema: Option<&Schema>,
    content: impl FnOnce() -> Tree,
) -> Result<(), Fault> {
    let validation = reloader.current().plan.gateway.validation;
    let Some(schema) = schema.filter(|_| validation != Validation::Off) else { return Ok(()) };
    let Err(violation) = schema.check(&content()) else { return Ok(()) };
    let pointer = violation.pointer;
    tracing::error!(document, pointer, keyword = violation.keyword, "a document of the gateway violates its schema");
    let message = format!("the {document} violates its schema at `{pointer}`");
    if validation == Validation::Strict { Err(Fault::new(FaultKind::Violation, message)) } else { Ok(()) }
}

/// The OpenMetrics text, with the aliases of gateway.yaml.
pub fn metrics_text(reloader: &Reloader, app_state: &AppState) -> String {
    let metrics = &app_state.metrics;
    // Concurrent scrapes must not see each other's half-set gauges: each is a consistent snapshot.
    let _guard = metrics.lock_snapshot();
    let reloads = reloader.reload_counts();
    metrics.turns_in_flight.set(reloader.turns_in_flight() as i64);
    metrics.set_log_lines_dropped(LogQueue::stderr().dropped());
    metrics.set_usage_records_dropped(FileLog::usage().dropped());
    metrics.set_log_file_lines_dropped(FileLog::dropped_lines() + LogQueue::dropped_on_stdout());
    metrics.turns.buffered_bytes.set(app_state.buffered_bytes.get() as i64);
    metrics.generation.set(reloader.current().number as i64);
    metrics.generations.set(reloader.generations_in_memory() as i64);
    metrics.set_reloads("applied", reloads.applied);
    metrics.set_reloads("rejected", reloads.rejected);
    metrics.set_reloads("unchanged", reloads.unchanged);
    metrics.set_rejected_config(reloader.current_rejection().as_deref().map(rejected_labels).unwrap_or_default());
    for (backend, readiness) in app_state.client_pool.children.readiness() {
        metrics.set_workers(&backend, readiness.is_ready(), readiness.restarts, readiness.garbage_lines);
    }
    let text = metrics.encode();
    let gateway = &reloader.current().plan.gateway;
    match gateway.metric_aliases.aliases.is_empty() {
        true => text,
        false => metric_aliases::with_aliases(text, &gateway.metric_aliases, &health::of(gateway, app_state, 0)),
    }
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
