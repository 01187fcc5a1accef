//! A turn as an HTTP response: a JSON body, or a stream. The response body polls the upstream response, so client
//! disconnects cancel the upstream request and slow readers apply backpressure.

use super::deadlines::{Deadlines, Expired, Progress};
use super::limits::ConcurrencySlot;
use super::report_once::ReportOnce;
use super::response;
use super::router::TurnContext;
use super::start_turn::{self, StartedTurn, no_backend};
use super::write_stall::ResponseWatch;
use crate::domain::{Fault, FaultKind, MalformedExtra, MomentKind, StreamFormat, Tree, TurnRequest};
use crate::engine::decode;
use crate::engine::pipeline::{Pipeline, PipelineOutput, ResponseMode, TurnSpec, Violation};
use crate::engine::request::RouteInput;
use crate::engine::response_head::HeadContext;
use crate::engine::sse;
use crate::mapping::config::backend::BackendPlan;
use crate::mapping::config::dialect::DialectPlan;
use crate::reload::Generation;
use crate::telemetry::{Direction, Metrics};
use crate::turn::Ids;
use crate::upstream::{ErrorResponse, UpstreamEvent, UpstreamSource, UpstreamStats, UpstreamTurn};
use bytes::Bytes;
use futures_util::Stream;
use poem::http::HeaderValue;
use poem::{Body, Response};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{SystemTime, UNIX_EPOCH};

pub async fn respond(
    context: TurnContext<'_>,
    body: Vec<u8>,
    input: RouteInput<'_>,
    slot: ConcurrencySlot,
) -> Result<Response, Fault> {
    let TurnContext { generation, dialect, app_state, keepalive, validation, id, response_watch } = context;
    let StartedTurn { request, backend, upstream } =
        start_turn::start(generation, &dialect, app_state, body, input).await?;
    let gateway = &generation.plan.gateway;
    let backend = gateway.backends.get(backend).ok_or_else(no_backend)?;
    let UpstreamTurn { source, rules, dropped, tool_aliases, redactor } = upstream;
    for field in &dropped {
        app_state.metrics.count_dropped_field(&backend.name, field_label(&dialect, field));
    }
    let stream = request.stream;
    let client_request = request.clone();
    let is_examined = app_state.reports.examines_turn(generation.number, &backend.name);
    let examined_by = is_examined.then(|| rules.clone());
    let pipeline = Pipeline::new(TurnSpec {
        backend: rules,
        dialect: dialect.clone(),
        request,
        validation,
        response_mode: if stream { ResponseMode::Stream } else { ResponseMode::Body },
        tool_aliases,
        redactor,
        ids: Ids::Seeded(uuid::Uuid::new_v4().as_u128()),
        now_ms: now_ms(),
    });
    let pipeline = pipeline.with_byte_output().with_memory_limit(gateway.limits.turn_bytes.0);
    let timeouts = backend.address.as_ref().map_or(gateway.timeouts, |r| r.timeouts);
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
        _slot: slot,
    };
    let answered = if stream { turn.into_stream().await } else { turn.into_body(id, &client_request).await };
    let head = HeadContext { request_id: id, request: Some(&client_request), ..HeadContext::default() };
    let mut response = match answered {
        Ok(response) => response,
        Err(fault) => return Ok(response::fault(Some(&plan), &fault, head)),
    };
    if stream {
        response::add_headers(&mut response, &plan, &head);
    }
    let name = &gateway.headers.dropped.0;
    if !dropped.is_empty()
        && let (Ok(name), Ok(value)) = (poem::http::HeaderName::try_from(name.as_str()), dropped_header(&dropped))
    {
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}

/// A metric label: fields that the dialect knows by their name, all others as `unknown`, so that clients cannot create
/// labels.
fn field_label<'f>(dialect: &DialectPlan, field: &'f str) -> &'f str {
    let name = field.split(['.', '[']).next().unwrap_or_default();
    let is_known =
        dialect.request.known_members.iter().any(|k| k == name) || matches!(name, "items" | "parts" | "tools");
    if is_known { name } else { "unknown" }
}

/// The value of `x-reframe-dropped`. The client chose the names, so control and non-ASCII characters are escaped and
/// long lists are truncated.
fn dropped_header(dropped: &[String]) -> Result<HeaderValue, poem::http::header::InvalidHeaderValue> {
    const MAX_LENGTH: usize = 1000;
    let mut text = String::new();
    for name in dropped {
        let name = percent_encoding::utf8_percent_encode(name, percent_encoding::CONTROLS).to_string();
        if text.len() + name.len() > MAX_LENGTH {
            text.push_str(", ...");
            break;
        }
        text += if text.is_empty() { "" } else { ", " };
        text += &name;
    }
    HeaderValue::from_str(&text)
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
    _slot: ConcurrencySlot,
}

/// Frames that are ready together are sent in one chunk, up to about this size.
const CHUNK_BYTES: usize = 64 * 1024;

