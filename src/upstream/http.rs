//! A backend over HTTP, polled: no task, no channel. Dropping it closes the connection, which is how a backend learns
//! that nobody listens any more. Only the rest of an answer that is over may be read by a task, for the connection's sake.

use super::build_request::Composed;
use super::decode::{Decoded, Decoder};
use super::{Arrived, Refusal, Tally};
use crate::domain::{Ended, Fault, FaultKind, Tree};
use crate::mapping::config::backend::{BackendPlan, Framing};
use bytes::{Buf, Bytes};
use http_body::Body as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use std::collections::VecDeque;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

pub struct Http {
    state: State,
    plan: Arc<BackendPlan>,
    bounds: Bounds,
    /// Decoded and not yet asked for.
    ready: VecDeque<Decoded>,
    tally: Tally,
}

/// A backend is not trusted with our memory.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub event_bytes: usize,
    /// Of all of it, where all of it is kept.
    pub answer_bytes: Option<usize>,
}

type Sent = Pin<Box<dyn Future<Output = Result<reqwest::Response, reqwest::Error>> + Send>>;

enum State {
    Asking(Sent),
    Reading {
        body: reqwest::Body,
        reader: Reader,
    },
    /// The backend said no; its reason is read before it is told.
    Refusing {
        body: reqwest::Body,
        status: u16,
        retry_after: Option<u64>,
        said: Vec<u8>,
    },
    /// What came before it is told first.
    Failing(Fault),
    Over,
}

enum Reader {
    /// Nothing but white space has come: what it is shows in the first byte after that.
    Unknown {
        content_type: String,
        begun: Vec<u8>,
    },
    Known(Decoder),
}

/// A reason is a sentence, not a book.
const MAX_REASON: usize = 64 * 1024;

/// What may stand after the end marker before the connection is given up, and how long its end may take.
const MAX_REST: usize = 64 * 1024;
const REST_TIME: Duration = Duration::from_secs(1);

impl Http {
    pub fn new(client: &reqwest::Client, composed: Composed, plan: Arc<BackendPlan>, bounds: Bounds) -> Http {
        let Composed { method, url, headers, body, .. } = composed;
        let sent = client.request(method, url).headers(headers).body(body).send();
        Http { state: State::Asking(Box::pin(sent)), plan, bounds, ready: VecDeque::new(), tally: Tally::default() }
    }

    pub fn tally(&self) -> Tally {
        self.tally
    }

    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Arrived> {
        loop {
            if let Some(decoded) = self.ready.pop_front() {
                return Poll::Ready(self.arrived(decoded));
            }
            match &mut self.state {
                State::Asking(sent) => match ready!(sent.as_mut().poll(cx)) {
                    Ok(response) => self.answered(response),
                    Err(error) => return Poll::Ready(self.fail(unanswered(&error))),
                },
                State::Reading { body, .. } => match ready!(poll_bytes(body, cx)) {
                    Some(Ok(bytes)) => {
                        if let Err(fault) = self.take(&bytes) {
                            return Poll::Ready(self.fail(fault));
                        }
                    }
                    Some(Err(why)) => return Poll::Ready(self.over(Ended::Cut(why))),
                    None => self.finish(),
                },
                State::Refusing { body, status, retry_after, said } => match ready!(poll_bytes(body, cx)) {
                    Some(Ok(bytes)) if said.len() < MAX_REASON => {
                        said.extend_from_slice(&bytes[..bytes.len().min(MAX_REASON - said.len())]);
                    }
                    _ => {
                        let (status, retry_after, said) = (*status, *retry_after, std::mem::take(said));
                        self.state = State::Over;
                        return Poll::Ready(Arrived::Refused(self.refusal(status, retry_after, &said)));
                    }
                },
                State::Failing(fault) => {
                    let fault = fault.clone();
                    return Poll::Ready(self.fail(fault));
                }
                State::Over => return Poll::Ready(Arrived::Ended(Ended::Eof)),
            }
        }
    }

