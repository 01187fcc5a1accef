//! A response of the mock backend: status, headers, and the steps of its body.

use super::encoding::Encoder;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Builder of a response: `MockResponse::sse(&["one", "two"]).gzip().split(1).disconnect()`.
///
/// Each call applies to the steps added before it: `.gzip().split(1)` splits the encoded bytes, `.split(1).gzip()`
/// encodes each byte separately.
#[derive(Clone, Debug)]
pub struct MockResponse {
    /// None to send only the steps.
    head: Option<ResponseHead>,
    steps: Vec<ResponseStep>,
}

#[derive(Clone, Debug)]
struct ResponseHead {
    status: u16,
    headers: Vec<(String, String)>,
    framing: BodyFraming,
}

/// How the end of the body is marked.
#[derive(Clone, Copy, Debug)]
pub enum BodyFraming {
    Chunked,
    Length,
    UntilClose,
    /// The content-length is off by this much. If it is too large, the connection closes after the body; if it is too
    /// small, the rest of the body precedes the next response.
    WrongLength(isize),
}

#[derive(Clone, Debug)]
pub enum ResponseStep {
    /// One write and, if the body is chunked, one chunk.
    Bytes(Vec<u8>),
    Pause(Duration),
    /// Waits until the test opens the gate.
    Wait(Gate),
    /// Sends nothing more until the client closes.
    Stall,
    /// Closes the socket immediately, without the final chunk.
    Disconnect,
    /// Like `Disconnect`, but with an RST.
    Reset,
    /// Repeats the same chunk until the client closes.
    Endless(Vec<u8>),
}

/// Holds a response back until the test opens it, so that a test can prove the order of what happens on both sides
/// without comparing times. Each opening lets one response pass.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<AtomicUsize>);

impl Gate {
    pub fn open(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn pass(&self) -> bool {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |openings| openings.checked_sub(1)).is_ok()
    }
}

impl MockResponse {
    /// A response without a body.
    pub fn new(status: u16) -> MockResponse {
        let head = ResponseHead { status, headers: Vec::new(), framing: BodyFraming::Length };
        MockResponse { head: Some(head), steps: Vec::new() }
    }

    pub fn json(status: u16, text: &str) -> MockResponse {
        MockResponse::new(status).header("content-type", "application/json").bytes(text)
    }

    /// A stream of SSE events with only data, one chunk per event.
    pub fn sse(events: &[&str]) -> MockResponse {
        events.iter().fold(MockResponse::stream("text/event-stream"), |response, data| response.event(data))
    }

    /// An SSE stream with exactly these bytes.
    pub fn sse_raw(bytes: impl AsRef<[u8]>) -> MockResponse {
        MockResponse::stream("text/event-stream").bytes(bytes)
    }

    /// A stream of lines, one chunk per line.
    pub fn ndjson(lines: &[&str]) -> MockResponse {
        lines
            .iter()
            .fold(MockResponse::stream("application/x-ndjson"), |response, line| response.bytes(format!("{line}\n")))
    }

    /// No status line or headers: only the steps, then the end of the connection.
    pub fn raw() -> MockResponse {
        MockResponse { head: None, steps: Vec::new() }
    }

    /// Bytes that are not HTTP.
    pub fn garbage(bytes: impl AsRef<[u8]>) -> MockResponse {
        MockResponse::raw().bytes(bytes)
    }

    /// Never responds.
    pub fn hang() -> MockResponse {
        MockResponse::raw().stall()
    }

    fn stream(content_type: &str) -> MockResponse {
        MockResponse::new(200).header("content-type", content_type).chunked()
    }
}

/// Status and headers.
impl MockResponse {
    pub fn status(mut self, status: u16) -> MockResponse {
        self.head_mut().status = status;
        self
    }

    /// Replaces a header of the same name.
    pub fn header(mut self, name: &str, value: &str) -> MockResponse {
        let headers = &mut self.head_mut().headers;
        match headers.iter_mut().find(|(n, _)| n.eq_ignore_ascii_case(name)) {
            Some(header) => value.clone_into(&mut header.1),
            None => headers.push((name.to_owned(), value.to_owned())),
        }
        self
    }

    pub fn chunked(self) -> MockResponse {
        self.framing(BodyFraming::Chunked)
    }

    pub fn length(self) -> MockResponse {
        self.framing(BodyFraming::Length)
    }

    pub fn until_close(self) -> MockResponse {
        self.framing(BodyFraming::UntilClose)
    }

    pub fn wrong_length(self, delta: isize) -> MockResponse {
        self.framing(BodyFraming::WrongLength(delta))
    }

    pub fn framing(mut self, framing: BodyFraming) -> MockResponse {
        self.head_mut().framing = framing;
        self
    }

    fn head_mut(&mut self) -> &mut ResponseHead {
        self.head.as_mut().expect("a raw answer has no head")
    }
}

/// Body.
impl MockResponse {
    pub fn step(mut self, step: ResponseStep) -> MockResponse {
        self.steps.push(step);
        self
    }

    pub fn bytes(self, bytes: impl AsRef<[u8]>) -> MockResponse {
        self.step(ResponseStep::Bytes(bytes.as_ref().to_vec()))
    }

    /// Adds an event: `MockResponse::sse(&["one"]).pause(time).event("two")`.
    pub fn event(self, data: &str) -> MockResponse {
        self.bytes(format!("data: {data}\n\n"))
    }

    pub fn pause(self, time: Duration) -> MockResponse {
        self.step(ResponseStep::Pause(time))
    }

