//! Server-sent events, as the WHATWG has them: any line end, a BOM, comments, data over several lines. An event that
//! the stream ends in the middle of still counts, for there are servers that save the last empty line.

use super::lines::Lines;
use super::{Decoded, MAX_EVENT_BYTES, TooLarge, parse};
use crate::canon::Ended;

#[derive(Debug, Default)]
pub struct Sse {
    lines: Lines,
    /// The data line that ends the stream, such as a marker in brackets.
    end: Option<String>,
    event: Event,
    began: bool,
}

#[derive(Debug, Default)]
struct Event {
    data: Vec<u8>,
    has_data: bool,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl Sse {
    pub fn new(end: Option<String>) -> Sse {
        Sse { end, ..Sse::default() }
    }

    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Decoded>) -> Result<(), TooLarge> {
        let Sse { lines, end, event, began } = self;
        lines.push(bytes, &mut |line| {
            let line = if *began { line } else { line.strip_prefix(BOM).unwrap_or(line) };
            *began = true;
            event.line(line, end.as_deref(), out);
        })?;
        if event.data.len() > MAX_EVENT_BYTES { Err(TooLarge) } else { Ok(()) }
    }

    pub fn finish(self, out: &mut Vec<Decoded>) {
        let Sse { lines, end, mut event, began } = self;
        let rest = lines.rest();
        let rest = if began { &rest[..] } else { rest.strip_prefix(BOM).unwrap_or(&rest) };
        if !rest.is_empty() {
            event.line(rest, end.as_deref(), out);
        }
        event.line(b"", end.as_deref(), out);
    }
}

impl Event {
    fn line(&mut self, line: &[u8], end: Option<&str>, out: &mut Vec<Decoded>) {
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                let data = std::mem::take(&mut self.data);
                if end.is_some_and(|end| data.trim_ascii() == end.as_bytes()) {
                    out.push(Decoded::Ended(Ended::Marker));
                } else if !data.trim_ascii().is_empty() {
                    out.push(parse(&data));
                }
            }
            return;
        }
        let (field, value) = match line.iter().position(|b| *b == b':') {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &b""[..]),
        };
        // `event`, `id`, `retry` and comments say nothing that the data does not.
        if field == b"data" {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.has_data = true;
            self.data.extend_from_slice(value);
        }
    }
}
