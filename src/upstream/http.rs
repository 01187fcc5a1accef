//! An upstream response over HTTP, polled without a task or a channel. Dropping it closes the connection, which cancels
//! the request. A task exists only after the end marker: it drains the body, so that the connection can be reused.

use super::decode::{Decoder, DecoderOutput};
use super::descriptors::{self, caused_by_descriptors};
use super::http_client::{Exchange, ResponseBody, SendError, root_cause};
use super::{ErrorResponse, UpstreamEvent, UpstreamStats};
use crate::domain::{Fault, FaultKind, StreamEnd, Tree};
use crate::engine::decode::response_head;
use crate::engine::event_cache::EventCache;
use crate::mapping::config::backend::{BackendPlan, Framing};
use http::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

pub struct HttpSource {
    state: SourceState,
    plan: Arc<BackendPlan>,
    size_limits: SizeLimits,
    /// The head of the response, if the rules of the backend read it.
    response_head: Option<Tree>,
    /// Decoded and not yet polled, the last one first.
    ready: Vec<DecoderOutput>,
    stats: UpstreamStats,
    /// For the decoder, once the framing is known.
    event_cache: Option<EventCache>,
}

/// Bounds the memory that a backend can make the gateway use.
#[derive(Clone, Copy, Debug)]
pub struct SizeLimits {
    pub event_bytes: usize,
    /// Of the whole response, if it is kept in memory for a JSON body.
    pub answer_bytes: Option<usize>,
}

enum SourceState {
    Sending(Exchange),
    Reading {
        body: ResponseBody,
        reader: Reader,
    },
    /// An error status was received; its body is read before the error is reported.
    ReadingError {
        body: ResponseBody,
        status: u16,
        retry_after: Option<u64>,
        error_body: Vec<u8>,
    },
    /// Events decoded before the fault are emitted first.
    Failing(Fault),
    Done,
}

enum Reader {
    /// Only white space was received: the first other byte shows the framing.
    Unknown {
        content_type: String,
        prefix: Vec<u8>,
    },
    Known(Decoder),
}

/// Maximum number of bytes read from an upstream error body.
const MAX_ERROR_BODY: usize = 64 * 1024;

/// How much of the body is read after the end marker, and for how long, before the connection is closed.
const MAX_DRAIN_BYTES: usize = 64 * 1024;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

impl HttpSource {
    pub fn new(exchange: Exchange, plan: Arc<BackendPlan>, size_limits: SizeLimits) -> HttpSource {
        HttpSource {
            state: SourceState::Sending(exchange),
            plan,
            size_limits,
            response_head: None,
            ready: Vec::new(),
            stats: UpstreamStats::default(),
            event_cache: None,
        }
    }

    pub fn cache_events(&mut self, cache: EventCache) {
        self.event_cache = Some(cache);
    }

    /// The events so far have opened the turn.
    pub fn mark_turn_open(&mut self) {
        if let SourceState::Reading { reader: Reader::Known(decoder), .. } = &mut self.state {
            decoder.mark_turn_open();
        }
    }

    pub fn stats(&self) -> UpstreamStats {
        self.stats
    }

    /// The head of the response, once, as the rules of the backend read it.
    pub fn take_response_head(&mut self) -> Option<Tree> {
        self.response_head.take()
    }

    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<UpstreamEvent> {
        loop {
            if let Some(decoded) = self.ready.pop() {
                return Poll::Ready(self.on_decoded(decoded));
            }
            match &mut self.state {
                SourceState::Sending(exchange) => match ready!(exchange.poll_response(cx)) {
                    Ok(response) => self.on_response(response),
                    Err(error) => return Poll::Ready(self.fail(send_fault(&error))),
                },
                SourceState::Reading { body, .. } => match ready!(body.poll_bytes(cx)) {
                    Some(Ok(bytes)) => {
                        if let Err(fault) = self.on_bytes(&bytes) {
                            return Poll::Ready(self.fail(fault));
                        }
                    }
                    Some(Err(why)) => return Poll::Ready(self.end(StreamEnd::Disconnected(why))),
                    None => self.on_body_end(),
                },
                SourceState::ReadingError { body, status, retry_after, error_body } => {
                    match ready!(body.poll_bytes(cx)) {
                        Some(Ok(bytes)) if error_body.len() < MAX_ERROR_BODY => {
                            error_body.extend_from_slice(&bytes[..bytes.len().min(MAX_ERROR_BODY - error_body.len())]);
                        }
                        _ => {
                            let (status, retry_after, error_body) = (*status, *retry_after, std::mem::take(error_body));
                            self.state = SourceState::Done;
                            return Poll::Ready(UpstreamEvent::Rejected(self.error_response(
                                status,
                                retry_after,
                                &error_body,
                            )));
                        }
                    }
                }
                SourceState::Failing(fault) => {
                    let fault = fault.clone();
                    return Poll::Ready(self.fail(fault));
                }
                SourceState::Done => return Poll::Ready(UpstreamEvent::Ended(StreamEnd::Eof)),
            }
        }
    }

