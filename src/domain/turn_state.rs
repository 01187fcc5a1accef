//! The state of a turn. `turn/` writes it; dialects read it through the variables of `variables/`.

use super::{Annotation, CallKind, Fault, Finish, TokenLogprob, Tree, Usage, named_enum};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct TurnState {
    /// Without a prefix; dialects add their own.
    pub id: String,
    /// Seconds since 1970.
    pub created: i64,
    pub model: String,
    pub choices: Vec<Choice>,
    /// In the order in which they were opened.
    pub items: Vec<Item>,
    pub usage: Option<Usage>,
    /// What the backend has reported so far. `usage` is set at the end only.
    pub usage_so_far: Usage,
    /// What reported the usage, in the word of the backend's mapping.
    pub usage_trigger: Option<String>,
    /// A fault after complete calls ended the turn (policy `errors_after_tools: finish`).
    pub ended_by_fault: bool,
    /// Vendor fields of the response, as a map (`turn.extra.NAME`).
    pub extra: Option<Tree>,
    /// Vendor fields of a choice, by its index (`choice.extra.NAME`).
    pub choice_extra: BTreeMap<usize, Tree>,
    pub finish: Option<Finish>,
    pub error: Option<Fault>,
    /// Seconds since 1970, once the turn has ended.
    pub ended: Option<i64>,
    pub elapsed_ms: i64,
    pub first_output_ms: Option<i64>,
    /// What the turn ended at by the policy `stop_after_tools`, or a limit of calls.
    pub cut_after_tools: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Choice {
    pub index: usize,
    pub finish: Option<Finish>,
}

#[derive(Clone, Debug)]
pub struct Item {
    pub id: String,
    pub choice: usize,
    pub kind: ItemKind,
    pub state: ItemState,
    /// The index in the client's output, by the policy `output_index`.
    pub index: usize,
    /// Counts the calls of the choice for a call, otherwise the items of the same kind.
    pub ordinal: usize,
    pub parts: Vec<Part>,
    pub summaries: Vec<Part>,
    pub encrypted: Option<String>,
    pub call_id: String,
    pub name: String,
    pub arguments: String,
    /// The backend made the call in the legacy form, and the policy `legacy_function_call` preserves it.
    pub legacy: bool,
    /// The arguments of a closed call as JSON, if the dialect reads them (`item.input`).
    pub input: Option<Tree>,
    /// The number of its first block, once it has one.
    pub block: Option<usize>,
}

#[derive(Clone, Debug)]
pub struct Part {
    pub index: usize,
    /// Its number among the blocks of the turn: parts and calls, in the order in which they are opened.
    pub block: usize,
    pub kind: PartKind,
    pub text: String,
    pub annotations: Vec<PartAnnotation>,
    /// One list per text delta; empty unless the dialect reads them.
    pub logprobs: Vec<Arc<[TokenLogprob]>>,
    pub open: bool,
    /// It contains calls that are written as text (`call_blocks:` of a dialect).
    pub is_call_block: bool,
    /// The backend's index of the part, if it sends one.
    pub backend_index: Option<usize>,
}

/// An annotation in its part.
#[derive(Clone, Debug)]
pub struct PartAnnotation {
    pub annotation: Annotation,
    /// Characters of the choice before the part. Dialects that concatenate parts add it to the offsets.
    pub shift: usize,
}

named_enum! {
    pub enum ItemKind {
        Message = "message",
        Reasoning = "reasoning",
        Function = "function",
        Custom = "custom",
    }
}

named_enum! {
    pub enum ItemState {
        Open = "open",
        Done = "done",
        /// The response was truncated in this item.
        Truncated = "truncated",
        Failed = "failed",
    }
}

named_enum! {
    pub enum PartKind {
        Text = "text",
        Refusal = "refusal",
        Summary = "summary",
        /// Raw reasoning.
        Thought = "thought",
    }
}

impl TurnState {
    pub fn items_of(&self, choice: usize) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(move |i| i.choice == choice)
    }

    /// The state of the turn as a whole.
    pub fn state(&self) -> ItemState {
        match (&self.error, self.finish) {
            (Some(_), _) | (None, Some(Finish::Cancelled | Finish::Error)) => ItemState::Failed,
            (None, None) => ItemState::Open,
            (None, Some(f)) if f.is_truncated() => ItemState::Truncated,
            (None, Some(_)) => ItemState::Done,
        }
    }
}

impl Item {
    pub fn is_call(&self) -> bool {
        matches!(self.kind, ItemKind::Function | ItemKind::Custom)
    }

    pub fn call_kind(kind: CallKind) -> ItemKind {
        match kind {
            CallKind::Function => ItemKind::Function,
            CallKind::Custom => ItemKind::Custom,
        }
    }
}

impl PartKind {
    /// Whether it is part of the answer itself, not of the reasoning.
    pub fn is_output(self) -> bool {
        match self {
            PartKind::Text | PartKind::Refusal => true,
            PartKind::Summary | PartKind::Thought => false,
        }
    }
}

impl Part {
    pub fn new(index: usize, kind: PartKind) -> Part {
        Part {
            index,
            block: 0,
            kind,
            text: String::new(),
            annotations: Vec::new(),
            logprobs: Vec::new(),
            open: true,
            is_call_block: false,
            backend_index: None,
        }
    }
}
