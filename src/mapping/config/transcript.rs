//! A recorded turn, one JSON object a line. The first names the backend whose rules read it; each other one is what
//! arrived: `raw` (an event), `end` (the framing's end marker) or `cut` (the connection was lost), `at` how many
//! milliseconds after the request. After the last line the backend has closed the connection.

use crate::diagnostics::{Code, Diagnostic, FileId, Span, did_you_mean};
use crate::domain::Tree;
use crate::mapping::source::field_reader::Cx;

#[derive(Debug)]
pub struct Transcript {
    pub name: String,
    pub backend: String,
    pub backend_span: Span,
    pub lines: Vec<Line>,
}

#[derive(Clone, Debug)]
pub struct Line {
    pub at_ms: u64,
    pub what: Arrival,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    Raw(Tree),
    End,
    Cut(String),
}

/// `codex/tool-call` is `transcripts/codex/tool-call.jsonl` or `transcripts/codex/tool-call/events.jsonl`.
pub fn name_of(file: &str) -> &str {
    file.trim_end_matches(".jsonl").trim_end_matches("/events")
}

pub fn parse(name: &str, file: FileId, text: &str, cx: Cx) -> Option<Transcript> {
    let mut lines = text_lines(text).filter(|(_, line)| !line.trim().is_empty());
    let bad = |start: usize, end: usize, why: String| {
        cx.add(Diagnostic::new(Code::BadTranscript, Span::new(file, start, end), why).help(
            "first `{\"transcript\":\"BACKEND\"}`, then `{\"at\":12,\"raw\":{…}}`, `{\"end\":true}` or `{\"cut\":\"why\"}`",
        ));
    };
    // A line to read; what is not JSON is said here, where the text breaks off.
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
    let mut sound = true;
    let mut arrivals = Vec::new();
    for (start, line) in lines {
        let Some(tree) = read(start, line) else {
            sound = false;
            continue;
        };
        match arrival(&tree) {
            Ok(line) => arrivals.push(line),
            Err(why) => {
                sound = false;
                bad(start, start + line.len(), why);
            }
        }
    }
    sound.then(|| Transcript { name: name.to_owned(), backend, backend_span, lines: arrivals })
}

const MEMBERS: &[&str] = &["at", "raw", "end", "cut"];

fn arrival(tree: &Tree) -> Result<Line, String> {
    let members: Vec<&str> = tree.as_map().into_iter().flatten().map(|(key, _)| &**key).collect();
    if let Some(unknown) = members.iter().find(|key| !MEMBERS.contains(key)) {
        let near = did_you_mean(unknown, MEMBERS.iter().copied()).map(|near| format!(": did you mean `{near}`?"));
        return Err(format!("a line of a transcript has no `{unknown}`{}", near.unwrap_or_default()));
    }
    let at_ms = match tree.get("at") {
        None => 0,
        Some(at) => at.as_u64().ok_or("`at` is a whole number of milliseconds, 0 or more")?,
    };
    let what = match (tree.get("raw"), tree.get("end"), tree.get("cut")) {
        (Some(raw), None, None) => Arrival::Raw(raw.clone()),
        (None, Some(_), None) => Arrival::End,
        (None, None, Some(why)) => Arrival::Cut(why.as_str().unwrap_or("connection lost").to_owned()),
        _ => return Err("a line has exactly one of `raw`, `end` and `cut`".into()),
    };
    Ok(Line { at_ms, what })
}

fn text_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len() + 1;
        Some((start, line.trim_end_matches('\r')))
    })
}
