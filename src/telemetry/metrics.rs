//! Prometheus metrics. Label values are fixed words and names from the mappings: a client cannot create new ones.

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub struct Metrics {
    registry: Registry,
    responses: Family<ResponseLabels, Counter>,
    conversions: Family<ConversionLabels, Counter>,
    conversion_duration: Family<DirectionLabels, Histogram>,
    dropped_fields: Family<DroppedFieldLabels, Counter>,
    malformed_events: Family<BackendLabels, Counter>,
    faults: Family<FaultLabels, Counter>,
    late_events: Counter,
    disconnects: Counter,
    violations: Family<ViolationLabels, Counter>,
    reloads: Family<ReloadLabels, Counter>,
    rejected_config: Family<RejectedConfigLabels, Gauge>,
    pub turns_in_flight: Gauge,
    pub generation: Gauge,
    pub generations: Gauge,
    snapshot: Mutex<()>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabels {
    outcome: &'static str,
}

/// A diagnostic of the rejected configuration, and its location.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RejectedConfigLabels {
    pub code: &'static str,
    pub file: String,
    /// Empty if the diagnostic is about the whole file or set.
    pub line: String,
    pub column: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResponseLabels {
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConversionLabels {
    direction: Direction,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectionLabels {
    direction: Direction,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DroppedFieldLabels {
    backend: String,
    field: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BackendLabels {
    backend: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FaultLabels {
    backend: String,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ViolationLabels {
    dialect: String,
    frame: String,
    keyword: String,
}

/// The conversion between the upstream response and the form that the client requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    StreamToJson,
    JsonToStream,
}

impl Direction {
    pub fn name(self) -> &'static str {
        match self {
            Direction::StreamToJson => "stream_to_json",
            Direction::JsonToStream => "json_to_stream",
        }
    }
}

impl EncodeLabelValue for Direction {
    fn encode(&self, encoder: &mut prometheus_client::encoding::LabelValueEncoder) -> Result<(), std::fmt::Error> {
        self.name().encode(encoder)
    }
}

/// From 5 ms to two minutes.
fn duration_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 2.5, 12))
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("reframe");
        let responses = Family::default();
        registry.register("http_responses", "HTTP responses of routes, by route and status", responses.clone());
        let turns_in_flight = Gauge::default();
        registry.register("turns_in_flight", "Turns in flight", turns_in_flight.clone());
        let faults = Family::default();
        let help = "Turns that failed or were truncated, by backend and kind of fault";
        registry.register("turn_faults", help, faults.clone());
        let disconnects = Counter::default();
        let help = "Clients that disconnected before their turn was complete";
        registry.register("client_disconnects", help, disconnects.clone());
        let violations = Family::default();
        let help = "Frames and bodies that violated their schema or their order";
        registry.register("frame_violations", help, violations.clone());
        let malformed_events = Family::default();
        let help = "Upstream events that could not be parsed and were skipped";
        registry.register("upstream_malformed_events", help, malformed_events.clone());
        let late_events = Counter::default();
        let help = "Upstream events that arrived after the end of their turn";
        registry.register("upstream_late_events", help, late_events.clone());
        let conversions = Family::default();
        let help = "Upstream streams aggregated into a body, and upstream bodies sent as a stream";
        registry.register("response_conversions", help, conversions.clone());
        let conversion_duration = Family::new_with_constructor(duration_histogram as fn() -> Histogram);
        let help = "Duration of the turns of converted responses, in seconds";
        registry.register("response_conversion_duration_seconds", help, conversion_duration.clone());
        let dropped_fields = Family::default();
        let help = "Request fields dropped because the backend does not support them";
        registry.register("request_fields_dropped", help, dropped_fields.clone());
        let generation = Gauge::default();
        let help = "Number of the generation that serves new requests";
        registry.register("config_generation", help, generation.clone());
        let generations = Gauge::default();
        let help = "Generations in memory: the current one, and older ones with turns in flight";
        registry.register("config_generations_in_memory", help, generations.clone());
        let reloads = Family::default();
        registry.register("config_reloads", "Reloads, by outcome", reloads.clone());
        let rejected_config = Family::default();
        let help = "Diagnostics of the set on disk that was rejected; absent once the files are valid";
        registry.register("config_rejected", help, rejected_config.clone());
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "Version of the running binary", build);
        Metrics {
            registry,
            responses,
            conversions,
            conversion_duration,
            dropped_fields,
            malformed_events,
            faults,
            late_events,
            disconnects,
            violations,
            reloads,
            rejected_config,
            turns_in_flight,
            generation,
            generations,
            snapshot: Mutex::default(),
        }
    }
}

impl Metrics {
    pub fn count_response(&self, route: &str, status: u16) {
        self.responses.get_or_create(&ResponseLabels { route: route.to_owned(), status }).inc();
    }

    pub fn count_conversion(&self, direction: Direction, outcome: &'static str, duration: Duration) {
        self.conversions.get_or_create(&ConversionLabels { direction, outcome }).inc();
        self.conversion_duration.get_or_create(&DirectionLabels { direction }).observe(duration.as_secs_f64());
    }

    pub fn count_dropped_field(&self, backend: &str, field: &str) {
        let labels = DroppedFieldLabels { backend: backend.to_owned(), field: field.to_owned() };
        self.dropped_fields.get_or_create(&labels).inc();
    }

    pub fn count_malformed_event(&self, backend: &str) {
        self.malformed_events.get_or_create(&BackendLabels { backend: backend.to_owned() }).inc();
    }

    pub fn count_fault(&self, backend: &str, kind: &'static str) {
        self.faults.get_or_create(&FaultLabels { backend: backend.to_owned(), kind }).inc();
    }

    pub fn count_violation(&self, dialect: &str, frame: &str, keyword: &str) {
        let labels =
            ViolationLabels { dialect: dialect.to_owned(), frame: frame.to_owned(), keyword: keyword.to_owned() };
        self.violations.get_or_create(&labels).inc();
    }

    pub fn count_disconnect(&self) {
        self.disconnects.inc();
    }

    pub fn count_late_events(&self, events: u64) {
        self.late_events.inc_by(events);
    }

    /// Sets the counter to the total that the reloader has counted.
    pub fn set_reloads(&self, outcome: &'static str, total: u64) {
        self.reloads.get_or_create(&ReloadLabels { outcome }).inner().store(total, Ordering::Relaxed);
    }

    /// Held while the gauges of a scrape are set and encoded, so that the scrape is a consistent snapshot.
    pub fn lock_snapshot(&self) -> MutexGuard<'_, ()> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the labels of the last scrape.
    pub fn set_rejected_config(&self, diagnostics: Vec<RejectedConfigLabels>) {
        self.rejected_config.clear();
        for labels in diagnostics {
            self.rejected_config.get_or_create(&labels).set(1);
        }
    }

    /// The OpenMetrics text format.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
