//! The metrics of turns: counts and histograms by route, dialect, backend and client, and those of the OpenTelemetry
//! conventions for generative AI. Labels are looked up when a turn begins and ends, never for a frame.

use super::metrics::{add, add_metric, duration_histogram};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::time::Duration;

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

pub struct TurnMetrics {
    turns: Family<TurnLabels, Counter>,
    turn_duration: Histograms<RouteLabels>,
    first_frame: Histograms<BackendLabels>,
    frame_latency: Histograms<DialectLabels>,
    frames: Family<FrameLabels, Counter>,
    request_duration: Histograms<RouteLabels>,
    pub buffered_bytes: Gauge,
    token_usage: Histograms<TokenLabels>,
    operation_duration: Histograms<OperationLabels>,
    time_to_first_token: Histograms<OperationLabels>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct TurnLabels {
    pub route: String,
    pub dialect: String,
    pub backend: String,
    pub status: u16,
    pub client: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BackendLabels {
    backend: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DialectLabels {
    dialect: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FrameLabels {
    dialect: String,
    frame: String,
}

/// An operation of a backend, as the OpenTelemetry conventions describe it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OperationLabels {
    pub gen_ai_operation_name: &'static str,
    pub gen_ai_provider_name: String,
    /// As gateway.yaml names it: clients cannot create labels.
    pub gen_ai_request_model: String,
    /// Empty if the operation succeeded.
    pub error_type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    gen_ai_operation_name: &'static str,
    gen_ai_provider_name: String,
    gen_ai_request_model: String,
    gen_ai_token_type: &'static str,
}

/// A turn that has ended.
pub struct EndedTurn<'t> {
    pub labels: TurnLabels,
    pub operation: OperationLabels,
    pub duration: Duration,
    pub first_frame: Option<Duration>,
    /// Tokens that the backend reported.
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// The names of its frames, and how many of each were sent.
    pub frames: &'t mut dyn Iterator<Item = (&'t str, u64)>,
}

/// From 10 µs to 10 s.
fn latency_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.000_01, 4.0, 11))
}

/// The buckets of the conventions, for durations.
fn operation_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.01, 2.0, 14))
}

/// The buckets of the conventions, for tokens.
fn token_histogram() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 4.0, 14))
}

impl TurnMetrics {
    /// `own` has the prefix of the gateway, `conventions` none.
    pub(super) fn register(own: &mut Registry) -> TurnMetrics {
        let durations = || Family::new_with_constructor(duration_histogram as fn() -> Histogram);
        let latencies = || Family::new_with_constructor(latency_histogram as fn() -> Histogram);
        let first = Family::new_with_constructor(duration_histogram as fn() -> Histogram);
        TurnMetrics {
            turns: add(own, "turns", "Turns that have ended, by route, dialect, backend, status and client"),
            turn_duration: add_metric(own, "turn_duration_seconds", "Duration of turns, in seconds", durations()),
            first_frame: add_metric(
                own,
                "turn_first_frame_seconds",
                "Time from the request to the first frame of its stream, in seconds",
                first,
            ),
            frame_latency: add_metric(
                own,
                "frame_latency_seconds",
                "Time from an upstream event to the bytes of its frames, in seconds",
                latencies(),
            ),
            frames: add(own, "frames", "Frames of turns that have ended, by dialect and name"),
            request_duration: add_metric(
                own,
                "http_request_duration_seconds",
                "Time from a request to the headers of its response, in seconds",
                durations(),
            ),
            buffered_bytes: add(own, "buffered_bytes", "Memory of what turns in flight keep of upstream responses"),
            token_usage: Family::new_with_constructor(token_histogram as fn() -> Histogram),
            operation_duration: Family::new_with_constructor(operation_histogram as fn() -> Histogram),
            time_to_first_token: Family::new_with_constructor(operation_histogram as fn() -> Histogram),
        }
    }

    /// Registers the metrics of the conventions, with names that have no prefix.
    pub(super) fn register_conventions(&self, registry: &mut Registry) {
        let tokens = "Tokens of an operation, as the backend reported them";
        registry.register("gen_ai_client_token_usage", tokens, self.token_usage.clone());
        let duration = "Duration of an operation, in seconds";
        registry.register("gen_ai_client_operation_duration_seconds", duration, self.operation_duration.clone());
        let first = "Time to the first output of a streamed operation, in seconds";
        registry.register("gen_ai_server_time_to_first_token_seconds", first, self.time_to_first_token.clone());
    }

    /// Sets a counter of turns to zero.
    pub(super) fn reset(&self, name: &str) {
        match name {
            "reframe_turns_total" => self.turns.clear(),
            "reframe_frames_total" => self.frames.clear(),
            _ => {}
        }
    }

    pub fn observe_request(&self, route: &str, duration: Duration) {
        let labels = RouteLabels { route: route.to_owned() };
        self.request_duration.get_or_create(&labels).observe(duration.as_secs_f64());
    }

    /// The histogram of a dialect, to be held for a turn.
    pub fn frame_latency(&self, dialect: &str) -> Histogram {
        self.frame_latency.get_or_create_owned(&DialectLabels { dialect: dialect.to_owned() })
    }

    /// The texts of the labels are moved, not copied: every turn has several labels with the same ones.
    pub fn observe_turn(&self, turn: EndedTurn) {
        let EndedTurn { mut labels, operation, duration, first_frame, input_tokens, output_tokens, frames } = turn;
        let seconds = duration.as_secs_f64();
        let route = RouteLabels { route: labels.route };
        self.turn_duration.get_or_create(&route).observe(seconds);
        labels.route = route.route;
        self.operation_duration.get_or_create(&operation).observe(seconds);
        if let Some(first) = first_frame.map(|first| first.as_secs_f64()) {
            let backend = BackendLabels { backend: labels.backend };
            self.first_frame.get_or_create(&backend).observe(first);
            labels.backend = backend.backend;
            self.time_to_first_token.get_or_create(&operation).observe(first);
        }
        let OperationLabels { gen_ai_operation_name, gen_ai_provider_name, gen_ai_request_model, .. } = operation;
        let mut tokens_of =
            TokenLabels { gen_ai_operation_name, gen_ai_provider_name, gen_ai_request_model, gen_ai_token_type: "" };
        for (gen_ai_token_type, tokens) in [("input", input_tokens), ("output", output_tokens)] {
            let Some(tokens) = tokens else { continue };
            tokens_of.gen_ai_token_type = gen_ai_token_type;
            self.token_usage.get_or_create(&tokens_of).observe(tokens as f64);
        }
        self.turns.get_or_create(&labels).inc();
        let mut frame_labels = FrameLabels { dialect: labels.dialect, frame: String::new() };
        for (frame, count) in frames {
            frame_labels.frame.clear();
            frame_labels.frame.push_str(frame);
            self.frames.get_or_create(&frame_labels).inc_by(count);
        }
    }
}