    pub fn wait(self, gate: &Gate) -> MockResponse {
        self.step(ResponseStep::Wait(gate.clone()))
    }

    pub fn stall(self) -> MockResponse {
        self.step(ResponseStep::Stall)
    }

    pub fn disconnect(self) -> MockResponse {
        self.step(ResponseStep::Disconnect)
    }

    pub fn reset(self) -> MockResponse {
        self.step(ResponseStep::Reset)
    }

    pub fn endless(self, chunk: impl AsRef<[u8]>) -> MockResponse {
        self.step(ResponseStep::Endless(chunk.as_ref().to_vec()))
    }

    /// Splits the bytes again into chunks of `n`. Bytes without a pause in between are split as one sequence, across
    /// the borders of events.
    pub fn split(mut self, n: usize) -> MockResponse {
        let mut steps = Vec::new();
        let mut run = Vec::new();
        for step in std::mem::take(&mut self.steps) {
            if let ResponseStep::Bytes(bytes) = step {
                run.extend(bytes);
            } else {
                steps.extend(byte_steps(&std::mem::take(&mut run), n));
                steps.push(step);
            }
        }
        steps.extend(byte_steps(&run, n));
        self.steps = steps;
        self
    }

    /// Pauses between chunks.
    pub fn pause_between(mut self, time: Duration) -> MockResponse {
        let mut paced: Vec<ResponseStep> = Vec::new();
        for step in std::mem::take(&mut self.steps) {
            if let (Some(ResponseStep::Bytes(_)), ResponseStep::Bytes(_)) = (paced.last(), &step) {
                paced.push(ResponseStep::Pause(time));
            }
            paced.push(step);
        }
        self.steps = paced;
        self
    }

    pub fn gzip(self) -> MockResponse {
        self.encoded("gzip", Encoder::gzip())
    }

    pub fn brotli(self) -> MockResponse {
        self.encoded("br", Encoder::brotli())
    }

    pub fn zstd(self) -> MockResponse {
        self.encoded("zstd", Encoder::zstd())
    }

    /// Each chunk can be decoded as soon as it arrives. A body that stops early, as in `.disconnect().gzip()`, lacks the
    /// end of its encoding too.
    fn encoded(mut self, name: &str, mut encoder: Encoder) -> MockResponse {
        for step in &mut self.steps {
            match step {
                ResponseStep::Bytes(bytes) => *bytes = encoder.encode(bytes),
                // The encoding of a chunk depends on the chunks before it, so encoded bytes cannot be repeated.
                ResponseStep::Endless(_) => panic!("what has no end cannot be encoded in advance"),
                ResponseStep::Pause(_)
                | ResponseStep::Wait(_)
                | ResponseStep::Stall
                | ResponseStep::Disconnect
                | ResponseStep::Reset => {}
            }
        }
        let end = encoder.end();
        match self.steps.last_mut() {
            Some(ResponseStep::Bytes(last)) => last.extend(end),
            Some(ResponseStep::Pause(_) | ResponseStep::Wait(_)) | None => self.steps.push(ResponseStep::Bytes(end)),
            Some(ResponseStep::Stall | ResponseStep::Disconnect | ResponseStep::Reset | ResponseStep::Endless(_)) => {}
        }
        self.header("content-encoding", name)
    }
}

/// Wire format.
impl MockResponse {
    pub(super) fn steps(&self) -> &[ResponseStep] {
        &self.steps
    }

    pub(super) fn opening(&self) -> Vec<u8> {
        let Some(head) = &self.head else { return Vec::new() };
        let mut text = format!("HTTP/1.1 {} scripted\r\n", head.status);
        for (name, value) in &head.headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += &match head.framing {
            BodyFraming::Chunked => "transfer-encoding: chunked\r\n".to_owned(),
            BodyFraming::Length => format!("content-length: {}\r\n", self.size()),
            BodyFraming::UntilClose => "connection: close\r\n".to_owned(),
            BodyFraming::WrongLength(delta) => {
                let wrong = self.size().checked_add_signed(delta).expect("a length below zero");
                format!("content-length: {wrong}\r\n")
            }
        };
        (text + "\r\n").into_bytes()
    }

    /// A chunk as it is sent. An empty one is not sent, because it would end a chunked body.
    pub(super) fn framed(&self, chunk: &[u8]) -> Vec<u8> {
        if chunk.is_empty() || !self.is_chunked() {
            return chunk.to_vec();
        }
        [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat()
    }

    pub(super) fn closing(&self) -> &'static [u8] {
        if self.is_chunked() { b"0\r\n\r\n" } else { b"" }
    }

    /// Whether the connection is closed after the response.
    pub(super) fn closes(&self) -> bool {
        let Some(head) = &self.head else { return true };
        match head.framing {
            BodyFraming::UntilClose => true,
            BodyFraming::WrongLength(delta) if delta > 0 => true,
            BodyFraming::WrongLength(_) | BodyFraming::Chunked | BodyFraming::Length => {
                head.headers.iter().any(|(name, value)| name == "connection" && value == "close")
            }
        }
    }

    fn is_chunked(&self) -> bool {
        self.head.as_ref().is_some_and(|head| matches!(head.framing, BodyFraming::Chunked))
    }

    fn size(&self) -> usize {
        let sizes = self.steps.iter().map(|step| if let ResponseStep::Bytes(bytes) = step { bytes.len() } else { 0 });
        sizes.sum()
    }
}

fn byte_steps(bytes: &[u8], n: usize) -> impl Iterator<Item = ResponseStep> {
    bytes.chunks(n).map(|chunk| ResponseStep::Bytes(chunk.to_vec()))
}
