//! Parses server-sent events as specified by the WHATWG, line by line: a BOM, comments, data on several lines. The same
//! for a backend's stream and for a captured one.

/// Keeps its buffers from one event to the next.
#[derive(Debug, Default)]
pub struct SseParser {
    name: String,
    data: Vec<u8>,
    /// The number of lines read.
    lines: usize,
    /// The line of the first `data:` field, if there was one.
    data_line: Option<usize>,
    is_complete: bool,
}

/// An event with data. Events without data do not count.
#[derive(Debug, PartialEq, Eq)]
pub struct SseEvent<'p> {
    /// Empty if the event has no `event:` field.
    pub name: &'p str,
    pub data: &'p [u8],
    /// The line of the first `data:` field, counted from 1.
    pub line: usize,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl SseParser {
    /// Reads one line. The empty line after an event completes it; so does an empty line at the end of a stream, for
    /// servers that omit it.
    pub fn line(&mut self, line: &[u8]) -> Option<SseEvent<'_>> {
        if std::mem::take(&mut self.is_complete) {
            self.name.clear();
            self.data.clear();
            self.data_line = None;
        }
        self.lines += 1;
        let line = if self.lines == 1 { line.strip_prefix(BOM).unwrap_or(line) } else { line };
        if line.is_empty() {
            self.is_complete = true;
            return self.data_line.map(|line| SseEvent { name: &self.name, data: &self.data, line });
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (line, &b""[..]),
        };
        // `id`, `retry` and comments are not part of the response.
        if field == b"event" {
            self.name.clear();
            self.name.push_str(&String::from_utf8_lossy(value));
        } else if field == b"data" {
            if self.data_line.is_some() {
                self.data.push(b'\n');
            }
            self.data_line.get_or_insert(self.lines);
            self.data.extend_from_slice(value);
        }
        None
    }

    /// How many bytes of data are buffered.
    pub fn data_len(&self) -> usize {
        self.data.len()
    }
}
