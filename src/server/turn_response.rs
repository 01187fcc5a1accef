//! A turn as an HTTP answer: a JSON body, or a stream whose source is polled inside the response body.

use super::deadlines::{Clock, Due, Standing};
use super::response;
use super::router::{Call, Slot};
use crate::domain::{Fault, FaultKind, TurnRequest, WireKind};
use crate::engine::pipeline::{Answer, Breached, Order, Pipeline, Step};
use crate::engine::request;
use crate::engine::sse;
use crate::mapping::config::dialect::DialectPlan;
use crate::mapping::config::gateway::Backend;
use crate::reload::Generation;
use crate::telemetry::{Direction, Metrics};
use crate::turn::Ids;
use crate::upstream;
use crate::upstream::{Arrived, Asked, Refusal, Source};
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

pub async fn answer(call: Call<'_>, body: &[u8], slot: Slot) -> Result<Response, Fault> {
    let Call { generation, dialect, shell, keepalive, validation, id } = call;
    let request = Arc::new(request::read(&dialect.request, body)?);
    let gateway = &generation.plan.gateway;
    let backend = backend_for(generation, &dialect, &request)?;
    let asked = upstream::ask(&shell.dialler, &generation.plan, backend, &request, &dialect.request)?;
    let Asked { source, rules, dropped, masks, hidden } = asked;
    for field in &dropped {
        shell.metrics.dropped(&backend.name, known_field(&dialect, field));
    }
    let stream = request.stream;
    let pipeline = Pipeline::new(Order {
        backend: rules,
        dialect: dialect.clone(),
        request,
        validation,
        answer: if stream { Answer::Stream } else { Answer::Body },
        masks,
        hidden,
        ids: Ids::Seeded(uuid::Uuid::new_v4().as_u128()),
        now_ms: now_ms(),
    });
    let pipeline = pipeline.writing();
    let timeouts = backend.reach.as_ref().map_or(gateway.timeouts, |r| r.timeouts);
    // A line of NDJSON cannot be a comment.
    let comments = stream && dialect.wire.kind == WireKind::Sse;
    let live = Live {
        pipeline,
        source,
        over: false,
        clock: Clock::new(&timeouts, stream, keepalive.filter(|_| comments)),
        comment: gateway.keepalive.comment.clone(),
        dialect,
        stream,
        backend: backend.name.clone(),
        id: id.to_owned(),
        metrics: shell.metrics.clone(),
        generation: generation.clone(),
        _slot: slot,
    };
    let mut response = if stream { live.into_stream().await? } else { live.into_body().await? };
    if let (false, Some(name)) = (dropped.is_empty(), &gateway.headers.dropped)
        && let (Ok(name), Ok(value)) = (poem::http::HeaderName::try_from(name.as_str()), shown(&dropped))
    {
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}

fn backend_for<'g>(
    generation: &'g Generation,
    dialect: &DialectPlan,
    request: &TurnRequest,
) -> Result<&'g Backend, Fault> {
    let gateway = &generation.plan.gateway;
    let model = gateway.model(&request.model).ok_or_else(|| {
        let param = dialect.request.param_of("model").unwrap_or_else(|| "model".to_owned());
        super::static_routes::unknown_model(&request.model).param(param)
    })?;
    gateway.backends.get(model.backend).ok_or_else(|| Fault::new(FaultKind::Internal, "the model has no backend"))
}

/// A label for a metric: what the dialect knows by name; a client's own inventions are all the same.
fn known_field<'f>(dialect: &DialectPlan, field: &'f str) -> &'f str {
    let name = field.split(['.', '[']).next().unwrap_or_default();
    let known = dialect.request.known.iter().any(|k| k == name) || matches!(name, "items" | "parts" | "tools");
    if known { name } else { "unknown" }
}

