//! Parses SSE streams with event names and comments.

use super::client::{BodyChunk, Reply, ResponseHead, ResponseStream};
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Instant;

/// An event or a comment of an SSE stream.
#[derive(Clone, Debug)]
pub struct SseMessage {
    pub at: Instant,
    pub content: SseContent,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SseContent {
    Event { name: Option<String>, data: String },
    Comment(String),
}

/// A stream that is still arriving. Dropping it closes the connection.
pub struct SseStream {
    stream: ResponseStream,
    parser: SseParser,
}

#[derive(Default)]
struct SseParser {
    rest: String,
    ready: VecDeque<SseMessage>,
}

impl ResponseStream {
    pub fn sse(self) -> SseStream {
        SseStream { stream: self, parser: SseParser::default() }
    }
}

impl SseStream {
    pub fn head(&self) -> &ResponseHead {
        &self.stream.head
    }

    /// The next event or comment, when it comes; `None` at the end.
    pub fn next(&mut self) -> Option<SseMessage> {
        while self.parser.ready.is_empty() {
            match self.stream.next_chunk() {
                Some(chunk) => self.parser.add(&chunk),
                None => {
                    self.parser.end();
                    return None;
                }
            }
        }
        self.parser.ready.pop_front()
    }

    pub fn rest(mut self) -> Vec<SseMessage> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

impl Reply {
    pub fn sse_messages(&self) -> Vec<SseMessage> {
        let mut parser = SseParser::default();
        self.chunks.iter().for_each(|chunk| parser.add(chunk));
        parser.end();
        parser.ready.into()
    }
}

impl SseParser {
    fn add(&mut self, chunk: &BodyChunk) {
        self.rest += std::str::from_utf8(&chunk.bytes).unwrap();
        while let Some((block, rest)) = self.rest.split_once("\n\n") {
            let content = parse_block(block);
            self.rest = rest.to_owned();
            self.ready.push_back(SseMessage { at: chunk.at, content });
        }
    }

    fn end(&self) {
        assert_eq!(self.rest, "", "half an event at the end");
    }
}

/// Parses one block. The gateway writes either a single comment, or an optional name and one line of data.
fn parse_block(block: &str) -> SseContent {
    if let Some(comment) = block.strip_prefix(": ") {
        assert!(!comment.contains('\n'), "a comment of two lines: {block:?}");
        return SseContent::Comment(comment.to_owned());
    }
    let (name, data) = match block.strip_prefix("event: ").and_then(|rest| rest.split_once('\n')) {
        Some((name, rest)) => (Some(name.to_owned()), rest),
        None => (None, block),
    };
    let data = data.strip_prefix("data: ").unwrap_or_else(|| panic!("not an event: {block:?}"));
    assert!(!data.contains('\n'), "data of two lines: {block:?}");
    SseContent::Event { name, data: data.to_owned() }
}

impl SseMessage {
    pub fn is_comment(&self) -> bool {
        matches!(self.content, SseContent::Comment(_))
    }

    /// The text of a comment, the data of an event.
    pub fn text(&self) -> &str {
        match &self.content {
            SseContent::Comment(text) | SseContent::Event { data: text, .. } => text,
        }
    }

    /// The name of an event or, without one, `comment`, the data if it is not JSON, `error`, or `chunk`.
    pub fn name(&self) -> String {
        match &self.content {
            SseContent::Comment(_) => "comment".into(),
            SseContent::Event { name: Some(name), .. } => name.clone(),
            SseContent::Event { name: None, data } => match serde_json::from_str::<Value>(data) {
                Err(_) => data.clone(),
                Ok(data) if data.get("error").is_some() => "error".into(),
                Ok(_) => "chunk".into(),
            },
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(self.text()).unwrap_or_else(|error| panic!("{error}: {:?}", self.text()))
    }
}

pub fn names(messages: &[SseMessage]) -> Vec<String> {
    messages.iter().map(SseMessage::name).collect()
}