    fn on_response(&mut self, response: http::Response<ResponseBody>) {
        let (head, body) = response.into_parts();
        let (status, headers) = (head.status, head.headers);
        let content_type = header_text(&headers, CONTENT_TYPE.as_str()).to_ascii_lowercase();
        self.response_head = self.plan.response_headers.as_ref().map(|names| {
            let values = names.iter().filter_map(|name| Some((name.as_str(), headers.get(name)?.to_str().ok()?)));
            response_head(status.as_u16(), values)
        });
        self.state = if status.is_success() {
            SourceState::Reading { body, reader: Reader::Unknown { content_type, prefix: Vec::new() } }
        } else {
            let in_ms = header_text(&headers, "retry-after-ms").trim().parse::<u64>().ok().map(|ms| ms.div_ceil(1000));
            let retry_after = parse_retry_after(header_text(&headers, RETRY_AFTER.as_str())).or(in_ms);
            SourceState::ReadingError { body, status: status.as_u16(), retry_after, error_body: Vec::new() }
        };
    }

    fn on_bytes(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.stats.bytes += bytes.len() as u64;
        if let Some(limit) = self.size_limits.answer_bytes.filter(|limit| self.stats.bytes > *limit as u64) {
            return Err(too_large(limit, "the backend's response"));
        }
        let SourceState::Reading { reader, .. } = &mut self.state else { return Ok(()) };
        let pushed = match reader {
            Reader::Known(decoder) => decoder.push(bytes, &mut self.ready),
            Reader::Unknown { content_type, prefix } => {
                let is_first = prefix.is_empty();
                if !is_first {
                    prefix.extend_from_slice(bytes);
                }
                let all = if is_first { bytes } else { prefix.as_slice() };
                let Some(framing) = detect_framing(&self.plan, content_type, all)? else {
                    if is_first {
                        prefix.extend_from_slice(bytes);
                    }
                    return if prefix.len() > self.size_limits.event_bytes {
                        Err(too_large(self.size_limits.event_bytes, "the data before the backend's first event"))
                    } else {
                        Ok(())
                    };
                };
                self.stats.streamed = framing != Framing::Json;
                let mut decoder = Decoder::new(&self.plan, framing, self.size_limits.event_bytes);
                if let Some(cache) = self.event_cache.take() {
                    decoder = decoder.with_cache(cache);
                }
                let pushed = decoder.push(all, &mut self.ready);
                *reader = Reader::Known(decoder);
                pushed
            }
        };
        if let Reader::Known(decoder) = reader {
            self.stats.data_bytes = decoder.data_bytes();
        }
        self.ready.reverse();
        if pushed.is_err() {
            self.state = SourceState::Failing(too_large(self.size_limits.event_bytes, "an event of the backend"));
        }
        self.drain_after_end_marker();
        Ok(())
    }

    /// The turn does not wait for anything after the end marker. But a connection can be reused only if the whole
    /// response was read, and many servers send the last chunk separately.
    fn drain_after_end_marker(&mut self) {
        if !self.ready.iter().any(|d| matches!(d, DecoderOutput::Ended(_))) {
            return;
        }
        if let SourceState::Reading { mut body, .. } = std::mem::replace(&mut self.state, SourceState::Done) {
            let mut drained = 0;
            let mut noop = Context::from_waker(std::task::Waker::noop());
            if poll_drain(&mut body, &mut drained, &mut noop).is_pending() {
                tokio::spawn(tokio::time::timeout(DRAIN_TIMEOUT, async move {
                    poll_fn(|cx| poll_drain(&mut body, &mut drained, cx)).await;
                }));
            }
        }
    }

    fn on_body_end(&mut self) {
        if let SourceState::Reading { reader: Reader::Known(decoder), .. } =
            std::mem::replace(&mut self.state, SourceState::Done)
        {
            decoder.finish(&mut self.ready);
            self.ready.reverse();
        }
    }

    fn on_decoded(&mut self, decoded: DecoderOutput) -> UpstreamEvent {
        match decoded {
            DecoderOutput::Raw(raw) => {
                self.stats.events += 1;
                UpstreamEvent::Raw(raw)
            }
            DecoderOutput::Delta(delta) => {
                self.stats.events += 1;
                UpstreamEvent::Delta(delta)
            }
            DecoderOutput::Ended(how) => self.end(how),
            DecoderOutput::Malformed(why) if self.stats.streamed => {
                self.stats.skipped += 1;
                UpstreamEvent::Malformed(why)
            }
            DecoderOutput::Corrupt(why) => {
                self.fail(Fault::new(FaultKind::Malformed, format!("the backend's response is corrupt: {why}")))
            }
            DecoderOutput::Malformed(why) => {
                self.fail(Fault::new(FaultKind::Malformed, format!("the backend's response is not valid JSON: {why}")))
            }
        }
    }

