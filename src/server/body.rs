//! The body of a request: reads it, to its limits of size and time, and discards what a refused request left unread.
//!
//! Most clients send everything before they read. If the connection of a refused upload were closed at once, they would
//! see a broken pipe instead of the error. So the rest is read and discarded, within bounds, while the error is sent.

use crate::domain::{Fault, FaultKind};
use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt};
use poem::http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, EXPECT};
use poem::http::{HeaderMap, HeaderValue};
use poem::{Request, Response};
use std::io;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// A client that sends less than this per second, after its first seconds, is too slow.
const MIN_BYTES_PER_SECOND: u64 = 8 * 1024;
/// Memory for a body is reserved up to this size; more is allocated when it has arrived.
const MAX_RESERVED_BYTES: u64 = 16 * 1024;
const MAX_DISCARDED_BYTES: usize = 64 << 20;
const DISCARD_TIME: Duration = Duration::from_secs(30);
const DISCARD_SILENCE: Duration = Duration::from_secs(5);

pub struct RequestBody {
    chunks: Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>,
    /// The length that the client announced.
    length: Option<u64>,
    /// How the body is encoded, if it is.
    encoding: Option<String>,
    state: BodyState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyState {
    /// The client sends the body when it gets `100 Continue`, which the first read sends.
    Expected,
    Partial,
    /// The client is too slow, or the body is too large.
    Rejected,
    Complete,
}

impl RequestBody {
    pub fn take(request: &mut Request) -> RequestBody {
        let body = request.take_body();
        let is_empty = body.is_empty();
        RequestBody::new(request.headers(), is_empty, body.into_bytes_stream())
    }

    fn new(
        headers: &HeaderMap,
        is_empty: bool,
        chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    ) -> RequestBody {
        let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let is_expected =
            headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let state = match (is_empty, is_expected) {
            (true, _) => BodyState::Complete,
            (false, true) => BodyState::Expected,
            (false, false) => BodyState::Partial,
        };
        let encoding =
            headers.get(CONTENT_ENCODING).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let encoding = encoding.filter(|name| !name.eq_ignore_ascii_case("identity"));
        RequestBody { chunks: Box::pin(chunks), length, encoding, state }
    }

    /// Reads the whole body. `silence` is the time that the client may send nothing.
    pub async fn read(&mut self, limit: usize, silence: Option<Duration>) -> Result<Vec<u8>, Fault> {
        let too_large = || Fault::new(FaultKind::TooLarge, format!("the body is larger than {limit} bytes"));
        if let Some(encoding) = &self.encoding {
            let message = format!("the body has the encoding `{encoding}`, which is not supported");
            return Err(Fault::new(FaultKind::MediaType, message));
        }
        if self.length.is_some_and(|length| length > limit as u64) {
            return Err(too_large());
        }
        let announced = self.length.unwrap_or_default().min(MAX_RESERVED_BYTES);
        let mut bytes = Vec::with_capacity(announced as usize);
        let began = Instant::now();
        while self.state != BodyState::Complete {
            self.state = BodyState::Partial;
            // Mostly the body arrives with its headers, and then needs no timer.
            let chunk = match (self.chunks.next().now_or_never(), silence) {
                (Some(chunk), _) => chunk,
                (None, None) => self.chunks.next().await,
                (None, Some(silence)) => {
                    let earned = Duration::from_secs(bytes.len() as u64 / MIN_BYTES_PER_SECOND);
                    let deadline = (began + silence + earned).min(Instant::now() + silence);
                    timeout_at(deadline, self.chunks.next()).await.map_err(|_| {
                        self.state = BodyState::Rejected;
                        let (received, time) = (bytes.len(), began.elapsed());
                        let message = format!("the body was sent too slowly: bytes received in {time:.0?}: {received}");
                        Fault { status: Some(408), ..Fault::timeout("body", message) }
                    })?
                }
            };
            match chunk {
                None => self.state = BodyState::Complete,
                Some(Ok(chunk)) if bytes.len() + chunk.len() <= limit => bytes.extend_from_slice(&chunk),
                Some(Ok(_)) => {
                    self.state = BodyState::Rejected;
                    return Err(too_large());
                }
                Some(Err(error)) => {
                    self.state = BodyState::Complete;
                    return Err(Fault::new(FaultKind::NotJson, format!("the body could not be read: {error}")));
                }
            }
        }
        Ok(bytes)
    }

    /// Discards what was not read, while the response is sent. The connection is closed if that may not succeed.
    pub fn finish(self, response: &mut Response) {
        let is_large = self.length.is_some_and(|length| length > MAX_DISCARDED_BYTES as u64);
        if self.state == BodyState::Complete {
            return;
        }
        if is_large || matches!(self.state, BodyState::Expected | BodyState::Rejected) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if self.state != BodyState::Expected {
            tokio::spawn(discard(self.chunks));
        }
    }
}

/// Reads to the end, or to the bounds: then the body is dropped, which closes the connection.
async fn discard(mut chunks: impl Stream<Item = io::Result<Bytes>> + Unpin) {
    let deadline = Instant::now() + DISCARD_TIME;
    let mut discarded = 0;
    while discarded <= MAX_DISCARDED_BYTES
        && Instant::now() < deadline
        && let Ok(Some(Ok(chunk))) = timeout(DISCARD_SILENCE, chunks.next()).await
    {
        discarded += chunk.len();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "../../tests/unit/server_body.rs"]
mod tests;
