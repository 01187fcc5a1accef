//! Inline blocks: finds structure in the text of a backend, such as `<think>…</think>`, and passes it on as reasoning or
//! as a tool call. A pure pass over events, before the turn: every other event goes through unchanged.
//!
//! What could be the beginning of a block is held back until the text decides it, so that the result does not depend on
//! how the backend splits its text. A block is never sent both as text and as what it contains.

mod call;
mod choice_text;
mod logprobs;
mod metadata_lines;
mod metadata_search;
mod received;
mod repair;
mod tags;
mod xml;

pub use call::CallableTools;
pub use metadata_lines::MetadataLines;

use crate::domain::inline::{BlockContent, InlineBlock};
use crate::domain::{Event, Fault, FaultKind};
use choice_text::{ChoiceText, Target};
use std::sync::Arc;

/// Choices with a higher index are not searched: the turn rejects them.
const MAX_CHOICES: usize = 128;

/// An event, and the block that it was read from (an index into the list of blocks).
pub type InlineEvent = (Event, Option<usize>);

/// How many blocks of calls a text had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    pub opened: usize,
    /// Calls were read from them.
    pub read: usize,
    /// They are text: not closed, too long, or no calls.
    pub kept_as_text: usize,
}

/// The blocks of a turn.
#[derive(Debug)]
pub struct InlinePass {
    search: Search,
    choices: Vec<ChoiceText>,
    /// The memory that is kept.
    bytes: usize,
    max_bytes: usize,
    /// A fault was emitted: nothing follows.
    failed: bool,
}

/// What is searched for: the same for all choices.
#[derive(Debug)]
struct Search {
    /// Those that cannot occur in this turn are `None`.
    blocks: Vec<Option<Arc<InlineBlock>>>,
    /// The bytes with which a block can begin.
    first_bytes: Vec<u8>,
    tools: CallableTools,
    /// The backend sends snapshots of its text, which are compared with all text so far.
    has_snapshots: bool,
}

impl InlinePass {
    /// `None` if no block can occur in this turn: a call needs a tool that it may call.
    pub fn new(blocks: &[Arc<InlineBlock>], tools: CallableTools, has_snapshots: bool) -> Option<InlinePass> {
        let can_occur = |block: &&Arc<InlineBlock>| match &block.content {
            BlockContent::Reasoning { .. } => true,
            BlockContent::Call(call) => tools.allows(call),
        };
        let blocks: Vec<_> = blocks.iter().map(|block| Some(block).filter(can_occur).cloned()).collect();
        let first_bytes: Vec<u8> = blocks.iter().flatten().filter_map(|block| block.open.bytes().next()).collect();
        (!first_bytes.is_empty()).then(|| InlinePass {
            search: Search { blocks, first_bytes, tools, has_snapshots },
            choices: Vec::new(),
            bytes: 0,
            max_bytes: super::Limits::default().bytes,
            failed: false,
        })
    }

    pub fn set_memory_limit(&mut self, bytes: usize) {
        self.max_bytes = bytes;
    }

    /// Appends what `event` becomes to `output`.
    pub fn push(&mut self, event: Event, output: &mut Vec<InlineEvent>) {
        match event {
            Event::Text { choice, item, part, delta } if self.is_searched(choice) => {
                let target = Target { item, part };
                self.with_choice(choice, output, |text, search, output| {
                    text.receive(choice, target, delta, search, output);
                });
            }
            Event::Logprobs { choice, logprobs, .. } if self.is_searched(choice) => {
                self.with_choice(choice, output, |text, _, _| text.logprobs.wait(logprobs));
            }
            // Other output ends the text before it: what is held back cannot become a block any more.
            Event::Refusal { choice, .. }
            | Event::Batch { choice, .. }
            | Event::AwaitResults { choice }
            | Event::Close { choice, .. } => {
                self.flush_choice(choice, output);
                output.push((event, None));
            }
            Event::Reasoning { choice, .. } | Event::Tool { choice, .. } => {
                self.flush_choice(choice, output);
                if self.is_searched(choice) {
                    self.with_choice(choice, output, |text, _, _| text.on_structured_output());
                }
                output.push((event, None));
            }
            Event::Finish { choice, .. } => {
                let finished = choice.map_or(0..self.choices.len(), |one| one..one + 1);
                for choice in finished {
                    self.flush_choice(choice, output);
                    if let Some(text) = self.choices.get_mut(choice) {
                        text.finished = true;
                    }
                }
                output.push((event, None));
            }
            Event::Fault { is_final: true, .. } | Event::End => {
                self.flush(output);
                output.push((event, None));
            }
            Event::Text { .. } | Event::Logprobs { .. } | Event::Annotation { .. } => output.push((event, None)),
            Event::Start { .. } | Event::Usage { .. } | Event::Extra { .. } | Event::Fault { .. } => {
                output.push((event, None));
            }
            Event::FinishHint { .. } | Event::MetadataKeys { .. } => {
                output.push((event, None));
            }
        }
    }

    /// Decides what is held back, at the end of the turn.
    pub fn flush(&mut self, output: &mut Vec<InlineEvent>) {
        (0..self.choices.len()).for_each(|choice| self.flush_choice(choice, output));
    }

    /// The blocks so far, of all choices.
    pub fn block_counts(&self) -> BlockCounts {
        self.choices.iter().fold(BlockCounts::default(), |all, text| BlockCounts {
            opened: all.opened + text.counts.opened,
            read: all.read + text.counts.read,
            kept_as_text: all.kept_as_text + text.counts.kept_as_text,
        })
    }

    /// How many bytes of text are held back.
    pub fn held_bytes(&self) -> usize {
        self.choices.iter().map(ChoiceText::held_bytes).sum()
    }

    fn is_searched(&self, choice: usize) -> bool {
        choice < MAX_CHOICES && !self.failed && !self.choices.get(choice).is_some_and(|text| text.finished)
    }

    fn flush_choice(&mut self, choice: usize, output: &mut Vec<InlineEvent>) {
        if choice < self.choices.len() && self.is_searched(choice) {
            self.with_choice(choice, output, |text, search, output| text.flush(choice, search, output));
        }
    }

    /// Changes the text of a choice, and counts the memory that it keeps.
    fn with_choice(
        &mut self,
        choice: usize,
        output: &mut Vec<InlineEvent>,
        change: impl FnOnce(&mut ChoiceText, &Search, &mut Vec<InlineEvent>),
    ) {
        while self.choices.len() <= choice {
            self.choices.push(ChoiceText::new(&self.search));
        }
        let text = &mut self.choices[choice];
        let before = text.kept_bytes();
        change(text, &self.search, output);
        self.bytes = self.bytes.saturating_add(text.kept_bytes()).saturating_sub(before);
        if self.bytes > self.max_bytes {
            self.failed = true;
            let limit = self.max_bytes;
            let message =
                format!("the backend's response needs more than {limit} bytes of memory, the limit of this gateway");
            output.push((Event::Fault { fault: Fault::new(FaultKind::Malformed, message), is_final: true }, None));
        }
    }
}

impl Search {
    fn block(&self, index: usize) -> Option<&InlineBlock> {
        self.blocks.get(index)?.as_deref()
    }

    fn blocks(&self) -> impl Iterator<Item = (usize, &InlineBlock)> {
        self.blocks.iter().enumerate().filter_map(|(index, block)| Some((index, block.as_deref()?)))
    }
}

#[cfg(test)]
#[path = "../../../tests/unit/turn_inline.rs"]
mod tests;
