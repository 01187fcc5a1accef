//! Bytes → raw events, by the framing of the backend's mapping. Push decoders without IO: bytes may be split anywhere.

mod lines;
mod sse;

use crate::domain::{StreamEnd, Tree};
use crate::mapping::config::backend::{BackendPlan, Framing};
use lines::LineSplitter;
use reframe_json::Limits;
use sse::SseDecoder;

/// One item decoded from the bytes.
#[derive(Debug, PartialEq)]
pub enum DecoderOutput {
    Raw(Tree),
    Ended(StreamEnd),
    /// Not JSON, and why. The caller decides whether that ends the stream.
    Malformed(String),
}

pub enum Decoder {
    Sse(SseDecoder),
    Ndjson(LineSplitter),
    /// One JSON document, read to its end.
    Json(WholeBody),
}

/// An event exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTooLarge;

#[derive(Debug)]
pub struct WholeBody {
    bytes: Vec<u8>,
    max_bytes: usize,
}

impl Decoder {
    /// `max_bytes`: of one event.
    pub fn new(backend: &BackendPlan, framing: Framing, max_bytes: usize) -> Decoder {
        match framing {
            Framing::Sse => Decoder::Sse(SseDecoder::new(backend, max_bytes)),
            Framing::Ndjson | Framing::Jsonrpc => Decoder::Ndjson(LineSplitter::new(max_bytes)),
            Framing::Json => Decoder::Json(WholeBody { bytes: Vec::new(), max_bytes }),
        }
    }

    /// If an event is too large, the events before it are in `out` nevertheless.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<DecoderOutput>) -> Result<(), EventTooLarge> {
        match self {
            Decoder::Sse(sse) => sse.push(bytes, out),
            Decoder::Ndjson(lines) => lines.push(bytes, &mut |line| {
                if !line.trim_ascii().is_empty() {
                    out.push(parse(line));
                }
                Ok(())
            }),
            Decoder::Json(whole) => {
                whole.bytes.extend_from_slice(bytes);
                if whole.bytes.len() > whole.max_bytes { Err(EventTooLarge) } else { Ok(()) }
            }
        }
    }

    /// Decodes what is left at the end of the bytes.
    pub fn finish(self, out: &mut Vec<DecoderOutput>) {
        match self {
            Decoder::Sse(sse) => sse.finish(out),
            Decoder::Ndjson(lines) => {
                let rest = lines.into_remainder();
                if !rest.trim_ascii().is_empty() {
                    out.push(parse(&rest));
                }
            }
            Decoder::Json(whole) if whole.bytes.trim_ascii().is_empty() => {}
            Decoder::Json(whole) => out.push(parse(&whole.bytes)),
        }
    }
}

fn parse(bytes: &[u8]) -> DecoderOutput {
    // The size was already checked.
    let limits = Limits { max_bytes: bytes.len(), ..Limits::default() };
    match Tree::parse_with(bytes, &limits) {
        Ok(tree) => DecoderOutput::Raw(tree),
        Err(error) => DecoderOutput::Malformed(error.to_string()),
    }
}