    fn answered(&mut self, response: reqwest::Response) {
        let (status, headers) = (response.status(), response.headers().clone());
        let content_type = text(&headers, CONTENT_TYPE.as_str()).to_ascii_lowercase();
        let response: http::Response<reqwest::Body> = response.into();
        let body = response.into_body();
        self.state = if status.is_success() {
            State::Reading { body, reader: Reader::Unknown { content_type, begun: Vec::new() } }
        } else {
            let in_ms = text(&headers, "retry-after-ms").trim().parse::<u64>().ok().map(|ms| ms.div_ceil(1000));
            let retry_after = retry_after(text(&headers, RETRY_AFTER.as_str())).or(in_ms);
            State::Refusing { body, status: status.as_u16(), retry_after, said: Vec::new() }
        };
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.tally.bytes += bytes.len() as u64;
        if let Some(most) = self.bounds.answer_bytes.filter(|most| self.tally.bytes > *most as u64) {
            return Err(too_large(most, "the backend's answer"));
        }
        let State::Reading { reader, .. } = &mut self.state else { return Ok(()) };
        let mut out = Vec::new();
        let pushed = match reader {
            Reader::Known(decoder) => decoder.push(bytes, &mut out),
            Reader::Unknown { content_type, begun } => {
                begun.extend_from_slice(bytes);
                let Some(framing) = framing(&self.plan, content_type, begun)? else {
                    return if begun.len() > self.bounds.event_bytes {
                        Err(too_large(self.bounds.event_bytes, "what the backend sent before its first event"))
                    } else {
                        Ok(())
                    };
                };
                self.tally.streamed = framing != Framing::Json;
                let mut decoder = Decoder::new(&self.plan, framing, self.bounds.event_bytes);
                let pushed = decoder.push(begun, &mut out);
                *reader = Reader::Known(decoder);
                pushed
            }
        };
        self.ready.extend(out);
        if pushed.is_err() {
            self.state = State::Failing(too_large(self.bounds.event_bytes, "an event of the backend"));
        }
        self.settle();
        Ok(())
    }

    /// After the end marker the turn waits for nothing. But a connection can be used again only when all of its answer
    /// was read, and many servers send the last chunk by itself.
    fn settle(&mut self) {
        if !self.ready.iter().any(|d| matches!(d, Decoded::Ended(_))) {
            return;
        }
        if let State::Reading { mut body, .. } = std::mem::replace(&mut self.state, State::Over) {
            let mut rest = 0;
            let mut idle = Context::from_waker(std::task::Waker::noop());
            if poll_rest(&mut body, &mut rest, &mut idle).is_pending() {
                tokio::spawn(tokio::time::timeout(REST_TIME, async move {
                    poll_fn(|cx| poll_rest(&mut body, &mut rest, cx)).await;
                }));
            }
        }
    }

    fn finish(&mut self) {
        let mut out = Vec::new();
        if let State::Reading { reader: Reader::Known(decoder), .. } = std::mem::replace(&mut self.state, State::Over) {
            decoder.finish(&mut out);
        }
        self.ready.extend(out);
    }

    fn arrived(&mut self, decoded: Decoded) -> Arrived {
        match decoded {
            Decoded::Raw(raw) => {
                self.tally.events += 1;
                Arrived::Raw(raw)
            }
            Decoded::Ended(how) => self.over(how),
            Decoded::Malformed(why) if self.tally.streamed => {
                self.tally.skipped += 1;
                Arrived::Skipped(why)
            }
            Decoded::Malformed(why) => {
                self.fail(Fault::new(FaultKind::Garbled, format!("the backend's answer is not JSON: {why}")))
            }
        }
    }

    fn over(&mut self, how: Ended) -> Arrived {
        self.state = State::Over;
        Arrived::Ended(how)
    }

