//! Server-sent events, as the WHATWG has them: any line end, a BOM, comments, data over several lines. An event that
//! the stream ends in the middle of still counts, for there are servers that save the last empty line.

use super::lines::Lines;
use super::{Decoded, TooLarge, parse};
use crate::domain::{Ended, Tree};
use crate::mapping::config::backend::BackendPlan;

#[derive(Debug)]
pub struct Sse {
    lines: Lines,
    most: usize,
    words: Words,
    event: Event,
    began: bool,
}

/// What the backend's mapping says about its streams.
#[derive(Debug)]
struct Words {
    /// The data line that ends the stream, such as a marker in brackets.
    end: Option<String>,
    /// The member that takes the name of an event.
    event: Option<String>,
}

#[derive(Debug, Default)]
struct Event {
    name: String,
    data: Vec<u8>,
    has_data: bool,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl Sse {
    pub fn new(backend: &BackendPlan, most: usize) -> Sse {
        let words = Words { end: backend.end.clone(), event: backend.event.clone() };
        Sse { lines: Lines::new(most), most, words, event: Event::default(), began: false }
    }

    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Decoded>) -> Result<(), TooLarge> {
        let Sse { lines, most, words, event, began } = self;
        lines.push(bytes, &mut |line| {
            let line = if *began { line } else { line.strip_prefix(BOM).unwrap_or(line) };
            *began = true;
            event.line(line, words, out);
            if event.data.len() > *most { Err(TooLarge) } else { Ok(()) }
        })
    }

    pub fn finish(self, out: &mut Vec<Decoded>) {
        let Sse { lines, words, mut event, began, .. } = self;
        let rest = lines.rest();
        let rest = if began { &rest[..] } else { rest.strip_prefix(BOM).unwrap_or(&rest) };
        if !rest.is_empty() {
            event.line(rest, &words, out);
        }
        event.line(b"", &words, out);
    }
}

impl Event {
    fn line(&mut self, line: &[u8], words: &Words, out: &mut Vec<Decoded>) {
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            if std::mem::take(&mut self.has_data) {
                let data = std::mem::take(&mut self.data);
                if words.end.as_ref().is_some_and(|end| data.trim_ascii() == end.as_bytes()) {
                    out.push(Decoded::Ended(Ended::Marker));
                } else if !data.trim_ascii().is_empty() {
                    out.push(named(parse(&data), words.event.as_deref(), &name));
                }
            }
            return;
        }
        let (field, value) = match line.iter().position(|b| *b == b':') {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &b""[..]),
        };
        // `id`, `retry` and comments say nothing that the data does not; `event` does, for some.
        if field == b"event" && words.event.is_some() {
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

/// The data says its own name, or is given the one that stood before it.
fn named(decoded: Decoded, member: Option<&str>, name: &str) -> Decoded {
    match (decoded, member) {
        (Decoded::Raw(mut raw), Some(member)) if !name.is_empty() && raw.as_map().is_some() => {
            if raw.get(member).is_none_or(Tree::is_null) {
                raw.insert(member, Tree::from(name));
            }
            Decoded::Raw(raw)
        }
        (decoded, _) => decoded,
    }
}
