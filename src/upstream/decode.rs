//! Bytes → raw events, by the framing of the backend's mapping. Push decoders without IO: bytes may be split anywhere.

use super::aws_eventstream::AwsEventstreamDecoder;
use crate::domain::{StreamEnd, Tree};
use crate::engine::event_cache::{DeltaEvent, EventCache};
pub use crate::engine::lines::EventTooLarge;
use crate::engine::lines::LineSplitter;
use crate::engine::sse_parser::{SseEvent, SseParser};
use crate::mapping::config::backend::{BackendPlan, Framing};
use reframe_json::Limits;

/// One item decoded from the bytes.
#[derive(Debug, PartialEq)]
pub enum DecoderOutput {
    Raw(Tree),
    /// A raw event of a known shape.
    Delta(DeltaEvent),
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
    cache: Option<EventCache>,
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
    cache: Option<EventCache>,
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
                let lines = LineSplitter::new(max_bytes);
                Decoder::Ndjson(NdjsonDecoder { lines, data_bytes: 0, cache: None })
            }
            Framing::AwsEventstream => {
                Decoder::AwsEventstream(AwsEventstreamDecoder::new(backend.event.clone(), max_bytes))
            }
            Framing::Json => Decoder::Json(WholeBody { bytes: Vec::new(), max_bytes }),
        }
    }

    /// Reads events of known shapes without a tree.
    pub fn with_cache(mut self, cache: EventCache) -> Decoder {
        match &mut self {
            Decoder::Sse(SseDecoder { settings: SseSettings { cache: slot, .. }, .. })
            | Decoder::Ndjson(NdjsonDecoder { cache: slot, .. }) => *slot = Some(cache),
            Decoder::AwsEventstream(_) | Decoder::Json(_) => {}
        }
        self
    }

    /// The events so far have opened the turn.
    pub fn mark_turn_open(&mut self) {
        let cache = match self {
            Decoder::Sse(sse) => &mut sse.settings.cache,
            Decoder::Ndjson(ndjson) => &mut ndjson.cache,
            Decoder::AwsEventstream(_) | Decoder::Json(_) => return,
        };
        if let Some(cache) = cache {
            cache.mark_turn_open();
        }
    }

    /// If an event is too large, the events before it are in `out` nevertheless.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<DecoderOutput>) -> Result<(), EventTooLarge> {
        match self {
            Decoder::Sse(sse) => sse.push(bytes, out),
            Decoder::Ndjson(NdjsonDecoder { lines, data_bytes, cache }) => lines.push(bytes, &mut |line| {
                if !line.trim_ascii().is_empty() {
                    *data_bytes += line.len() as u64;
                    out.push(decode_data(cache.as_mut(), "", line, || parse(line)));
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
            Decoder::Ndjson(NdjsonDecoder { lines, data_bytes, .. }) => {
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
        let (end_marker, event_member) = (backend.end.clone(), backend.event.clone());
        let settings = SseSettings { end_marker, event_member, cache: None };
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
        let SseDecoder { lines, mut parser, mut settings, .. } = self;
        for line in [&lines.into_remainder()[..], b""] {
            out.extend(parser.line(line).and_then(|event| settings.decode(&event)));
        }
    }
}

impl SseSettings {
    fn decode(&mut self, event: &SseEvent) -> Option<DecoderOutput> {
        let data = event.data.trim_ascii();
        if self.end_marker.as_ref().is_some_and(|end| data == end.as_bytes()) {
            return Some(DecoderOutput::Ended(StreamEnd::Marker));
        }
        if data.is_empty() {
            return None;
        }
        let SseSettings { event_member, cache, .. } = self;
        Some(decode_data(cache.as_mut(), event.name, event.data, || parse_named(event, event_member.as_deref())))
    }
}

/// With a cache, an event of a known shape is not parsed, and others are learned.
fn decode_data(
    cache: Option<&mut EventCache>,
    name: &str,
    data: &[u8],
    parse: impl FnOnce() -> DecoderOutput,
) -> DecoderOutput {
    let Some(cache) = cache else { return parse() };
    if let Some(delta) = cache.find(name, data) {
        return DecoderOutput::Delta(delta);
    }
    let decoded = parse();
    if let DecoderOutput::Raw(raw) = &decoded {
        cache.learn(name, data, raw);
    }
    decoded
}

/// The data of an event, with its name as a member if the backend's mapping wants it.
fn parse_named(event: &SseEvent, member: Option<&str>) -> DecoderOutput {
    let mut decoded = parse(event.data);
    // The name from the `event:` line is added unless the data contains its own.
    if let (DecoderOutput::Raw(raw), Some(member)) = (&mut decoded, member)
        && !event.name.is_empty()
        && raw.as_map().is_some()
        && raw.get(member).is_none_or(Tree::is_null)
    {
        raw.insert(member, Tree::from(event.name));
    }
    decoded
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
