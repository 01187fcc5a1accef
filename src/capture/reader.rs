//! Parses a captured text into frames or a body, each with its line. Accepts any line ending, a byte order mark and the
//! response headers that `curl -i` prints.

use crate::domain::Tree;
use crate::engine::sse_parser::{SseEvent, SseParser};

/// A parsed capture.
#[derive(Debug)]
pub enum Capture {
    Body { tree: Tree, text: String, line: usize },
    Stream { kind: StreamKind, events: Vec<CapturedEvent>, last: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    Sse,
    Ndjson,
}

/// One event of a stream.
#[derive(Debug)]
pub struct CapturedEvent {
    /// The line of its first `data:` field.
    pub line: usize,
    pub event: Option<String>,
    pub text: String,
    /// The text parsed as JSON, or the error.
    pub data: Result<Tree, String>,
}

/// Why a text cannot be parsed.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadError {
    Empty,
    UnknownFormat,
    /// Truncated or invalid JSON; reported as a finding because it has a line.
    InvalidJson {
        line: usize,
        why: String,
    },
}

pub fn read(text: &str) -> Result<Capture, ReadError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<&str> = lines(text);
    let skipped = response_header_lines(&lines);
    let rest = &lines[skipped..];
    let Some(first) = rest.iter().position(|l| !l.trim().is_empty()) else { return Err(ReadError::Empty) };
    let start = skipped + first;
    if !rest[first].trim_start().starts_with(['{', '[']) {
        let is_data = |l: &&str| l.starts_with("data:");
        return if rest.iter().any(is_data) { Ok(sse(rest, skipped)) } else { Err(ReadError::UnknownFormat) };
    }
    let body = lines[start..].join("\n");
    match Tree::parse(body.as_bytes()) {
        Ok(tree) => Ok(Capture::Body { tree, text: body, line: start + 1 }),
        Err(_) if Tree::parse(rest[first].as_bytes()).is_ok() => Ok(ndjson(rest, skipped)),
        Err(error) => {
            Err(ReadError::InvalidJson { line: start + error.line, why: format!("invalid JSON: {}", error.message) })
        }
    }
}

/// Lines end with LF, CRLF or CR, as in an event stream.
fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\n', '\r']) {
        lines.push(&rest[..at]);
        let length = if rest[at..].starts_with("\r\n") { 2 } else { 1 };
        rest = &rest[at + length..];
    }
    lines.push(rest);
    lines
}

/// The number of lines of HTTP response headers. A `100 Continue` or a redirect may precede the final response.
fn response_header_lines(lines: &[&str]) -> usize {
    let mut at = 0;
    while lines.get(at).is_some_and(|l| l.starts_with("HTTP/")) {
        at += lines[at..].iter().position(|l| l.is_empty()).map_or(lines.len() - at, |blank| blank + 1);
    }
    at
}

fn ndjson(lines: &[&str], skipped: usize) -> Capture {
    let non_blank = lines.iter().enumerate().filter(|(_, l)| !l.trim().is_empty());
    let events: Vec<CapturedEvent> =
        non_blank.map(|(at, line)| captured_event(skipped + at + 1, None, (*line).to_owned())).collect();
    let last = events.last().map_or(1, |c| c.line);
    Capture::Stream { kind: StreamKind::Ndjson, events, last }
}

fn sse(lines: &[&str], skipped: usize) -> Capture {
    let mut parser = SseParser::default();
    let mut events = Vec::new();
    // The blank line at the end completes an event that the capture truncates.
    for line in lines.iter().copied().chain([""]) {
        if let Some(SseEvent { name, data, line }) = parser.line(line.as_bytes()) {
            let name = (!name.is_empty()).then(|| name.to_owned());
            events.push(captured_event(skipped + line, name, String::from_utf8_lossy(data).into_owned()));
        }
    }
    let last = lines.iter().rposition(|line| !line.is_empty()).map_or(1, |at| skipped + at + 1);
    Capture::Stream { kind: StreamKind::Sse, events, last }
}

fn captured_event(line: usize, event: Option<String>, text: String) -> CapturedEvent {
    let data = Tree::parse(text.as_bytes()).map_err(|e| format!("column {}: {}", e.column, e.message));
    CapturedEvent { line, event, text, data }
}
