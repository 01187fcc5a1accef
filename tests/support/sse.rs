//! Streams that have names and comments besides their data.

use super::client::{Head, Piece, Reply, Streaming};
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Instant;

/// What a stream told: an event, or a comment.
#[derive(Clone, Debug)]
pub struct Told {
    pub at: Instant,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Event { name: Option<String>, data: String },
    Comment(String),
}

/// A stream that is still arriving. Dropping it closes the connection.
pub struct Listening {
    stream: Streaming,
    heard: Heard,
}

#[derive(Default)]
struct Heard {
    rest: String,
    ready: VecDeque<Told>,
}

impl Streaming {
    pub fn listen(self) -> Listening {
        Listening { stream: self, heard: Heard::default() }
    }
}

impl Listening {
    pub fn head(&self) -> &Head {
        &self.stream.head
    }

    /// The next event or comment, when it comes; `None` at the end.
    pub fn next(&mut self) -> Option<Told> {
        while self.heard.ready.is_empty() {
            match self.stream.piece() {
                Some(piece) => self.heard.add(&piece),
                None => {
                    self.heard.end();
                    return None;
                }
            }
        }
        self.heard.ready.pop_front()
    }

    pub fn rest(mut self) -> Vec<Told> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

impl Reply {
    pub fn told(&self) -> Vec<Told> {
        let mut heard = Heard::default();
        self.pieces.iter().for_each(|piece| heard.add(piece));
        heard.end();
        heard.ready.into()
    }
}

impl Heard {
    fn add(&mut self, piece: &Piece) {
        self.rest += std::str::from_utf8(&piece.bytes).unwrap();
        while let Some((block, rest)) = self.rest.split_once("\n\n") {
            let what = read(block);
            self.rest = rest.to_owned();
            self.ready.push_back(Told { at: piece.at, what });
        }
    }

    fn end(&self) {
        assert_eq!(self.rest, "", "half an event at the end");
    }
}

/// One event a block, in the order that we write: a comment alone, or a name and one line of data.
fn read(block: &str) -> What {
    if let Some(comment) = block.strip_prefix(": ") {
        assert!(!comment.contains('\n'), "a comment of two lines: {block:?}");
        return What::Comment(comment.to_owned());
    }
    let (name, data) = match block.strip_prefix("event: ").and_then(|rest| rest.split_once('\n')) {
        Some((name, rest)) => (Some(name.to_owned()), rest),
        None => (None, block),
    };
    let data = data.strip_prefix("data: ").unwrap_or_else(|| panic!("not an event: {block:?}"));
    assert!(!data.contains('\n'), "data of two lines: {block:?}");
    What::Event { name, data: data.to_owned() }
}

impl Told {
    pub fn is_comment(&self) -> bool {
        matches!(self.what, What::Comment(_))
    }

    /// The text of a comment, the data of an event.
    pub fn text(&self) -> &str {
        match &self.what {
            What::Comment(text) | What::Event { data: text, .. } => text,
        }
    }

    /// The name of an event, or what stands for one: `comment`, the data that is no JSON, `error`, or `chunk`.
    pub fn name(&self) -> String {
        match &self.what {
            What::Comment(_) => "comment".into(),
            What::Event { name: Some(name), .. } => name.clone(),
            What::Event { name: None, data } => match serde_json::from_str::<Value>(data) {
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

pub fn names(told: &[Told]) -> Vec<String> {
    told.iter().map(Told::name).collect()
}
