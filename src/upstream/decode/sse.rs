//! Server-sent events as specified by the WHATWG: any line end, a BOM, comments, data on several lines. Unlike there,
//! an event without its final empty line counts, because some servers omit it at the end of the stream.

use super::lines::LineSplitter;
use super::{DecoderOutput, EventTooLarge, parse};
use crate::domain::{StreamEnd, Tree};
use crate::mapping::config::backend::BackendPlan;

#[derive(Debug)]
pub struct SseDecoder {
    lines: LineSplitter,
    max_bytes: usize,
    settings: SseSettings,
    event: Event,
    has_started: bool,
}

/// The stream settings of the backend's mapping.
#[derive(Debug)]
struct SseSettings {
    /// The data that ends the stream, such as `[DONE]`.
    end_marker: Option<String>,
    /// The member into which the event name is copied.
    event_member: Option<String>,
}

#[derive(Debug, Default)]
struct Event {
    name: String,
    data: Vec<u8>,
    has_data: bool,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl SseDecoder {
    pub fn new(backend: &BackendPlan, max_bytes: usize) -> SseDecoder {
        let settings = SseSettings { end_marker: backend.end.clone(), event_member: backend.event.clone() };
        SseDecoder {
            lines: LineSplitter::new(max_bytes),
            max_bytes,
            settings,
            event: Event::default(),
            has_started: false,
        }
    }

    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<DecoderOutput>) -> Result<(), EventTooLarge> {
        let SseDecoder { lines, max_bytes, settings, event, has_started } = self;
        lines.push(bytes, &mut |line| {
            let line = if *has_started { line } else { line.strip_prefix(BOM).unwrap_or(line) };
            *has_started = true;
            event.line(line, settings, out);
            if event.data.len() > *max_bytes { Err(EventTooLarge) } else { Ok(()) }
        })
    }

    pub fn finish(self, out: &mut Vec<DecoderOutput>) {
        let SseDecoder { lines, settings, mut event, has_started, .. } = self;
        let rest = lines.into_remainder();
        let rest = if has_started { &rest[..] } else { rest.strip_prefix(BOM).unwrap_or(&rest) };
        if !rest.is_empty() {
            event.line(rest, &settings, out);
        }
        event.line(b"", &settings, out);
    }
}

impl Event {
    fn line(&mut self, line: &[u8], settings: &SseSettings, out: &mut Vec<DecoderOutput>) {
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            if std::mem::take(&mut self.has_data) {
                let data = std::mem::take(&mut self.data);
                if settings.end_marker.as_ref().is_some_and(|end| data.trim_ascii() == end.as_bytes()) {
                    out.push(DecoderOutput::Ended(StreamEnd::Marker));
                } else if !data.trim_ascii().is_empty() {
                    out.push(with_event_name(parse(&data), settings.event_member.as_deref(), &name));
                }
            }
            return;
        }
        let (field, value) = match line.iter().position(|b| *b == b':') {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &b""[..]),
        };
        // `id`, `retry` and comments are not needed; `event` is, for backends that name events only there.
        if field == b"event" && settings.event_member.is_some() {
            self.name = String::from_utf8_lossy(value).into_owned();
        } else if field == b"data" {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.has_data = true;
            self.data.extend_from_slice(value);
        }
    }
}

/// Adds the name from the `event:` line, unless the data contains its own.
fn with_event_name(decoded: DecoderOutput, member: Option<&str>, name: &str) -> DecoderOutput {
    match (decoded, member) {
        (DecoderOutput::Raw(mut raw), Some(member)) if !name.is_empty() && raw.as_map().is_some() => {
            if raw.get(member).is_none_or(Tree::is_null) {
                raw.insert(member, Tree::from(name));
            }
            DecoderOutput::Raw(raw)
        }
        (decoded, _) => decoded,
    }
}
