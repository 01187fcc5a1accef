//! A turn as an HTTP response: a JSON body, or a stream. The response body polls the upstream response, so client
//! disconnects cancel the upstream request and slow readers apply backpressure.

mod frame_lines;
mod frame_log;
mod held_turn;
mod http_response;
mod report;
mod summary;

use self::frame_lines::FrameLines;
use self::held_turn::HeldTurn;
use self::http_response::{body_response, stream_response};
use self::summary::TurnAbout;
use super::admission::Admission;
use super::buffered_bytes::BufferedShare;
use super::deadlines::{Deadlines, Expired, Progress};
use super::dropped_fields::{self, add_dropped_header};
use super::lifecycle::CutWatch;
use super::limits::ConcurrencySlot;
use super::log_lines;
use super::report_once::ReportOnce;
use super::response;
use super::router::TurnContext;
use super::start_turn::{self, StartedTurn, no_backend};
use super::write_stall::ResponseWatch;
use crate::domain::{Fault, MomentKind, StreamFormat};
use crate::engine::event_cache::EventCache;
use crate::engine::pipeline::{Observer, Pipeline, PipelineOutput, ResponseMode, TurnSpec};
use crate::engine::request::RouteInput;
use crate::engine::response_head::HeadContext;
use crate::engine::sse;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::GatewayPlan;
use crate::reload::Generation;
use crate::telemetry::Metrics;
use crate::turn::Ids;
use crate::upstream::{ErrorResponse, UpstreamEvent, UpstreamSource, UpstreamStats, UpstreamTurn};
use bytes::Bytes;
use poem::Response;
use prometheus_client::metrics::histogram::Histogram;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Semaphore;

pub async fn respond(
    context: TurnContext<'_>,
    body: Vec<u8>,
    input: RouteInput<'_>,
    slot: ConcurrencySlot,
) -> Result<Response, Fault> {
    let TurnContext {
        generation,
        dialect,
        choose,
        app_state,
        keepalive,
        validation,
        id,
        key,
        response_watch,
        labels,
        admission,
    } = context;
    let StartedTurn { request, backend, model, upstream } =
        start_turn::start(generation, &dialect, app_state, body, input, (key, &admission)).await?;
    let dialect = match choose {
        Some((selected, head)) => selected.choose(&request, &head.to_tree())?.plan.clone(),
        None => dialect,
    };
    let gateway = &generation.plan.gateway;
    let event_shapes = app_state.event_shapes.of(generation, backend);
    let backend = gateway.backends.get(backend).ok_or_else(no_backend)?;
    let UpstreamTurn { mut source, rules, dropped, tool_aliases, redactor } = upstream;
    for field in &dropped {
        let (field, reason) = dropped_fields::labels(&dialect, field);
        app_state.metrics.count_dropped_field(&backend.name, field, reason);
    }
    let stream = request.stream;
    let about = TurnAbout {
        caller: labels,
        model,
        provider: rules.provider.clone(),
        requested: request.model.clone(),
        request: request.clone(),
        sent: gateway.logs.reads_sent.then(Arc::default),
    };
    let client_request = request.clone();
    log_lines::write_request(generation, &about.caller, id, &client_request, (&dialect, &backend.name));
    let is_examined = app_state.reports.examines_turn(generation.number, &backend.name);
    let examined_by = is_examined.then(|| rules.clone());
    // What is examined must be parsed.
    if !is_examined && let Some(cache) = EventCache::new(&rules, &event_shapes) {
        source.cache_events(cache);
    }
    let spec = TurnSpec {
        backend: rules,
        dialect: dialect.clone(),
        request,
        validation,
        response_mode: if stream { ResponseMode::Stream } else { ResponseMode::Body },
        tool_aliases,
        redactor,
        ids: Ids::Seeded(uuid::Uuid::new_v4().as_u128()),
        now_ms: now_ms(),
    };
    let frame_lines = || FrameLines {
        id: id.to_owned(),
        http: about.caller.exchange(),
        request: client_request.clone(),
        dialect: dialect.clone(),
        backend: backend.name.clone(),
        generation: generation.clone(),
        seq: 0,
        sent: about.sent.clone(),
    };
    let pipeline = limited_pipeline(spec, gateway, frame_lines::observer(frame_lines, generation));
    let timeouts = backend.timeouts().unwrap_or(gateway.timeouts);
    // NDJSON has no comments.
    let has_comments = stream && dialect.encoding.format == StreamFormat::Sse;
    let has_keepalives = stream && (has_comments || !dialect.frames(MomentKind::Idle).is_empty());
    let plan = dialect.clone();
    let turn = TurnStream {
        pipeline,
        source,
        is_over: false,
        deadlines: Deadlines::new(&timeouts, stream, keepalive.filter(|_| has_keepalives)),
        has_comments,
        frame_latency: app_state.metrics.turns.frame_latency(&dialect.name),
        first_frame: None,
        about,
        cut: app_state.lifecycle.watch_cut(),
        buffered: BufferedShare::of(&app_state.buffered_bytes),
        drained: app_state.drained.clone(),
        admission,
        has_client: true,
        comment: gateway.keepalive.comment.0.clone(),
        dialect,
        stream,
        backend: backend.name.clone(),
        id: id.to_owned(),
        metrics: app_state.metrics.clone(),
        reports: app_state.reports.clone(),
        examined_by,
        generation: generation.clone(),
        response_watch,
        slot: Some(slot),
    };
    let turn = HeldTurn::new(turn);
    let answered = if stream { stream_response(turn).await } else { body_response(turn, id, &client_request).await };
    let head = HeadContext { request_id: id, request: Some(&client_request), ..HeadContext::default() };
    let mut response = match answered {
        Ok(response) => response,
        Err(fault) => return Ok(response::fault(Some(&plan), &fault, head)),
    };
    if stream {
        response::add_headers(&mut response, &plan, &head);
    }
    add_dropped_header(&mut response, &gateway.headers.dropped.0, &dropped);
    Ok(response)
}

