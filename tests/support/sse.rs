//! Parses SSE streams with event names and comments.

use super::client::{BodyChunk, Frame};
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

/// Splits the received bytes into messages.
#[derive(Default)]
pub struct SseParser {
    rest: String,
    ready: VecDeque<SseMessage>,
}

impl SseParser {
    pub fn add(&mut self, chunk: &BodyChunk) {
        self.rest += std::str::from_utf8(&chunk.bytes).unwrap();
        while let Some((block, rest)) = self.rest.split_once("\n\n") {
            let content = parse_block(block);
            self.rest = rest.to_owned();
            self.ready.push_back(SseMessage { at: chunk.at, content });
        }
    }

    pub fn next(&mut self) -> Option<SseMessage> {
        self.ready.pop_front()
    }

    /// The messages that were not read yet.
    pub fn end(self) -> Vec<SseMessage> {
        assert_eq!(self.rest, "", "half an event at the end");
        self.ready.into()
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
    /// Fails for a comment and for an event with a name.
    pub fn into_frame(self) -> Frame {
        match self.content {
            SseContent::Event { name: None, data } => Frame { at: self.at, data },
            content => panic!("not a data frame: {content:?}"),
        }
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
