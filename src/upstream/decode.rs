//! Bytes → raw events, by the framing of the backend's mapping. Push decoders without IO: bytes may be split anywhere.

use super::aws_eventstream::AwsEventstreamDecoder;
use crate::domain::{StreamEnd, Tree};
pub use crate::engine::lines::EventTooLarge;
use crate::engine::lines::LineSplitter;
use crate::engine::sse_parser::{SseEvent, SseParser};
use crate::mapping::config::backend::{BackendPlan, Framing};
use reframe_json::Limits;

/// One item decoded from the bytes.
#[derive(Debug, PartialEq)]
pub enum DecoderOutput {
    Raw(Tree),
    Ended(StreamEnd),
    /// Not JSON, and why. The caller decides whether that ends the stream.
    Malformed(String),
    /// The bytes from here on cannot be split into events, and why.
    Corrupt(String),
}

pub enum Decoder {
    Sse(SseDecoder),
    Ndjson(NdjsonDecoder),
    AwsEventstream(AwsEventstreamDecoder),
    /// One JSON document, read to its end.
    Json(WholeBody),
}

/// JSON lines.
#[derive(Debug)]
pub struct NdjsonDecoder {
    lines: LineSplitter,
    /// Bytes of complete lines, without white space.
    data_bytes: u64,
}

/// Server-sent events. An event without its final empty line counts, because some servers omit it at the end of the
/// stream.
#[derive(Debug)]
pub struct SseDecoder {
    lines: LineSplitter,
    parser: SseParser,
    max_bytes: usize,
    settings: SseSettings,
    /// Bytes of complete `data:` lines.
    data_bytes: u64,
}

/// The stream settings of the backend's mapping.
#[derive(Debug)]
struct SseSettings {
    /// The data that ends the stream, such as `[DONE]`.
    end_marker: Option<String>,
    /// The member into which the event name is copied.
    event_member: Option<String>,
}

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
            Framing::Ndjson | Framing::Jsonrpc => {
                Decoder::Ndjson(NdjsonDecoder { lines: LineSplitter::new(max_bytes), data_bytes: 0 })
            }
            Framing::AwsEventstream => {
                Decoder::AwsEventstream(AwsEventstreamDecoder::new(backend.event.clone(), max_bytes))
            }
            Framing::Json => Decoder::Json(WholeBody { bytes: Vec::new(), max_bytes }),
        }
    }

    /// If an event is too large, the events before it are in `out` nevertheless.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<DecoderOutput>) -> Result<(), EventTooLarge> {
        match self {
            Decoder::Sse(sse) => sse.push(bytes, out),
            Decoder::Ndjson(NdjsonDecoder { lines, data_bytes }) => lines.push(bytes, &mut |line| {
                if !line.trim_ascii().is_empty() {
                    *data_bytes += line.len() as u64;
                    out.push(parse(line));
                }
                Ok(())
            }),
            Decoder::AwsEventstream(messages) => messages.push(bytes, out),
            Decoder::Json(whole) => {
                whole.bytes.extend_from_slice(bytes);
                if whole.bytes.len() > whole.max_bytes { Err(EventTooLarge) } else { Ok(()) }
            }
        }
    }

    /// How many bytes of data were received: without comments, other fields and white space, by which a backend shows
    /// only that its connection is open.
    pub fn data_bytes(&self) -> u64 {
        match self {
            Decoder::Sse(sse) => {
                let partial = sse.lines.partial();
                sse.data_bytes + if is_data(partial) { partial.len() as u64 } else { 0 }
            }
            Decoder::Ndjson(NdjsonDecoder { lines, data_bytes }) => {
                data_bytes + lines.partial().trim_ascii().len() as u64
            }
            Decoder::AwsEventstream(messages) => messages.data_bytes(),
            Decoder::Json(whole) => whole.bytes.len() as u64,
        }
    }

    /// Decodes what is left at the end of the bytes.
    pub fn finish(self, out: &mut Vec<DecoderOutput>) {
        match self {
            Decoder::Sse(sse) => sse.finish(out),
            Decoder::Ndjson(NdjsonDecoder { lines, .. }) => {
                let rest = lines.into_remainder();
                if !rest.trim_ascii().is_empty() {
                    out.push(parse(&rest));
                }
            }
            Decoder::AwsEventstream(messages) => messages.finish(out),
            Decoder::Json(whole) if whole.bytes.trim_ascii().is_empty() => {}
            Decoder::Json(whole) => out.push(parse(&whole.bytes)),
        }
    }
}

impl SseDecoder {
    fn new(backend: &BackendPlan, max_bytes: usize) -> SseDecoder {
        let settings = SseSettings { end_marker: backend.end.clone(), event_member: backend.event.clone() };
        SseDecoder {
            lines: LineSplitter::new(max_bytes),
            parser: SseParser::default(),
            max_bytes,
            settings,
            data_bytes: 0,
        }
    }

    fn push(&mut self, bytes: &[u8], out: &mut Vec<DecoderOutput>) -> Result<(), EventTooLarge> {
        let SseDecoder { lines, parser, max_bytes, settings, data_bytes } = self;
        lines.push(bytes, &mut |line| {
            *data_bytes += if is_data(line) { line.len() as u64 } else { 0 };
            out.extend(parser.line(line).and_then(|event| settings.decode(&event)));
            if parser.data_len() > *max_bytes { Err(EventTooLarge) } else { Ok(()) }
        })
    }

    fn finish(self, out: &mut Vec<DecoderOutput>) {
        let SseDecoder { lines, mut parser, settings, .. } = self;
        for line in [&lines.into_remainder()[..], b""] {
            out.extend(parser.line(line).and_then(|event| settings.decode(&event)));
        }
    }
}

impl SseSettings {
    fn decode(&self, event: &SseEvent) -> Option<DecoderOutput> {
        let data = event.data.trim_ascii();
        if self.end_marker.as_ref().is_some_and(|end| data == end.as_bytes()) {
            return Some(DecoderOutput::Ended(StreamEnd::Marker));
        }
        let mut decoded = (!data.is_empty()).then(|| parse(event.data))?;
        // The name from the `event:` line is added unless the data contains its own.
        if let (DecoderOutput::Raw(raw), Some(member)) = (&mut decoded, &self.event_member)
            && !event.name.is_empty()
            && raw.as_map().is_some()
            && raw.get(member).is_none_or(Tree::is_null)
        {
            raw.insert(member.as_str(), Tree::from(event.name));
        }
        Some(decoded)
    }
}

/// Whether a line, or the part of it that was received, is a `data:` field with a value.
fn is_data(line: &[u8]) -> bool {
    line.strip_prefix(b"data:").is_some_and(|value| !value.trim_ascii().is_empty())
}

pub(super) fn parse(bytes: &[u8]) -> DecoderOutput {
    // The size was already checked.
    let limits = Limits { max_bytes: bytes.len(), ..Limits::default() };
    match Tree::parse_with(bytes, &limits) {
        Ok(tree) => DecoderOutput::Raw(tree),
        Err(error) => DecoderOutput::Malformed(error.to_string()),
    }
}
