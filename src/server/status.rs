//! What the gateway tells about itself: its status, its metrics.

use super::{Shell, response};
use crate::diagnostics::{Diagnostic, visible};
use crate::reload::{Refused, Store};
use crate::telemetry::RefusedAt;
use poem::Response;
use poem::http::HeaderValue;

/// The version of the format, as its readers ask for it.
const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub fn status(store: &Store) -> Response {
    let mut response = response::json(200, &store.status(env!("CARGO_PKG_VERSION")));
    response.headers_mut().insert("cache-control", HeaderValue::from_static("no-store"));
    response
}

pub fn metrics(store: &Store, shell: &Shell) -> Response {
    let metrics = &shell.metrics;
    // What is set here and told there is of one moment, whoever else asks.
    let _alone = metrics.telling();
    let reloads = store.reloads();
    metrics.turns.set(store.turns() as i64);
    metrics.generation.set(store.current().number as i64);
    metrics.generations.set(store.alive() as i64);
    metrics.reloaded("applied", reloads.applied);
    metrics.reloaded("refused", reloads.refused);
    metrics.reloaded("unchanged", reloads.unchanged);
    metrics.refused(store.refused_now().as_deref().map(places).unwrap_or_default());
    response::text(METRICS_TYPE, metrics.text())
}

/// One mistake can be told in very many places; a few will do to find it.
const MOST: usize = 20;

fn places(refused: &Refused) -> Vec<RefusedAt> {
    let sources = &refused.refusal.sources;
    let place = |d: &Diagnostic| {
        let source = sources.get(d.span.file);
        let file = source.map(|s| escaped(&s.shown)).unwrap_or_default();
        let place = source.and_then(|s| visible(s, d.span)).map(|span| sources.place(span));
        let shown = |n: Option<usize>| n.map_or(String::new(), |n| n.to_string());
        let (line, column) = (shown(place.map(|p| p.line)), shown(place.map(|p| p.column)));
        RefusedAt { code: d.code.as_str(), file, line, column }
    };
    refused.refusal.diagnostics.iter().take(MOST).map(place).collect()
}

/// A label is written as it is: what would end it is escaped here.
fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
