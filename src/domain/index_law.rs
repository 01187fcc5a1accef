//! The index law: what the index of an item (`item.index`) means to the clients of a dialect, and which policies break it.
//! Clients that keep a list of items by index reject a second item at the same place, and lose text at a wrong one.

use super::policy::{EmptyMessageItem, OutputIndex, ReasoningPolicy};
use super::{ItemKind, Policies, named_enum};

named_enum! {
    /// What `item.index` means to clients.
    pub enum IndexLaw {
        /// Its position: items are announced with 0, 1, 2 and so on, and have these positions in the final output.
        Position = "position",
        /// The index of its choice.
        Choice = "choice",
        /// Nothing: clients ignore it.
        None = "none",
    }
}

/// The kinds of items that a dialect sends to clients. Only these are counted by `item.index` and `block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentItems {
    pub messages: bool,
    pub reasoning: bool,
    pub calls: bool,
}

impl SentItems {
    pub const ALL: SentItems = SentItems { messages: true, reasoning: true, calls: true };

    pub fn includes(self, kind: ItemKind) -> bool {
        match kind {
            ItemKind::Message => self.messages,
            ItemKind::Reasoning => self.reasoning,
            ItemKind::Function | ItemKind::Custom => self.calls,
        }
    }
}

/// Two settings that break an index law together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexConflict {
    /// The policy that does not fit to `output_index`; `None` if that fits to no turn.
    pub other: Option<&'static str>,
    /// A turn that breaks the law.
    pub turn: &'static str,
    /// The setting that resolves the conflict.
    pub fix: &'static str,
}

impl IndexLaw {
    /// Why a turn can break the law under these policies. `None`: no turn can.
    pub fn conflict(self, policies: &Policies, sent: SentItems) -> Option<IndexConflict> {
        let whole = |turn, fix| Some(IndexConflict { other: None, turn, fix });
        match (self, policies.output_index) {
            (IndexLaw::None, _) => None,
            (IndexLaw::Choice, OutputIndex::Choice) | (IndexLaw::Position, OutputIndex::Position) => None,
            (IndexLaw::Choice, OutputIndex::Position | OutputIndex::MessageFirst) => {
                whole("the second item of choice 0 has index 1", "output_index: choice")
            }
            (IndexLaw::Position, OutputIndex::Choice) => {
                whole("all items of a choice have the same index", "output_index: position")
            }
            // Without messages it counts like `position`.
            (IndexLaw::Position, OutputIndex::MessageFirst) if !sent.messages => None,
            (IndexLaw::Position, OutputIndex::MessageFirst) => {
                if policies.empty_message_item == EmptyMessageItem::Omit {
                    let turn = "the first call of an answer without text has index 1, and position 0";
                    let fix = "empty_message_item: always";
                    return Some(IndexConflict { other: Some("empty_message_item"), turn, fix });
                }
                let reasoning = sent.reasoning && policies.reasoning == ReasoningPolicy::Keep;
                let turn = "reasoning before the message has index 1 and is announced first";
                reasoning.then_some(IndexConflict { other: Some("reasoning"), turn, fix: "reasoning: drop" })
            }
        }
    }
}