/// Names that a client chose: whatever is no plain letter is escaped, and long lists are cut.
fn shown(dropped: &[String]) -> Result<HeaderValue, poem::http::header::InvalidHeaderValue> {
    const MOST: usize = 1000;
    let mut text = String::new();
    for name in dropped {
        let name = percent_encoding::utf8_percent_encode(name, percent_encoding::CONTROLS).to_string();
        if text.len() + name.len() > MOST {
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

/// A turn under way. Dropping it, because the client is gone, leaves the backend.
struct Live {
    pipeline: Pipeline,
    source: Source,
    over: bool,
    clock: Clock,
    comment: String,
    dialect: Arc<DialectPlan>,
    stream: bool,
    backend: String,
    id: String,
    metrics: Arc<Metrics>,
    /// Kept so that nothing of the plan goes before the turn does.
    generation: Arc<Generation>,
    _slot: Slot,
}

/// What is ready together leaves together, up to here.
const WRITE_BYTES: usize = 64 * 1024;

impl Live {
    /// The next step of the turn; `None`: the client must have a sign of life.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<Option<Step>> {
        let step = match self.source.poll_next(cx) {
            Poll::Ready(arrived) => {
                self.clock.heard();
                if !self.stream && self.source.tally().is_some_and(|t| t.streamed || t.events == 0) {
                    self.pipeline.bridged();
                }
                self.take(arrived)
            }
            Poll::Pending => {
                let bytes = self.source.tally().map_or(0, |t| t.bytes);
                match ready!(self.clock.poll(
                    cx,
                    Standing { open: self.pipeline.has_spoken(), finished: self.pipeline.is_finished(), bytes }
                )) {
                    Due::Keepalive => return Poll::Ready(None),
                    Due::Silent(fault) => self.pipeline.silent(fault, now_ms()),
                    Due::Late(fault) => self.pipeline.fail(fault, now_ms()),
                }
            }
        };
        self.over |= step.over;
        Poll::Ready(Some(step))
    }

    fn take(&mut self, arrived: Arrived) -> Step {
        match arrived {
            Arrived::Raw(raw) => self.pipeline.push(&raw, now_ms()),
            Arrived::Skipped(why) => {
                tracing::warn!(
                    id = self.id,
                    backend = self.backend,
                    why,
                    "a piece of the backend's answer was skipped"
                );
                self.metrics.malformed(&self.backend);
                self.pipeline.malformed(&why, now_ms())
            }
            Arrived::Refused(refusal) => {
                let fault = self.refused(&refusal);
                self.pipeline.fail(fault, now_ms())
            }
            Arrived::Failed(fault) => self.pipeline.fail(fault, now_ms()),
            Arrived::Ended(how) => {
                let step = self.pipeline.finish(how, now_ms());
                Step { over: true, ..step }
            }
        }
    }

    fn refused(&self, refusal: &Refusal) -> Fault {
        let status = refusal.status;
        let why = refusal.text.as_ref().map_or(String::new(), |t| format!(": {t}"));
        let message = match status {
            300..=399 => format!("the backend answered {status}, a redirect, which is not followed"),
            _ => format!("the backend answered {status}{why}"),
        };
        let plain =
            Fault { status: Some(status), retry_after: refusal.retry_after, ..Fault::new(FaultKind::Backend, message) };
        self.pipeline.refused(&refusal.raws, plain)
    }

    async fn into_body(mut self) -> Result<Response, Fault> {
        while !self.over {
            poll_fn(|cx| self.poll_step(cx)).await;
        }
        let body = self.pipeline.body()?;
        let mut response = response::json(200, &body);
        response.headers_mut().insert("cache-control", HeaderValue::from_static("no-cache"));
        Ok(response)
    }

    /// The head is held until the first event of the turn, so that a fault before it is a plain HTTP error; or until
    /// the client must have a sign of life.
    async fn into_stream(mut self) -> Result<Response, Fault> {
        let mut opening = Vec::new();
        self.pipeline.begin();
        self.pipeline.drain(&mut opening);
        let first = match self.pipeline.is_open() {
            // There are dialects that open a stream without a word.
            true => Some(Bytes::from(opening)).filter(|o| !o.is_empty()),
            false => poll_fn(|cx| self.poll_bytes(cx)).await,
        };
        if let Some(fault) = self.pipeline.fault()
            && !self.pipeline.is_open()
        {
            return Err(fault.clone());
        }
        let content_type = self.dialect.wire.content_type.clone();
        let body = Body::from_bytes_stream(Frames { first, live: self });
        Ok(Response::builder()
            .content_type(content_type)
            .header("cache-control", "no-cache, no-transform")
            .header("x-accel-buffering", "no")
            .body(body))
    }

    /// Everything that is ready now, as one piece; `None` when the turn is over.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut out = Vec::new();
        while !self.over && out.len() < WRITE_BYTES {
            match self.poll_step(cx) {
                Poll::Ready(Some(_)) => self.pipeline.drain(&mut out),
                Poll::Ready(None) => {
                    // It takes the head with it, so what goes wrong from here on is told inside the stream.
                    self.pipeline.head_left();
                    sse::comment(&self.comment.replace("{now_ms}", &now_ms().to_string()), &mut out);
                }
                Poll::Pending if out.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        if out.is_empty() {
            return Poll::Ready(None);
        }
        self.clock.told();
        Poll::Ready(Some(Bytes::from(out)))
    }

    /// A client that asked for one thing, and a backend that gave the other.
    fn bridged(&self) -> Option<Direction> {
        let tally = self.source.tally()?;
        match (self.stream, tally.streamed) {
            (false, true) => Some(Direction::StreamToJson),
            // Nothing at all is an empty stream: what becomes of it is decided as for one.
            (false, false) if self.is_empty() => Some(Direction::StreamToJson),
            (true, false) if tally.bytes > 0 && !self.is_empty() => Some(Direction::JsonToStream),
            (true, _) | (false, false) => None,
        }
    }

    /// The backend ended without a word, and that was no fault of the way.
    fn is_empty(&self) -> bool {
        let silent = self.source.tally().is_some_and(|t| t.events == 0);
        self.over && silent && self.pipeline.fault().is_none_or(|f| f.kind == FaultKind::Empty)
    }

    fn outcome(&self) -> &'static str {
        match self.pipeline.fault() {
            None if !self.over => "gone",
            None if self.pipeline.cut().is_some() => "partial",
            None if self.is_empty() => "empty",
            None => "completed",
            Some(fault) if fault.kind == FaultKind::Empty => "empty",
            Some(fault) if fault.kind == FaultKind::Timeout => "timeout",
            Some(fault) if fault.is_partial() && self.pipeline.is_open() => "partial",
            Some(_) => "failed",
        }
    }
}

impl Drop for Live {
    /// However it ended: one line, and the counters.
    fn drop(&mut self) {
        let took = self.clock.elapsed();
        let told = if self.pipeline.fault().is_some() { "a turn failed" } else { "a turn was cut short" };
        if let Some(fault) = self.pipeline.fault().or(self.pipeline.cut()) {
            self.metrics.failed(&self.backend, fault.kind.word());
            let (kind, status) = (fault.kind.word(), fault.status());
            tracing::warn!(id = self.id, backend = self.backend, kind, status, why = fault.message, "{told}");
        }
        if !self.over && self.pipeline.fault().is_none() {
            self.metrics.gone();
            let duration_ms = took.as_millis() as u64;
            tracing::info!(id = self.id, backend = self.backend, stream = self.stream, duration_ms, "the client left");
        }
        for breach in self.pipeline.breaches() {
            self.metrics.breached(&self.dialect.name, &breach.frame, &breach.keyword);
            let Breached { frame, pointer, keyword, place, reported } = breach;
            let generation = self.generation.number;
            tracing::error!(id = self.id, frame, pointer, keyword, place, reported, generation, "breach");
        }
        self.metrics.late(self.pipeline.late());
        if let (Some(direction), Some(tally)) = (self.bridged(), self.source.tally()) {
            let outcome = self.outcome();
            self.metrics.bridged(direction, outcome, took);
            let (id, backend, direction) = (&self.id, &self.backend, direction.word());
            let (events, skipped, bytes) = (tally.events, tally.skipped, tally.bytes);
            let duration_ms = took.as_millis() as u64;
            tracing::info!(id, backend, direction, outcome, events, skipped, bytes, duration_ms, "bridged");
        }
    }
}

/// The response body: the source is polled here, so there is no task and no channel per frame.
struct Frames {
    first: Option<Bytes>,
    live: Live,
}

impl Stream for Frames {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        self.live.poll_bytes(cx).map(|bytes| bytes.map(Ok))
    }
}