    fn end(&mut self, how: StreamEnd) -> UpstreamEvent {
        self.state = SourceState::Done;
        UpstreamEvent::Ended(how)
    }

    fn fail(&mut self, fault: Fault) -> UpstreamEvent {
        self.state = SourceState::Done;
        self.ready.clear();
        UpstreamEvent::Failed(fault)
    }

    /// An error body may be JSON, an event stream, or a line of text.
    fn error_response(&self, status: u16, retry_after: Option<u64>, error_body: &[u8]) -> ErrorResponse {
        let mut out = Vec::new();
        if let Ok(Some(framing)) = detect_framing(&self.plan, "", error_body) {
            let mut decoder = Decoder::new(&self.plan, framing, MAX_ERROR_BODY);
            let _ = decoder.push(error_body, &mut out);
            decoder.finish(&mut out);
        }
        let raws: Vec<Tree> = out
            .into_iter()
            .filter_map(|d| match d {
                DecoderOutput::Raw(raw) => Some(raw),
                DecoderOutput::Delta(_) | DecoderOutput::Ended(_) => None,
                DecoderOutput::Malformed(_) | DecoderOutput::Corrupt(_) => None,
            })
            .collect();
        let plain = std::str::from_utf8(error_body).ok().map(str::trim);
        // JSON too: the backend's rules may not match its shape.
        let line = plain.filter(|t| !t.is_empty() && t.len() <= 300 && !t.starts_with('<'));
        ErrorResponse {
            status,
            retry_after,
            raws,
            text: line.map(|t| t.split_whitespace().collect::<Vec<_>>().join(" ")),
        }
    }
}

/// Detects the framing from the first byte, because content types are often wrong; `None` while there is no byte.
fn detect_framing(plan: &BackendPlan, content_type: &str, prefix: &[u8]) -> Result<Option<Framing>, Fault> {
    const BOM: &[u8] = b"\xef\xbb\xbf";
    if prefix.len() < BOM.len() && BOM.starts_with(prefix) {
        return Ok(None);
    }
    let prefix = prefix.strip_prefix(BOM).unwrap_or(prefix);
    let Some(first) = prefix.iter().find(|b| !b.is_ascii_whitespace()) else { return Ok(None) };
    // A backend that only sends NDJSON needs no detection.
    if plan.framings == [Framing::Ndjson] {
        return Ok(Some(Framing::Ndjson));
    }
    let is_binary = *first == 0 || content_type.contains("amazon.eventstream");
    if is_binary && plan.framings.contains(&Framing::AwsEventstream) {
        return Ok(Some(Framing::AwsEventstream));
    }
    let lines = content_type.contains("ndjson") || content_type.contains("jsonl") || content_type.contains("json-seq");
    let only_lines = plan.framings.contains(&Framing::Ndjson) && !plan.framings.contains(&Framing::Json);
    match first {
        b'{' | b'[' if lines || only_lines => Ok(Some(Framing::Ndjson)),
        b'{' | b'[' => Ok(Some(Framing::Json)),
        // The fields of an event stream, and its comments.
        b'd' | b'e' | b'i' | b'r' | b':' => Ok(Some(Framing::Sse)),
        _ if content_type.contains("event-stream") => Ok(Some(Framing::Sse)),
        _ => {
            let message = "the backend's response is neither an event stream nor JSON";
            Err(Fault::new(FaultKind::Malformed, message))
        }
    }
}

fn too_large(bytes: usize, what: &str) -> Fault {
    Fault::new(FaultKind::Malformed, format!("{what} is larger than {bytes} bytes"))
}

/// Ready at the end of the body, or once the limit is exceeded.
fn poll_drain(body: &mut ResponseBody, drained: &mut usize, cx: &mut Context<'_>) -> Poll<()> {
    while *drained <= MAX_DRAIN_BYTES {
        match ready!(body.poll_bytes(cx)) {
            Some(Ok(bytes)) => *drained += bytes.len(),
            Some(Err(_)) | None => break,
        }
    }
    Poll::Ready(())
}

fn send_fault(error: &SendError) -> Fault {
    let why = root_cause(error);
    if error.is_timeout() {
        return Fault::new(FaultKind::Timeout, "the connection to the backend timed out");
    }
    if caused_by_descriptors(error) {
        return descriptors::fault();
    }
    let message = if error.is_connect() {
        format!("the backend could not be reached: {why}")
    } else {
        format!("the backend did not respond: {why}")
    };
    Fault::new(FaultKind::Unreachable, message)
}

fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

/// The value of `Retry-After` in seconds; it is a number or a date.
fn parse_retry_after(text: &str) -> Option<u64> {
    text.trim().parse().ok().or_else(|| {
        let when = httpdate::parse_http_date(text.trim()).ok()?;
        when.duration_since(SystemTime::now()).ok().map(|d| d.as_secs().max(1))
    })
}