    fn fail(&mut self, fault: Fault) -> Arrived {
        self.state = State::Over;
        self.ready.clear();
        Arrived::Failed(fault)
    }

    /// A reason may be JSON, an event stream, or a line of text.
    fn refusal(&self, status: u16, retry_after: Option<u64>, said: &[u8]) -> Refusal {
        let mut out = Vec::new();
        if let Ok(Some(framing)) = framing(&self.plan, "", said) {
            let mut decoder = Decoder::new(&self.plan, framing, MAX_REASON);
            let _ = decoder.push(said, &mut out);
            decoder.finish(&mut out);
        }
        let raws: Vec<Tree> = out
            .into_iter()
            .filter_map(|d| match d {
                Decoded::Raw(raw) => Some(raw),
                Decoded::Ended(_) | Decoded::Malformed(_) => None,
            })
            .collect();
        let plain = std::str::from_utf8(said).ok().map(str::trim);
        // Also of JSON, for it may be of a shape that the backend's rules do not know.
        let line = plain.filter(|t| !t.is_empty() && t.len() <= 300 && !t.starts_with('<'));
        Refusal { status, retry_after, raws, text: line.map(|t| t.split_whitespace().collect::<Vec<_>>().join(" ")) }
    }
}

/// The first byte tells what the answer is, whatever its label says; `None` while there is none.
fn framing(plan: &BackendPlan, content_type: &str, begun: &[u8]) -> Result<Option<Framing>, Fault> {
    const BOM: &[u8] = b"\xef\xbb\xbf";
    if begun.len() < BOM.len() && BOM.starts_with(begun) {
        return Ok(None);
    }
    let begun = begun.strip_prefix(BOM).unwrap_or(begun);
    let Some(first) = begun.iter().find(|b| !b.is_ascii_whitespace()) else { return Ok(None) };
    // Who knows nothing but lines has lines, whatever the first one says.
    if plan.framings == [Framing::Ndjson] {
        return Ok(Some(Framing::Ndjson));
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
            let message = "what the backend sent is neither an event stream nor JSON";
            Err(Fault::new(FaultKind::Garbled, message))
        }
    }
}

fn too_large(bytes: usize, what: &str) -> Fault {
    Fault::new(FaultKind::Garbled, format!("{what} is larger than {bytes} bytes"))
}

fn poll_bytes(body: &mut reqwest::Body, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, String>>> {
    loop {
        return Poll::Ready(match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            None => None,
            Some(Err(error)) => Some(Err(cause(&error))),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) if bytes.has_remaining() => Some(Ok(bytes)),
                // Trailers, or nothing.
                _ => continue,
            },
        });
    }
}

/// Ready at the end of the body, or when there is too much of it.
fn poll_rest(body: &mut reqwest::Body, taken: &mut usize, cx: &mut Context<'_>) -> Poll<()> {
    while *taken <= MAX_REST {
        match ready!(poll_bytes(body, cx)) {
            Some(Ok(bytes)) => *taken += bytes.len(),
            Some(Err(_)) | None => break,
        }
    }
    Poll::Ready(())
}

/// The innermost reason: the outer ones only say that something was wrong.
fn cause(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(inner) = error.source() {
        error = inner;
    }
    error.to_string()
}

fn unanswered(error: &reqwest::Error) -> Fault {
    let why = cause(error);
    if error.is_timeout() {
        return Fault::new(FaultKind::Timeout, "the backend could not be reached in time");
    }
    let message = if error.is_connect() {
        format!("the backend could not be reached: {why}")
    } else {
        format!("the backend did not answer: {why}")
    };
    Fault::new(FaultKind::Unreachable, message)
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

/// Seconds, or a date.
fn retry_after(text: &str) -> Option<u64> {
    text.trim().parse().ok().or_else(|| {
        let when = httpdate::parse_http_date(text.trim()).ok()?;
        when.duration_since(SystemTime::now()).ok().map(|d| d.as_secs().max(1))
    })
}