impl TurnStream {
    /// The next output of the turn; `None`: a keepalive is due.
    fn poll_output(&mut self, cx: &mut Context<'_>) -> Poll<Option<PipelineOutput>> {
        let output = match self.source.poll_next(cx) {
            Poll::Ready(event) => {
                self.deadlines.record_received();
                if !self.stream && self.source.stats().is_some_and(|t| t.streamed || t.events == 0) {
                    self.pipeline.mark_aggregated();
                }
                self.on_upstream_event(event)
            }
            Poll::Pending => {
                let UpstreamStats { bytes, data_bytes, .. } = self.source.stats().unwrap_or_default();
                let has_output = self.pipeline.has_output();
                let progress = Progress { has_output, is_finished: self.pipeline.is_finished(), bytes, data_bytes };
                match ready!(self.deadlines.poll(cx, progress)) {
                    Expired::Keepalive => return Poll::Ready(None),
                    Expired::Idle(fault) => self.pipeline.idle_timeout(fault, now_ms()),
                    Expired::Overall(fault) => self.pipeline.fail(fault, now_ms()),
                }
            }
        };
        self.is_over |= output.is_over;
        Poll::Ready(Some(output))
    }

    fn on_upstream_event(&mut self, event: UpstreamEvent) -> PipelineOutput {
        match event {
            UpstreamEvent::Raw(raw) => {
                self.report_unread_members(&raw);
                let output = self.pipeline.push(&raw, now_ms());
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
            UpstreamEvent::Malformed(why) => {
                tracing::warn!(id = self.id, backend = self.backend, reason = why, "malformed upstream event");
                self.metrics.count_malformed_event(&self.backend);
                self.pipeline.push_malformed(&why, now_ms())
            }
            UpstreamEvent::Rejected(response) => {
                let fault = self.upstream_fault(&response);
                self.pipeline.fail(fault, now_ms())
            }
            UpstreamEvent::Failed(fault) => self.pipeline.fail(fault, now_ms()),
            UpstreamEvent::Ended(end) => {
                let output = self.pipeline.finish(end, now_ms());
                PipelineOutput { is_over: true, ..output }
            }
        }
    }

    /// Members of events that no rule reads, each counted and logged once per path and generation.
    fn report_unread_members(&self, raw: &Tree) {
        let Some(rules) = &self.examined_by else { return };
        for path in decode::unread_members(rules, raw) {
            let detail = format!("`{path}` is not read");
            if self.reports.is_first(self.generation.number, &self.backend, &detail) {
                self.metrics.count_unread_member(&self.backend);
                let (id, backend) = (&self.id, &self.backend);
                tracing::info!(id, backend, path, "a member of upstream events that no rule reads; logged once");
            }
        }
    }

    /// Counted each time, logged once per backend and kind: a backend that sends one sends it in every event.
    fn report_malformed_extra(&self, extra: &MalformedExtra) {
        let kind = extra.kind.name();
        if self.metrics.count_malformed_extra(&self.backend, kind) == 0 {
            let (id, backend, detail) = (&self.id, &self.backend, &extra.detail);
            tracing::warn!(id, backend, kind, detail, "malformed extra dropped; more of this kind are only counted");
        }
    }

    fn upstream_fault(&self, response: &ErrorResponse) -> Fault {
        let status = response.status;
        let why = response.text.as_ref().map_or(String::new(), |t| format!(": {t}"));
        let message = match status {
            300..=399 => format!("the backend responded with {status}, a redirect, which is not followed"),
            _ => format!("the backend responded with {status}{why}"),
        };
        let retry_after = response.retry_after;
        let from_status = Fault { status: Some(status), retry_after, ..Fault::new(FaultKind::Backend, message) };
        self.pipeline.upstream_fault(&response.raws, from_status)
    }

    async fn into_body(mut self, id: &str, request: &TurnRequest) -> Result<Response, Fault> {
        while !self.is_over {
            poll_fn(|cx| self.poll_output(cx)).await;
        }
        let body = self.pipeline.body()?;
        let mut response = response::json(200, body.to_json());
        response.headers_mut().insert("cache-control", HeaderValue::from_static("no-cache"));
        let turn = Some(self.pipeline.state());
        let head = HeadContext { request_id: id, request: Some(request), turn, fault: None };
        response::add_headers(&mut response, &self.dialect, &head);
        Ok(response)
    }

    /// Delays the response headers until the first event of the turn, so that a fault before it is a plain HTTP error;
    /// or until the first keepalive is due.
    async fn into_stream(mut self) -> Result<Response, Fault> {
        let mut opening = Vec::new();
        self.pipeline.begin();
        self.pipeline.drain(&mut opening);
        let first = match self.pipeline.is_open() {
            // Some dialects open a stream without a frame.
            true => Some(Bytes::from(opening)).filter(|o| !o.is_empty()),
            false => poll_fn(|cx| self.poll_bytes(cx)).await,
        };
        if let Some(fault) = self.pipeline.fault()
            && !self.pipeline.is_open()
        {
            return Err(fault.clone());
        }
        let content_type = self.dialect.encoding.content_type.clone();
        let body = Body::from_bytes_stream(TurnBody { first, turn: self });
        Ok(Response::builder()
            .content_type(content_type)
            .header("cache-control", "no-cache, no-transform")
            .header("x-accel-buffering", "no")
            .body(body))
    }

    /// All frames that are ready now, as one chunk; `None` once the turn is over.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut out = Vec::new();
        while !self.is_over && out.len() < CHUNK_BYTES {
            match self.poll_output(cx) {
                Poll::Ready(Some(_)) => self.pipeline.drain(&mut out),
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
        self.deadlines.record_sent();
        Poll::Ready(Some(Bytes::from(out)))
    }

    /// The conversion of this turn, if the upstream response does not have the form that the client requested.
    fn conversion(&self) -> Option<Direction> {
        let stats = self.source.stats()?;
        match (self.stream, stats.streamed) {
            (false, true) => Some(Direction::StreamToJson),
            // An empty response counts as an empty stream, to which the same policies apply.
            (false, false) if self.is_empty() => Some(Direction::StreamToJson),
            (true, false) if stats.bytes > 0 && !self.is_empty() => Some(Direction::JsonToStream),
            (true, _) | (false, false) => None,
        }
    }

    /// The backend ended its response without an event, and no other fault occurred.
    fn is_empty(&self) -> bool {
        let has_no_events = self.source.stats().is_some_and(|t| t.events == 0);
        self.is_over && has_no_events && self.pipeline.fault().is_none_or(|f| f.kind == FaultKind::Empty)
    }

    fn outcome(&self) -> &'static str {
        match self.pipeline.fault() {
            None if !self.is_over => "disconnected",
            None if self.pipeline.truncated_by().is_some() => "partial",
            None if self.is_empty() => "empty",
            None => "completed",
            Some(fault) if fault.kind == FaultKind::Empty => "empty",
            Some(fault) if fault.kind == FaultKind::Timeout => "timeout",
            Some(fault) if fault.is_partial() && self.pipeline.is_open() => "partial",
            Some(_) => "failed",
        }
    }
}

impl Drop for TurnStream {
    /// Logs and counts the turn, however it ended.
    fn drop(&mut self) {
        let duration = self.deadlines.elapsed();
        let event = if self.pipeline.fault().is_some() { "a turn failed" } else { "a turn was truncated" };
        if let Some(fault) = self.pipeline.fault().or(self.pipeline.truncated_by()) {
            self.metrics.count_fault(&self.backend, fault.kind.name());
            let (kind, status) = (fault.kind.name(), fault.status());
            tracing::warn!(
                id = self.id,
                backend = self.backend,
                kind,
                status,
                reason = fault.full_message(),
                "{event}"
            );
        }
        if !self.is_over && self.pipeline.fault().is_none() {
            let (id, backend, stream) = (&self.id, &self.backend, self.stream);
            let duration_ms = duration.as_millis() as u64;
            // A client that stopped reading is counted where that was noticed.
            if self.response_watch.as_ref().is_some_and(|watch| watch.has_expired()) {
                tracing::warn!(id, backend, stream, duration_ms, "client stopped reading");
            } else {
                self.metrics.count_disconnect();
                tracing::info!(id, backend, stream, duration_ms, "client disconnected");
            }
        }
        for violation in self.pipeline.violations() {
            let (pointer, keyword) = (violation.pointer(), violation.keyword());
            let Violation { frame, reported, .. } = violation;
            let location = violation.template().map_or(String::new(), |span| self.generation.plan.sources.show(span));
            self.metrics.count_violation(&self.dialect.name, frame, keyword);
            let generation = self.generation.number;
            tracing::error!(id = self.id, frame, pointer, keyword, location, reported, generation, "frame violation");
        }
        self.metrics.count_late_events(self.pipeline.late_events());
        if let (Some(direction), Some(stats)) = (self.conversion(), self.source.stats()) {
            let outcome = self.outcome();
            self.metrics.count_conversion(direction, outcome, duration);
            let (id, backend, direction) = (&self.id, &self.backend, direction.name());
            let (events, skipped, bytes) = (stats.events, stats.skipped, stats.bytes);
            let duration_ms = duration.as_millis() as u64;
            tracing::info!(id, backend, direction, outcome, events, skipped, bytes, duration_ms, "response converted");
        }
    }
}

/// The response body. It polls the upstream response itself, so there is no task and no channel per frame.
struct TurnBody {
    first: Option<Bytes>,
    turn: TurnStream,
}

impl Stream for TurnBody {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        self.turn.poll_bytes(cx).map(|bytes| bytes.map(Ok))
    }
}
