//! A transcript: a recorded turn, one JSON object per line. The first line names the backend file that decodes it. Each
//! other line is `raw` (an event), `idle` (a keepalive is due), `end` (the end marker of the framing) or `disconnect` (the
//! connection was lost), with `at` in milliseconds after the request. After the last line the backend has closed the
//! connection.

use crate::diagnostics::{Code, Diagnostic, FileId, Span, did_you_mean};
use crate::domain::Tree;
use crate::mapping::source::field_reader::LoadContext;

#[derive(Debug)]
pub struct Transcript {
    pub name: String,
    pub backend: String,
    pub backend_span: Span,
    pub lines: Vec<TranscriptLine>,
}

#[derive(Clone, Debug)]
pub struct TranscriptLine {
    pub at_ms: u64,
    pub event: RecordedEvent,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RecordedEvent {
    Raw(Tree),
    /// The backend is silent until a keepalive is due.
    Idle,
    End,
    Disconnect(String),
}

/// `codex/tool-call` is `transcripts/codex/tool-call.jsonl` or `transcripts/codex/tool-call/events.jsonl`.
pub fn name_of(file: &str) -> &str {
    file.trim_end_matches(".jsonl").trim_end_matches("/events")
}

pub fn parse(name: &str, file: FileId, text: &str, cx: LoadContext) -> Option<Transcript> {
    let mut lines = text_lines(text).filter(|(_, line)| !line.trim().is_empty());
    let bad = |start: usize, end: usize, why: String| {
        cx.add(Diagnostic::new(Code::BadTranscript, Span::new(file, start, end), why).help(
            "first `{\"transcript\":\"BACKEND\"}`, then `{\"at\":12,\"raw\":{…}}`, `{\"end\":true}` or \
             `{\"disconnect\":\"why\"}`",
        ));
    };
    // Parses a line. Reports a JSON error at its position.
    let read = |start: usize, line: &str| match Tree::parse(line.as_bytes()) {
        Ok(tree) => Some(tree),
        Err(error) => {
            let at = start + error.offset.min(line.len().saturating_sub(1));
            bad(at, at, format!("this line is not JSON: {}", error.message));
            None
        }
    };
    let Some((start, first)) = lines.next() else {
        bad(0, 0, "this transcript is empty".into());
        return None;
    };
    let head = read(start, first)?;
    let Some(backend) = head.get("transcript").and_then(Tree::as_str).map(str::to_owned) else {
        bad(start, start + first.len(), "the first line must name the backend".into());
        return None;
    };
    let backend_span = cx.sources.within(Span::new(file, start, start + first.len()), &format!("\"{backend}\""));
    let mut valid = true;
    let mut parsed = Vec::new();
    for (start, line) in lines {
        let Some(tree) = read(start, line) else {
            valid = false;
            continue;
        };
        match parse_line(&tree) {
            Ok(line) => parsed.push(line),
            Err(why) => {
                valid = false;
                bad(start, start + line.len(), why);
            }
        }
    }
    valid.then(|| Transcript { name: name.to_owned(), backend, backend_span, lines: parsed })
}

const MEMBERS: &[&str] = &["at", "raw", "idle", "end", "disconnect"];

fn parse_line(tree: &Tree) -> Result<TranscriptLine, String> {
    let members: Vec<&str> = tree.as_map().into_iter().flatten().map(|(key, _)| &**key).collect();
    if let Some(unknown) = members.iter().find(|key| !MEMBERS.contains(key)) {
        let near = did_you_mean(unknown, MEMBERS.iter().copied()).map(|near| format!(": did you mean `{near}`?"));
        return Err(format!("unknown member `{unknown}` in a line of a transcript{}", near.unwrap_or_default()));
    }
    let at_ms = match tree.get("at") {
        None => 0,
        Some(at) => at.as_u64().ok_or("`at` must be a non-negative integer (milliseconds)")?,
    };
    let event = match ["raw", "idle", "end", "disconnect"].map(|name| tree.get(name)) {
        [Some(raw), None, None, None] => RecordedEvent::Raw(raw.clone()),
        [None, Some(_), None, None] => RecordedEvent::Idle,
        [None, None, Some(_), None] => RecordedEvent::End,
        [None, None, None, Some(why)] => {
            RecordedEvent::Disconnect(why.as_str().unwrap_or("connection lost").to_owned())
        }
        _ => return Err("a line must have exactly one of `raw`, `idle`, `end` and `disconnect`".into()),
    };
    Ok(TranscriptLine { at_ms, event })
}

fn text_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len() + 1;
        Some((start, line.trim_end_matches('\r')))
    })
}
