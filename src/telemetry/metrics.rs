//! What is counted. Labels are words of ours and names from the mappings: a client cannot make new ones.

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
    answers: Family<Answered, Counter>,
    bridges: Family<Bridged, Counter>,
    bridge_duration: Family<Towards, Histogram>,
    dropped: Family<Dropped, Counter>,
    malformed: Family<OfBackend, Counter>,
    faults: Family<Faulty, Counter>,
    late: Counter,
    gone: Counter,
    breaches: Family<Broken, Counter>,
    reloads: Family<Reloaded, Counter>,
    refused: Family<RefusedAt, Gauge>,
    pub turns: Gauge,
    pub generation: Gauge,
    pub generations: Gauge,
    telling: Mutex<()>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reloaded {
    outcome: &'static str,
}

/// Why the files are not what serves: an error, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RefusedAt {
    pub code: &'static str,
    pub file: String,
    /// Nothing where it is the file as a whole, or the set.
    pub line: String,
    pub column: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Bridged {
    direction: Direction,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Towards {
    direction: Direction,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Dropped {
    backend: String,
    field: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfBackend {
    backend: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Faulty {
    backend: String,
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Broken {
    dialect: String,
    frame: String,
    keyword: String,
}

/// A client asked for one thing and the backend gave the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    StreamToJson,
    JsonToStream,
}

impl Direction {
    pub fn word(self) -> &'static str {
        match self {
            Direction::StreamToJson => "stream_to_json",
            Direction::JsonToStream => "json_to_stream",
        }
    }
}

impl EncodeLabelValue for Direction {
    fn encode(&self, encoder: &mut prometheus_client::encoding::LabelValueEncoder) -> Result<(), std::fmt::Error> {
        self.word().encode(encoder)
    }
}

/// From 5 ms to two minutes.
fn durations() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 2.5, 12))
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let answers = Family::default();
        registry.register("answers", "Answers, by route and status", answers.clone());
        let bridges = Family::default();
        registry.register("bridges", "Streams that became a body, bodies that became a stream", bridges.clone());
        let bridge_duration = Family::new_with_constructor(durations as fn() -> Histogram);
        registry.register("bridge_duration_seconds", "How long a bridged answer took", bridge_duration.clone());
        let dropped = Family::default();
        registry.register("dropped_fields", "Fields of requests that a backend does not take", dropped.clone());
        let malformed = Family::default();
        registry.register("malformed_events", "Pieces of a backend's answer that cannot be read", malformed.clone());
        let faults = Family::default();
        registry.register("faults", "Turns that failed, by what went wrong", faults.clone());
        let late = Counter::default();
        registry.register("late_events", "Events that came after their turn was over", late.clone());
        let gone = Counter::default();
        registry.register("clients_gone", "Clients that left before their turn was over", gone.clone());
        let breaches = Family::default();
        registry.register("breaches", "Frames and bodies that broke their schema or their order", breaches.clone());
        let turns = Gauge::default();
        registry.register("turns", "Turns under way", turns.clone());
        let reloads = Family::default();
        registry.register("reloads", "Reloads, by what came of them", reloads.clone());
        let refused = Family::default();
        registry.register(
            "reload_refused",
            "Why the files are not what serves; nothing once they are mended",
            refused.clone(),
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
            answers,
            bridges,
            bridge_duration,
            dropped,
            malformed,
            faults,
            late,
            gone,
            breaches,
            reloads,
            refused,
            turns,
            generation,
            generations,
            telling: Mutex::default(),
        }
    }
}

impl Metrics {
    pub fn answered(&self, route: &str, status: u16) {
        self.answers.get_or_create(&Answered { route: route.to_owned(), status }).inc();
    }

    pub fn bridged(&self, direction: Direction, outcome: &'static str, took: Duration) {
        self.bridges.get_or_create(&Bridged { direction, outcome }).inc();
        self.bridge_duration.get_or_create(&Towards { direction }).observe(took.as_secs_f64());
    }

    pub fn dropped(&self, backend: &str, field: &str) {
        let labels = Dropped { backend: backend.to_owned(), field: field.to_owned() };
        self.dropped.get_or_create(&labels).inc();
    }

    pub fn malformed(&self, backend: &str) {
        self.malformed.get_or_create(&OfBackend { backend: backend.to_owned() }).inc();
    }

    pub fn failed(&self, backend: &str, kind: &'static str) {
        self.faults.get_or_create(&Faulty { backend: backend.to_owned(), kind }).inc();
    }

    pub fn breached(&self, dialect: &str, frame: &str, keyword: &str) {
        let labels = Broken { dialect: dialect.to_owned(), frame: frame.to_owned(), keyword: keyword.to_owned() };
        self.breaches.get_or_create(&labels).inc();
    }

    pub fn gone(&self) {
        self.gone.inc();
    }

    pub fn late(&self, events: u64) {
        self.late.inc_by(events);
    }

    /// Counted by whoever reloads; here it is only told.
    pub fn reloaded(&self, outcome: &'static str, times: u64) {
        self.reloads.get_or_create(&Reloaded { outcome }).inner().store(times, Ordering::Relaxed);
    }

    /// Held from setting what is only told when asked for to telling it.
    pub fn telling(&self) -> MutexGuard<'_, ()> {
        self.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// In place of what was told before.
    pub fn refused(&self, places: Vec<RefusedAt>) {
        self.refused.clear();
        for place in places {
            self.refused.get_or_create(&place).set(1);
        }
    }

    /// As Prometheus reads it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a text does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
