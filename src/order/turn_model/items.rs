//! The life of one item, whatever else goes on: as `turn/` opens, fills and closes it.

use super::Abilities;
use crate::domain::MomentKind as M;

/// A message, and which of its parts is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Message {
    #[default]
    Closed,
    /// Open, and nothing was said in it.
    Empty,
    Text,
    Refusal,
}

/// Reasoning, and which of its parts is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Reasoning {
    #[default]
    Closed,
    /// Open, and nobody can read it.
    Sealed,
    Summary,
    Thought,
}

impl Message {
    /// What is told when something comes for this message, which is open.
    pub fn hear(self, can: Abilities) -> Vec<(Vec<M>, Message)> {
        let mut heard = Vec::new();
        for (piece, part) in pieces(can) {
            let other = vec![M::PartClose, M::PartOpen, piece];
            match self {
                Message::Closed => {}
                Message::Empty => heard.push((vec![M::PartOpen, piece], part)),
                Message::Text | Message::Refusal => {
                    if self == part {
                        heard.push((vec![piece], part));
                    }
                    // A backend that numbers its parts begins another one; an annotation belongs to the one at hand.
                    if self != part || piece != M::Annotation {
                        heard.push((other, part));
                    }
                }
            }
        }
        heard
    }

    pub fn close(self) -> &'static [M] {
        match self {
            Message::Closed => &[],
            Message::Empty => &[M::MessageClose],
            Message::Text | Message::Refusal => &[M::PartClose, M::MessageClose],
        }
    }
}

/// What may be said in a message, and the part that it is said in.
fn pieces(can: Abilities) -> impl Iterator<Item = (M, Message)> {
    let all = [
        (can.text, M::TextDelta, Message::Text),
        (can.refusal, M::RefusalDelta, Message::Refusal),
        (can.annotations, M::Annotation, Message::Text),
    ];
    all.into_iter().filter(|(can, ..)| *can).map(|(_, piece, part)| (piece, part))
}

impl Reasoning {
    /// What is told when thoughts come for this item, which is open.
    pub fn hear(self, can: Abilities) -> Vec<(Vec<M>, Reasoning)> {
        let close: &[M] = match self {
            Reasoning::Closed => return Vec::new(),
            Reasoning::Sealed => &[],
            Reasoning::Summary => &[M::SummaryClose],
            Reasoning::Thought => &[M::ThoughtClose],
        };
        let after = |more: &[M]| [close, more].concat();
        let mut heard = Vec::new();
        if can.summaries {
            if self == Reasoning::Summary {
                heard.push((vec![M::SummaryDelta], Reasoning::Summary));
            }
            heard.push((after(&[M::SummaryOpen, M::SummaryDelta]), Reasoning::Summary));
        }
        if can.thoughts {
            let told = match self {
                Reasoning::Thought => vec![M::ThoughtDelta],
                _ => after(&[M::ThoughtOpen, M::ThoughtDelta]),
            };
            heard.push((told, Reasoning::Thought));
        }
        heard
    }

    pub fn close(self) -> &'static [M] {
        match self {
            Reasoning::Closed => &[],
            Reasoning::Sealed => &[M::ReasoningClose],
            Reasoning::Summary => &[M::SummaryClose, M::ReasoningClose],
            Reasoning::Thought => &[M::ThoughtClose, M::ReasoningClose],
        }
    }
}
