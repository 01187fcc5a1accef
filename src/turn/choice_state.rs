//! What the turn remembers of one choice.

use super::tool_calls::Call;
use crate::domain::{Choice, Tree};

#[derive(Debug, Default)]
pub(super) struct Lane {
    pub finished: bool,
    /// The open message, as a position in the turn's items.
    pub message: Option<usize>,
    pub reasoning: Option<usize>,
    /// The backend's own name of an item → its position.
    pub keys: Vec<(String, usize)>,
    pub calls: Vec<Call>,
    /// Halves of characters that wait for their other half: of text, of reasoning.
    pub text_half: Option<u16>,
    pub thought_half: Option<u16>,
    /// Log-probabilities that belong to the text that comes next.
    pub logprobs: Tree,
}

impl Lane {
    pub fn item_of(&self, key: &str) -> Option<usize> {
        self.keys.iter().rev().find(|(k, _)| k == key).map(|(_, item)| *item)
    }
}

pub(super) fn choice(index: usize) -> Choice {
    Choice { index, finish: None }
}
