//! The state of one choice: its open items and buffered input.

use super::legacy_call::LegacyCall;
use super::tool_calls::CallState;
use crate::domain::{Event, TokenLogprob};
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct ChoiceState {
    pub finished: bool,
    /// The open message, as an index into the turn's items.
    pub message: Option<usize>,
    pub reasoning: Option<usize>,
    /// The backend's key of an item, and the item's index.
    pub keys: Vec<(String, usize)>,
    pub calls: Vec<CallState>,
    /// The number of the backend's event with the first call.
    pub first_call_chunk: Option<u64>,
    /// The first call that is not settled: complete, and written as text if the dialect does that.
    pub next_to_settle: usize,
    pub settled_calls: usize,
    /// Calls that are written as text.
    pub blocks_written: usize,
    /// A call in the legacy form, until the finish.
    pub legacy_call: Option<LegacyCall>,
    /// Events that are held back until the open call closes (policy `items_overlap: serial`).
    pub held_back: Vec<Event>,
    /// The backend's key of the reasoning that is being dropped.
    pub dropped_reasoning: Option<String>,
    /// High surrogates that still need the low surrogate of the next delta: of text, of reasoning.
    pub text_surrogate: Option<u16>,
    pub reasoning_surrogate: Option<u16>,
    /// Log-probabilities of the next text delta.
    pub logprobs: PendingLogprobs,
}

/// Log-probabilities that wait for their text, and what they are charged.
#[derive(Debug, Default)]
pub(super) struct PendingLogprobs {
    pub tokens: Option<Arc<[TokenLogprob]>>,
    pub bytes: usize,
}

impl ChoiceState {
    pub fn item_of(&self, key: &str) -> Option<usize> {
        self.keys.iter().rev().find(|(k, _)| k == key).map(|(_, item)| *item)
    }
}
