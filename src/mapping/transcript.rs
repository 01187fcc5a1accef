//! A recorded turn, one JSON object a line. The first names the backend whose rules read it; each other one is what
//! arrived: `raw` (an event), `end` (the framing's end marker) or `cut` (the connection was lost), `at` how many
//! milliseconds after the request. After the last line the backend has closed the connection.

use super::fields::Cx;
use crate::canon::Tree;
use crate::diag::{Code, Diagnostic, FileId, Span};

#[derive(Debug)]
pub struct Transcript {
    pub name: String,
    pub backend: String,
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

pub fn parse(name: &str, file: FileId, text: &str, cx: Cx) -> Option<Transcript> {
    let mut lines = text_lines(text).filter(|(_, line)| !line.trim().is_empty());
    let bad = |start: usize, line: &str, why: String| {
        let span = Span::new(file, start, start + line.len());
        cx.add(Diagnostic::new(Code::BadTranscript, span, why).help(
            "first `{\"transcript\":\"BACKEND\"}`, then `{\"at\":12,\"raw\":{…}}`, `{\"end\":true}` or `{\"cut\":\"why\"}`",
        ));
    };
    let Some((start, first)) = lines.next() else {
        bad(0, "", "this transcript is empty".into());
        return None;
    };
    let head = Tree::parse(first.as_bytes()).unwrap_or_default();
    let Some(backend) = head.get("transcript").and_then(Tree::as_str).map(str::to_owned) else {
        bad(start, first, "the first line must name the backend".into());
        return None;
    };
    let mut sound = true;
    let mut arrivals = Vec::new();
    for (start, line) in lines {
        match arrival(line) {
            Ok(line) => arrivals.push(line),
            Err(why) => {
                sound = false;
                bad(start, line, why);
            }
        }
    }
    sound.then(|| Transcript { name: name.to_owned(), backend, lines: arrivals })
}

fn arrival(line: &str) -> Result<Line, String> {
    let tree = Tree::parse(line.as_bytes()).map_err(|e| format!("this line is not JSON: {e}"))?;
    let at_ms = tree.get("at").and_then(Tree::as_u64).unwrap_or(0);
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
