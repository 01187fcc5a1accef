//! The states of one item, independent of other items: how `turn/` opens, fills and closes it.

use super::OutputKinds;
use crate::domain::MomentKind as M;

/// A message, and which of its parts is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum MessageModel {
    #[default]
    Closed,
    /// Open, without a part.
    Empty,
    Text,
    Refusal,
}

/// Reasoning, and which of its parts is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum ReasoningModel {
    #[default]
    Closed,
    /// Open, without readable content.
    Encrypted,
    Summary,
    Thought,
}

impl MessageModel {
    /// The moments that new content emits for an open message, and the state after it.
    pub fn receive(self, output: OutputKinds) -> Vec<(Vec<M>, MessageModel)> {
        let mut received = Vec::new();
        for (delta, part) in message_deltas(output) {
            let other = vec![M::PartClose, M::PartOpen, delta];
            match self {
                MessageModel::Closed => {}
                MessageModel::Empty => received.push((vec![M::PartOpen, delta], part)),
                MessageModel::Text | MessageModel::Refusal => {
                    if self == part {
                        received.push((vec![delta], part));
                    }
                    // A backend that numbers its parts can start another part; an annotation belongs to the current
                    // one.
                    if self != part || delta != M::Annotation {
                        received.push((other, part));
                    }
                }
            }
        }
        received
    }

    pub fn close(self) -> &'static [M] {
        match self {
            MessageModel::Closed => &[],
            MessageModel::Empty => &[M::MessageClose],
            MessageModel::Text | MessageModel::Refusal => &[M::PartClose, M::MessageClose],
        }
    }
}

/// The content that a message can contain, and the part that contains it.
fn message_deltas(output: OutputKinds) -> impl Iterator<Item = (M, MessageModel)> {
    let all = [
        (output.text, M::TextDelta, MessageModel::Text),
        (output.refusal, M::RefusalDelta, MessageModel::Refusal),
        (output.annotations, M::Annotation, MessageModel::Text),
    ];
    all.into_iter().filter(|(possible, ..)| *possible).map(|(_, delta, part)| (delta, part))
}

impl ReasoningModel {
    /// The moments that new reasoning emits for an open item, and the state after it.
    pub fn receive(self, output: OutputKinds) -> Vec<(Vec<M>, ReasoningModel)> {
        let close: &[M] = match self {
            ReasoningModel::Closed => return Vec::new(),
            ReasoningModel::Encrypted => &[],
            ReasoningModel::Summary => &[M::SummaryClose],
            ReasoningModel::Thought => &[M::ThoughtClose],
        };
        let after = |more: &[M]| [close, more].concat();
        let mut received = Vec::new();
        if output.summaries {
            if self == ReasoningModel::Summary {
                received.push((vec![M::SummaryDelta], ReasoningModel::Summary));
            }
            received.push((after(&[M::SummaryOpen, M::SummaryDelta]), ReasoningModel::Summary));
        }
        if output.thoughts {
            let moments = match self {
                ReasoningModel::Thought => vec![M::ThoughtDelta],
                _ => after(&[M::ThoughtOpen, M::ThoughtDelta]),
            };
            received.push((moments, ReasoningModel::Thought));
        }
        received
    }

    pub fn close(self) -> &'static [M] {
        match self {
            ReasoningModel::Closed => &[],
            ReasoningModel::Encrypted => &[M::ReasoningClose],
            ReasoningModel::Summary => &[M::SummaryClose, M::ReasoningClose],
            ReasoningModel::Thought => &[M::ThoughtClose, M::ReasoningClose],
        }
    }
}
