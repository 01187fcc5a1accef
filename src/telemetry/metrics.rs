//! Prometheus metrics. Label values are fixed words and names from the mappings: a client cannot create new ones.

use super::turn_metrics::TurnMetrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Labels by name.
type Labels<const N: usize> = [(&'static str, String); N];

pub struct Metrics {
    registry: Registry,
    /// The metrics of the OpenTelemetry conventions, which have no prefix.
    conventions: Registry,
    pub turns: TurnMetrics,
    responses: Family<Labels<3>, Counter>,
    inline_blocks: Family<Labels<1>, Counter>,
    conversions: Family<Labels<2>, Counter>,
    conversion_duration: Family<Labels<1>, Histogram, fn() -> Histogram>,
    dropped_fields: Family<Labels<3>, Counter>,
    malformed_events: Family<Labels<1>, Counter>,
    malformed_extras: Family<Labels<2>, Counter>,
    unread_members: Family<Labels<1>, Counter>,
    faults: Family<Labels<2>, Counter>,
    late_events: Counter,
    disconnects: Counter,
    client_timeouts: Family<Labels<1>, Counter>,
    limits_reached: Family<Labels<1>, Counter>,
    violations: Family<Labels<3>, Counter>,
    reloads: Family<Labels<1>, Counter>,
    rejected_config: Family<RejectedConfigLabels, Gauge>,
    workers_ready: Family<Labels<1>, Gauge>,
    worker_failures: Family<Labels<1>, Counter>,
    worker_garbage_lines: Family<Labels<1>, Gauge>,
    log_lines_dropped: Counter,
    usage_records_dropped: Counter,
    log_file_lines_dropped: Counter,
    pub turns_in_flight: Gauge,
    pub generation: Gauge,
    pub generations: Gauge,
    snapshot: Mutex<()>,
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

/// A time limit that a client exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientTimeout {
    /// It sent its body too slowly.
    Body,
    /// It stopped reading.
    Write,
}

impl ClientTimeout {
    /// Its key in `timeouts:`.
    fn name(self) -> &'static str {
        match self {
            ClientTimeout::Body => "body",
            ClientTimeout::Write => "write",
        }
    }
}

/// From 5 ms to two minutes.
pub(super) fn duration_histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 2.5, 12))
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("reframe");
        let all = &mut registry;
        let turns = TurnMetrics::register(all);
        let mut conventions = Registry::default();
        turns.register_conventions(&mut conventions);
        let metrics = Metrics {
            turns,
            conventions,
            responses: add(all, "http_responses", "HTTP responses, by endpoint, method and status"),
            turns_in_flight: add(all, "turns_in_flight", "Turns in flight"),
            faults: add(all, "turn_faults", "Turns that failed or were truncated, by backend and kind of fault"),
            disconnects: add(all, "client_disconnects", "Clients that disconnected before their turn was complete"),
            client_timeouts: add(
                all,
                "client_timeouts",
                "Clients that sent their body too slowly or stopped reading, by the timeout that they exceeded",
            ),
            limits_reached: add(all, "limits_reached", "Requests rejected by a limit on turns in flight, by limit"),
            violations: add(all, "frame_violations", "Frames and bodies that violated their schema or their order"),
            malformed_events: add(
                all,
                "upstream_malformed_events",
                "Upstream events that could not be parsed and were skipped",
            ),
            malformed_extras: add(
                all,
                "upstream_malformed_extras",
                "Upstream events with a malformed extra that was dropped, by backend and kind",
            ),
            unread_members: add(
                all,
                "upstream_unread_members",
                "Members of upstream events that no rule reads, each counted once per generation",
            ),
            inline_blocks: add(all, "inline_blocks", "Blocks of calls in the text of models, by what became of them"),
            late_events: add(all, "upstream_late_events", "Upstream events that arrived after the end of their turn"),
            conversions: add(
                all,
                "response_conversions",
                "Upstream streams aggregated into a body, and upstream bodies sent as a stream",
            ),
            conversion_duration: add_metric(
                all,
                "response_conversion_duration_seconds",
                "Duration of the turns of converted responses, in seconds",
                Family::new_with_constructor(duration_histogram as fn() -> Histogram),
            ),
            dropped_fields: add(
                all,
                "request_fields_dropped",
                "Request fields dropped because the backend does not support them",
            ),
            generation: add(all, "config_generation", "Number of the generation that serves new requests"),
            generations: add(
                all,
                "config_generations_in_memory",
                "Generations in memory: the current one, and older ones with turns in flight",
            ),
            reloads: add(all, "config_reloads", "Reloads, by outcome"),
            rejected_config: add(
                all,
                "config_rejected",
                "Diagnostics of the set on disk that was rejected; absent once the files are valid",
            ),
            workers_ready: add(all, "workers_ready", "1 if a child process of the backend is ready, else 0"),
            worker_failures: add(all, "worker_failures", "Child processes that ended or could not be started"),
            worker_garbage_lines: add(
                all,
                "worker_garbage_lines",
                "Lines of running child processes that are no messages of JSON-RPC and were skipped",
            ),
            log_lines_dropped: add(all, "log_lines_dropped", "Log lines dropped because standard error was blocked"),
            usage_records_dropped: add(
                all,
                "usage_records_dropped",
                "Records of the usage log that could not be written",
            ),
            log_file_lines_dropped: add(
                all,
                "log_file_lines_dropped",
                "Lines of `logs:` that could not be written, to a file or to standard output",
            ),
            snapshot: Mutex::default(),
            registry: Registry::default(),
        };
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "Version of the running binary", build);
        Metrics { registry, ..metrics }
    }
}