/// The pipeline of a turn, with the limits of the gateway.
fn limited_pipeline(spec: TurnSpec, gateway: &GatewayPlan, observer: Option<Box<dyn Observer>>) -> Pipeline {
    let pipeline = Pipeline::new(spec)
        .with_byte_output()
        .with_memory_limit(gateway.limits.turn_bytes.0)
        .with_argument_limit(gateway.limits.argument_bytes.0)
        .with_call_limit(gateway.limits.tool_calls.map(|calls| calls.0));
    match observer {
        Some(observer) => pipeline.with_observer(observer),
        None => pipeline,
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

/// A turn in flight. It is dropped if the client disconnects, which cancels the upstream request.
struct TurnStream {
    pipeline: Pipeline,
    source: UpstreamSource,
    is_over: bool,
    deadlines: Deadlines,
    has_comments: bool,
    comment: String,
    /// From an upstream event to the bytes of its frames.
    frame_latency: Histogram,
    /// When the first frame was ready.
    first_frame: Option<Duration>,
    about: TurnAbout,
    dialect: Arc<DialectPlan>,
    stream: bool,
    backend: String,
    id: String,
    metrics: Arc<Metrics>,
    reports: Arc<ReportOnce>,
    /// The rules of the backend, if the events of this turn are compared with what they read.
    examined_by: Option<Arc<BackendPlan>>,
    /// Keeps the plan in memory until the turn is over.
    generation: Arc<Generation>,
    response_watch: Option<ResponseWatch>,
    /// Free when the client has left.
    slot: Option<ConcurrencySlot>,
    cut: CutWatch,
    buffered: BufferedShare,
    /// Permits for turns without a client.
    drained: Arc<Semaphore>,
    admission: Arc<Admission>,
    has_client: bool,
}

/// Frames that are ready together are sent in one chunk, up to about this size.
const CHUNK_BYTES: usize = 64 * 1024;

impl TurnStream {
    /// The next output of the turn; `None`: a keepalive is due.
    fn poll_output(&mut self, cx: &mut Context<'_>) -> Poll<Option<PipelineOutput>> {
        let output = match self.source.poll_next(cx) {
            Poll::Ready(event) => {
                self.deadlines.record_received();
                if let Some(head) = self.source.take_response_head() {
                    self.pipeline.set_response_head(head);
                }
                if !self.stream && self.source.stats().is_some_and(|t| t.streamed || t.events == 0) {
                    self.pipeline.mark_aggregated();
                }
                let output = self.on_upstream_event(event);
                if self.pipeline.is_finished() {
                    self.source.finish_early();
                }
                output
            }
            Poll::Pending => {
                if let Some(fault) = self.cut.poll(cx) {
                    let output = self.pipeline.fail(fault, now_ms());
                    self.is_over = true;
                    return Poll::Ready(Some(output));
                }
                let UpstreamStats { bytes, data_bytes, .. } = self.source.stats().unwrap_or_default();
                let has_output = self.pipeline.has_output();
                let (is_finished, burst) = (self.pipeline.is_finished(), self.pipeline.burst());
                let progress = Progress { has_output, is_finished, burst, bytes, data_bytes };
                match ready!(self.deadlines.poll(cx, progress)) {
                    Expired::Keepalive => return Poll::Ready(None),
                    Expired::Idle(fault) => self.pipeline.idle_timeout(fault, now_ms()),
                    Expired::Overall(fault) => self.pipeline.fail(fault, now_ms()),
                    Expired::Burst => self.pipeline.end_burst(now_ms()),
                }
            }
        };
        self.is_over |= output.is_over;
        self.buffered.set(self.pipeline.kept_bytes());
        Poll::Ready(Some(output))
    }

    fn on_upstream_event(&mut self, event: UpstreamEvent) -> PipelineOutput {
        match event {
            UpstreamEvent::Raw(raw) => {
                self.report_unread_members(&raw);
                let output = self.pipeline.push(&raw, now_ms());
                if self.pipeline.is_open() {
                    self.source.mark_turn_open();
                }
                if let Some(what) = &output.not_understood
                    && self.reports.is_first(self.generation.number, &self.backend, what)
                {
                    tracing::warn!(
                        id = self.id,
                        backend = self.backend,
                        detail = what,
                        "upstream event matched no rule, or a field of it could not be read; logged once"
                    );
                }
                for extra in &output.malformed_extras {
                    self.report_malformed_extra(extra);
                }
                output
            }
            UpstreamEvent::Delta(delta) => self.pipeline.push_delta(delta, now_ms()),
            UpstreamEvent::Malformed(why) => {
                tracing::warn!(id = self.id, backend = self.backend, reason = why, "malformed upstream event");
                self.metrics.count_malformed_event(&self.backend);
                self.pipeline.push_malformed(&why, now_ms())
            }
            UpstreamEvent::Rejected(response) => {
                let ErrorResponse { status, retry_after, raws, text } = &response;
                let fault = self.pipeline.error_response(*status, *retry_after, text.as_deref(), raws);
                self.pipeline.fail(fault, now_ms())
            }
            UpstreamEvent::Failed(fault) => self.pipeline.fail(fault, now_ms()),
            UpstreamEvent::CallFailed { raw, fault } => {
                let fault = self.pipeline.call_fault(&raw, fault);
                self.pipeline.fail(fault, now_ms())
            }
            UpstreamEvent::Ended(end) => {
                let output = self.pipeline.finish(end, now_ms());
                PipelineOutput { is_over: true, ..output }
            }
        }
    }

    /// All frames that are ready now, as one chunk; `None` once the turn is over.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut out = Vec::new();
        let mut is_from_event = false;
        while !self.is_over && out.len() < CHUNK_BYTES {
            match self.poll_output(cx) {
                Poll::Ready(Some(_)) => {
                    is_from_event = true;
                    self.pipeline.drain(&mut out);
                }
                Poll::Ready(None) if self.pipeline.keepalive() => {
                    self.pipeline.drain(&mut out);
                    self.is_over |= self.pipeline.is_over();
                }
                Poll::Ready(None) if self.has_comments => {
                    // The keepalive sends the response headers, so later faults are sent inside the stream.
                    self.pipeline.mark_headers_sent();
                    sse::comment(&self.comment.replace("{now_ms}", &now_ms().to_string()), &mut out);
                }
                Poll::Ready(None) => {}
                Poll::Pending if out.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        if out.is_empty() {
            return Poll::Ready(None);
        }
        let latency = self.deadlines.record_sent();
        self.first_frame = self.first_frame.or_else(|| Some(self.deadlines.elapsed()));
        if is_from_event {
            self.frame_latency.observe(latency.as_secs_f64());
        }
        Poll::Ready(Some(Bytes::from(out)))
    }
}
