use super::{Tree, named_enum};

named_enum! {
    /// A point in the life of the turn at which a client may have to be told something.
    pub enum MomentKind {
        /// The first thing to tell has come.
        TurnOpen = "turn.open",
        /// All choices have finished and the backend has ended.
        TurnFinish = "turn.finish",
        /// The turn is complete, usage included.
        TurnClose = "turn.close",
        /// Instead of all that would have come: a fault after the first moment, or a breach. Nothing follows it.
        TurnFail = "turn.fail",
        /// The place for a terminator.
        TurnEnd = "turn.end",
        /// An answer begins; those with lower numbers first.
        ChoiceOpen = "choice.open",
        /// Once for each choice, after its items.
        ChoiceFinish = "choice.finish",
        /// Text or a refusal begins.
        MessageOpen = "message.open",
        /// Another item begins, or the choice finishes.
        MessageClose = "message.close",
        /// A part of a message begins: text or refusal.
        PartOpen = "part.open",
        /// A part of a message is complete.
        PartClose = "part.close",
        /// A piece of text, never empty.
        TextDelta = "text.delta",
        /// A piece of a refusal.
        RefusalDelta = "refusal.delta",
        /// An annotation of a part.
        Annotation = "annotation",
        /// Thoughts begin.
        ReasoningOpen = "reasoning.open",
        /// Thoughts end.
        ReasoningClose = "reasoning.close",
        /// A summary of thoughts begins.
        SummaryOpen = "summary.open",
        /// A piece of a summary of thoughts.
        SummaryDelta = "summary.delta",
        /// A summary of thoughts is complete.
        SummaryClose = "summary.close",
        /// Raw thoughts begin.
        ThoughtOpen = "thought.open",
        /// A piece of raw thoughts.
        ThoughtDelta = "thought.delta",
        /// Raw thoughts are complete.
        ThoughtClose = "thought.close",
        /// A call whose name is known.
        ToolOpen = "tool.open",
        /// A piece of its arguments, never empty; by the policy `tool_arguments`, or all so far.
        ToolArgs = "tool.args",
        /// The call is complete.
        ToolClose = "tool.close",
        /// The usage, if there is one (policy `usage`).
        Usage = "usage",
    }
}

impl MomentKind {
    /// True for the moments that carry a text delta and typically occur many times.
    pub fn is_delta(self) -> bool {
        use MomentKind as M;
        matches!(self, M::TextDelta | M::RefusalDelta | M::SummaryDelta | M::ThoughtDelta | M::ToolArgs)
    }
}

named_enum! {
    /// What an order is about: the whole turn, one choice, or one item.
    pub enum Scope {
        Turn = "turn",
        Choice = "choice",
        Item = "item",
    }
}

/// A moment, with the choice, item and part of the turn's state that it concerns.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    pub kind: MomentKind,
    pub choice: Option<usize>,
    /// Index into `TurnState::items`.
    pub item: Option<usize>,
    /// Index into the item's parts or summaries.
    pub part: Option<usize>,
    /// The new text or arguments; by the policy `tool_arguments`, all arguments so far.
    pub text: String,
    /// The annotation, or the log-probabilities of the text.
    pub value: Tree,
}

impl Moment {
    pub fn turn(kind: MomentKind) -> Moment {
        Moment { kind, choice: None, item: None, part: None, text: String::new(), value: Tree::Null }
    }

    pub fn choice(kind: MomentKind, choice: usize) -> Moment {
        Moment { choice: Some(choice), ..Moment::turn(kind) }
    }

    pub fn item(kind: MomentKind, choice: usize, item: usize) -> Moment {
        Moment { item: Some(item), ..Moment::choice(kind, choice) }
    }

    pub fn part(kind: MomentKind, choice: usize, item: usize, part: usize, text: String) -> Moment {
        Moment { part: Some(part), text, ..Moment::item(kind, choice, item) }
    }
}
