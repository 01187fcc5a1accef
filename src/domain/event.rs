//! Events: what a backend did, in the gateway's own closed vocabulary.

use super::{Fault, Finish, Merge, Tree, Usage, named_enum};
use reframe_json::SurrogateString;

/// An event of a backend in normalized form: the closed list that the rules of every backend emit.
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
        delta: Delta,
    },
    Refusal {
        choice: usize,
        item: Option<String>,
        part: Option<usize>,
        delta: Delta,
    },
    Reasoning {
        choice: usize,
        item: Option<String>,
        kind: ReasoningKind,
        part: Option<usize>,
        delta: Option<Delta>,
        encrypted: Option<String>,
    },
    /// `value` has the fields of `variables::RecordType::Annotation`.
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
        delta: Option<Delta>,
    },
    /// The calls with these ids are complete, in this order.
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
    /// Without a choice it finishes every open choice.
    Finish {
        choice: Option<usize>,
        reason: Finish,
    },
    /// `is_final` is false if the backend continues after the error.
    Fault {
        fault: Fault,
        is_final: bool,
    },
    End,
}

/// New text or arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// New text.
    Append(String),
    /// New text that begins or ends with half a character; the other half is in the previous or the next delta.
    AppendSurrogates(SurrogateString),
    /// The full text so far, of which only the new suffix is emitted.
    Snapshot(String),
}

impl Delta {
    /// The length in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Delta::Append(text) | Delta::Snapshot(text) => text.len(),
            Delta::AppendSurrogates(text) => text.to_string_lossy().len(),
        }
    }
}

named_enum! {
    pub enum CallKind {
        Function = "function",
        Custom = "custom",
    }
}

named_enum! {
    pub enum ReasoningKind {
        Summary = "summary",
        Raw = "raw",
    }
}

impl Event {
    /// One line for `explain` and test reports.
    pub fn summary(&self) -> String {
        let delta = |p: &Delta| match p {
            Delta::Append(t) => quote(t),
            Delta::AppendSurrogates(t) => quote(&t.to_string_lossy()),
            Delta::Snapshot(t) => format!("whole {}", quote(t)),
        };
        match self {
            Event::Start { model, .. } => format!("start {}", model.as_deref().unwrap_or("")),
            Event::Text { delta: p, .. } => format!("text {}", delta(p)),
            Event::Refusal { delta: p, .. } => format!("refusal {}", delta(p)),
            Event::Reasoning { kind, delta: p, .. } => {
                format!("reasoning {} {}", kind.name(), p.as_ref().map(delta).unwrap_or_default())
            }
            Event::Annotation { .. } => "annotation".into(),
            Event::Logprobs { .. } => "logprobs".into(),
            Event::Tool { name, delta: p, .. } => format!(
                "tool {}{}",
                name.as_deref().map(|n| format!("{n} ")).unwrap_or_default(),
                p.as_ref().map(delta).unwrap_or_default()
            ),
            Event::Batch { ids, .. } => format!("batch of {}", ids.len()),
            Event::Close { item, key, .. } => {
                format!("close {}", item.as_deref().or(key.as_deref()).unwrap_or(""))
            }
            Event::Usage { usage, .. } => {
                format!("usage {}+{}", usage.input.unwrap_or(0), usage.output.unwrap_or(0))
            }
            Event::Finish { reason, .. } => format!("finish {}", reason.name()),
            Event::Fault { fault, is_final } => {
                format!("fault {}{}", quote(&fault.message), if *is_final { "" } else { " (goes on)" })
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

/// How the backend's stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// By the framing's end marker.
    Marker,
    /// At the end of the bytes.
    Eof,
    /// The connection was lost; the reason.
    Disconnected(String),
}
