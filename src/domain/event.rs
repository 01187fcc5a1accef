use super::{Fault, Finish, Merge, Tree, Usage, words};
use reframe_json::Torn;

/// What a backend said, in our words: the closed list that every backend mapping emits.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Start {
        id: Option<String>,
        model: Option<String>,
        created: Option<i64>,
    },
    Text {
        choice: usize,
        item: Option<String>,
        part: Option<usize>,
        piece: Piece,
    },
    Refusal {
        choice: usize,
        item: Option<String>,
        part: Option<usize>,
        piece: Piece,
    },
    Reasoning {
        choice: usize,
        item: Option<String>,
        kind: ReasoningKind,
        part: Option<usize>,
        piece: Option<Piece>,
        encrypted: Option<String>,
    },
    /// `value` has the fields of `shape::Shape::Annotation`.
    Annotation {
        choice: usize,
        item: Option<String>,
        value: Tree,
    },
    Logprobs {
        choice: usize,
        item: Option<String>,
        value: Tree,
    },
    Tool {
        choice: usize,
        key: Option<String>,
        id: Option<String>,
        name: Option<String>,
        kind: Option<CallKind>,
        piece: Option<Piece>,
    },
    /// The calls seen so far are all of this model call, in this order.
    Batch {
        choice: usize,
        ids: Vec<String>,
    },
    Close {
        choice: usize,
        item: Option<String>,
        key: Option<String>,
    },
    Usage {
        usage: Usage,
        merge: Merge,
    },
    /// Without a choice it ends every choice that is open.
    Finish {
        choice: Option<usize>,
        reason: Finish,
    },
    /// `last` is false when the backend goes on by itself.
    Fault {
        fault: Fault,
        last: bool,
    },
    End,
}

/// A piece of text or of arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// What is new.
    Delta(String),
    /// What is new, cut inside a character: its other half is in the piece before or after.
    Torn(Torn),
    /// A snapshot of all so far: only what is new in it counts.
    Whole(String),
}

words! {
    pub enum CallKind {
        Function = "function",
        Custom = "custom",
    }
}

words! {
    pub enum ReasoningKind {
        Summary = "summary",
        Raw = "raw",
    }
}

impl Event {
    /// One line for `explain`.
    pub fn brief(&self) -> String {
        let piece = |p: &Piece| match p {
            Piece::Delta(t) => quote(t),
            Piece::Torn(t) => quote(&t.lossy()),
            Piece::Whole(t) => format!("whole {}", quote(t)),
        };
        match self {
            Event::Start { model, .. } => format!("start {}", model.as_deref().unwrap_or("")),
            Event::Text { piece: p, .. } => format!("text {}", piece(p)),
            Event::Refusal { piece: p, .. } => format!("refusal {}", piece(p)),
            Event::Reasoning { kind, piece: p, .. } => {
                format!("reasoning {} {}", kind.word(), p.as_ref().map(piece).unwrap_or_default())
            }
            Event::Annotation { .. } => "annotation".into(),
            Event::Logprobs { .. } => "logprobs".into(),
            Event::Tool { name, piece: p, .. } => format!(
                "tool {}{}",
                name.as_deref().map(|n| format!("{n} ")).unwrap_or_default(),
                p.as_ref().map(piece).unwrap_or_default()
            ),
            Event::Batch { ids, .. } => format!("batch of {}", ids.len()),
            Event::Close { item, key, .. } => {
                format!("close {}", item.as_deref().or(key.as_deref()).unwrap_or(""))
            }
            Event::Usage { usage, .. } => {
                format!("usage {}+{}", usage.input.unwrap_or(0), usage.output.unwrap_or(0))
            }
            Event::Finish { reason, .. } => format!("finish {}", reason.word()),
            Event::Fault { fault, last } => {
                format!("fault {}{}", quote(&fault.message), if *last { "" } else { " (goes on)" })
            }
            Event::End => "end".into(),
        }
        .trim_end()
        .to_owned()
    }
}

/// At most 16 characters, for a column in a table.
pub fn quote(text: &str) -> String {
    let mut short: String = text.chars().take(16).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

/// How the backend stopped talking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It said so: the framing's end marker.
    Marker,
    /// Its bytes ended.
    Eof,
    /// The connection was lost.
    Cut(String),
}
