//! Prometheus metrics. Label values are fixed words and names from the mappings: a client cannot create new ones.

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
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
        let mut registry = Registry::default();
        let responses = Family::default();
        registry.register("answers", "Answers, by route and status", responses.clone());
        let conversions = Family::default();
        registry.register("bridges", "Streams that became a body, bodies that became a stream", conversions.clone());
        let conversion_duration = Family::new_with_constructor(duration_histogram as fn() -> Histogram);
        registry.register("bridge_duration_seconds", "How long a bridged answer took", conversion_duration.clone());
        let dropped_fields = Family::default();
        registry.register("dropped_fields", "Fields of requests that a backend does not take", dropped_fields.clone());
        let malformed_events = Family::default();
        registry.register(
            "malformed_events",
            "Pieces of a backend's answer that cannot be read",
            malformed_events.clone(),
        );
        let faults = Family::default();
        registry.register("faults", "Turns that failed, by what went wrong", faults.clone());
        let late_events = Counter::default();
        registry.register("late_events", "Events that came after their turn was over", late_events.clone());
        let disconnects = Counter::default();
        registry.register("clients_gone", "Clients that left before their turn was over", disconnects.clone());
        let violations = Family::default();
        registry.register("breaches", "Frames and bodies that broke their schema or their order", violations.clone());
        let turns_in_flight = Gauge::default();
        registry.register("turns", "Turns under way", turns_in_flight.clone());
        let reloads = Family::default();
        registry.register("reloads", "Reloads, by what came of them", reloads.clone());
        let rejected_config = Family::default();
        registry.register(
            "reload_refused",
            "Why the files are not what serves; nothing once they are mended",
            rejected_config.clone(),
        );
        let generation = Gauge::default();
        registry.register("generation", "The number of the generation that serves", generation.clone());
        let generations = Gauge::default();
        registry.register(
            "generations",
            "Generations in memory: the one that serves, and those with turns",
            generations.clone(),
        );
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