pub(super) fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    add_metric(registry, name, help, M::default())
}

pub(super) fn add_metric<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    pub fn count_response(&self, route: &str, method: &str, status: u16) {
        let labels = [("route", route.to_owned()), ("method", method.to_owned()), ("status", status.to_string())];
        self.responses.get_or_create(&labels).inc();
    }

    /// Blocks of calls in the text of models, by what became of them.
    pub fn count_inline_blocks(&self, state: &str, blocks: usize) {
        if blocks > 0 {
            self.inline_blocks.get_or_create(&[("state", state.to_owned())]).inc_by(blocks as u64);
        }
    }

    /// Sets a counter to zero, as a restart does.
    pub fn reset(&self, name: &str) {
        match name {
            "reframe_inline_blocks_total" => self.inline_blocks.clear(),
            "reframe_turn_faults_total" => self.faults.clear(),
            "reframe_http_responses_total" => self.responses.clear(),
            _ => self.turns.reset(name),
        }
    }

    pub fn count_conversion(&self, direction: Direction, outcome: &str, duration: Duration) {
        let by_direction = [("direction", direction.name().to_owned())];
        self.conversion_duration.get_or_create(&by_direction).observe(duration.as_secs_f64());
        let [direction] = by_direction;
        self.conversions.get_or_create(&[direction, ("outcome", outcome.to_owned())]).inc();
    }

    pub fn count_dropped_field(&self, backend: &str, field: &str, reason: &str) {
        let labels = [("backend", backend), ("field", field), ("reason", reason)];
        self.dropped_fields.get_or_create(&labels.map(|(name, value)| (name, value.to_owned()))).inc();
    }

    pub fn count_malformed_event(&self, backend: &str) {
        self.malformed_events.get_or_create(&[("backend", backend.to_owned())]).inc();
    }

    pub fn count_unread_member(&self, backend: &str) {
        self.unread_members.get_or_create(&[("backend", backend.to_owned())]).inc();
    }

    /// Returns how many of this kind were counted before.
    pub fn count_malformed_extra(&self, backend: &str, kind: &str) -> u64 {
        let labels = [("backend", backend.to_owned()), ("kind", kind.to_owned())];
        self.malformed_extras.get_or_create(&labels).inc()
    }

    pub fn count_fault(&self, backend: &str, kind: &str) {
        self.faults.get_or_create(&[("backend", backend.to_owned()), ("kind", kind.to_owned())]).inc();
    }

    pub fn count_violation(&self, dialect: &str, frame: &str, keyword: &str) {
        let labels = [("dialect", dialect), ("frame", frame), ("keyword", keyword)];
        self.violations.get_or_create(&labels.map(|(name, value)| (name, value.to_owned()))).inc();
    }

    pub fn count_disconnect(&self) {
        self.disconnects.inc();
    }

    pub fn count_client_timeout(&self, timeout: ClientTimeout) {
        self.client_timeouts.get_or_create(&[("timeout", timeout.name().to_owned())]).inc();
    }

    pub fn count_limit_reached(&self, limit: &str) {
        self.limits_reached.get_or_create(&[("limit", limit.to_owned())]).inc();
    }

    pub fn count_late_events(&self, events: u64) {
        self.late_events.inc_by(events);
    }

    /// Sets the counter to the total that the reloader has counted.
    pub fn set_reloads(&self, outcome: &str, total: u64) {
        self.reloads.get_or_create(&[("outcome", outcome.to_owned())]).inner().store(total, Ordering::Relaxed);
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

    /// Sets the state of the child processes of a backend.
    pub fn set_workers(&self, backend: &str, is_ready: bool, failures: u64, garbage_lines: u64) {
        let labels = [("backend", backend.to_owned())];
        self.workers_ready.get_or_create(&labels).set(i64::from(is_ready));
        self.worker_failures.get_or_create(&labels).inner().store(failures, Ordering::Relaxed);
        self.worker_garbage_lines.get_or_create(&labels).set(garbage_lines.cast_signed());
    }

    pub fn set_log_lines_dropped(&self, dropped: u64) {
        self.log_lines_dropped.inner().store(dropped, Ordering::Relaxed);
    }

    pub fn set_usage_records_dropped(&self, dropped: u64) {
        self.usage_records_dropped.inner().store(dropped, Ordering::Relaxed);
    }

    pub fn set_log_file_lines_dropped(&self, dropped: u64) {
        self.log_file_lines_dropped.inner().store(dropped, Ordering::Relaxed);
    }

    /// The OpenMetrics text format.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode_registry(&mut text, &self.registry);
        let _ = encode_registry(&mut text, &self.conventions);
        let _ = encode_eof(&mut text);
        text
    }
}
