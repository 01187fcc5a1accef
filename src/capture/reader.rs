//! A captured text → the frames or the body in it, each with its line. Any line end, a byte order mark, and the head
//! that `curl -i` prints are fine.

use crate::domain::Tree;

/// What a text turned out to be.
#[derive(Debug)]
pub enum Capture {
    Body { tree: Tree, text: String, line: usize },
    Stream { kind: StreamKind, chunks: Vec<Chunk>, last: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    Sse,
    Lines,
}

/// One event of a stream.
#[derive(Debug)]
pub struct Chunk {
    /// Of its first `data:` line.
    pub line: usize,
    pub event: Option<String>,
    pub text: String,
    /// What the text is as JSON, or why it is none.
    pub data: Result<Tree, String>,
}

/// Why a text cannot be looked at.
#[derive(Debug, PartialEq, Eq)]
pub enum Unreadable {
    Empty,
    Neither,
    /// JSON that breaks off or goes wrong: a finding, for it has a line.
    Broken {
        line: usize,
        why: String,
    },
}

pub fn read(text: &str) -> Result<Capture, Unreadable> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<&str> = lines(text);
    let skipped = head(&lines);
    let rest = &lines[skipped..];
    let Some(first) = rest.iter().position(|l| !l.trim().is_empty()) else { return Err(Unreadable::Empty) };
    let begin = skipped + first;
    if !rest[first].trim_start().starts_with(['{', '[']) {
        let is_data = |l: &&str| l.starts_with("data:");
        return if rest.iter().any(is_data) { Ok(sse(rest, skipped)) } else { Err(Unreadable::Neither) };
    }
    let body = lines[begin..].join("\n");
    match Tree::parse(body.as_bytes()) {
        Ok(tree) => Ok(Capture::Body { tree, text: body, line: begin + 1 }),
        Err(_) if Tree::parse(rest[first].as_bytes()).is_ok() => Ok(each_line(rest, skipped)),
        Err(error) => {
            Err(Unreadable::Broken { line: begin + error.line, why: format!("this is not JSON: {}", error.message) })
        }
    }
}

/// LF, CRLF or CR, as an event stream has it.
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

/// How many lines the heads of HTTP answers take: a `100 Continue` or a redirect may stand before the one that counts.
fn head(lines: &[&str]) -> usize {
    let mut at = 0;
    while lines.get(at).is_some_and(|l| l.starts_with("HTTP/")) {
        at += lines[at..].iter().position(|l| l.is_empty()).map_or(lines.len() - at, |blank| blank + 1);
    }
    at
}

fn each_line(lines: &[&str], skipped: usize) -> Capture {
    let full = lines.iter().enumerate().filter(|(_, l)| !l.trim().is_empty());
    let chunks: Vec<Chunk> = full.map(|(at, line)| chunk(skipped + at + 1, None, (*line).to_owned())).collect();
    let last = chunks.last().map_or(1, |c| c.line);
    Capture::Stream { kind: StreamKind::Lines, chunks, last }
}

fn sse(lines: &[&str], skipped: usize) -> Capture {
    let mut chunks = Vec::new();
    let (mut event, mut data): (Option<String>, Option<(usize, String)>) = (None, None);
    let mut last = 1;
    // An event that the text ends in the middle of still counts.
    for (at, line) in lines.iter().copied().chain([""]).enumerate() {
        let number = skipped + at + 1;
        if line.is_empty() {
            if let Some((line, text)) = data.take() {
                chunks.push(chunk(line, event.take(), text));
            }
            event = None;
            continue;
        }
        last = number;
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match (field, &mut data) {
            ("event", _) => event = Some(value.to_owned()),
            ("data", Some((_, text))) => {
                text.push('\n');
                text.push_str(value);
            }
            ("data", None) => data = Some((number, value.to_owned())),
            // `id`, `retry` and comments say nothing about the answer.
            _ => {}
        }
    }
    Capture::Stream { kind: StreamKind::Sse, chunks, last }
}

fn chunk(line: usize, event: Option<String>, text: String) -> Chunk {
    let data = Tree::parse(text.as_bytes()).map_err(|e| format!("column {}: {}", e.column, e.message));
    Chunk { line, event, text, data }
}
