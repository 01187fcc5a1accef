//! Moments: the points in the lifecycle of a turn at which a client may need a frame.

use super::{TokenLogprob, named_enum};
use std::sync::Arc;

named_enum! {
    /// A point in a turn at which frames can be sent to the client.
    pub enum MomentKind {
        /// The turn opens, before its first output.
        TurnOpen = "turn.open",
        /// All choices have finished and the backend has ended.
        TurnFinish = "turn.finish",
        /// The turn is complete, usage included.
        TurnClose = "turn.close",
        /// A fault after the first moment, or a violation of a schema or order. It replaces all further moments.
        TurnFail = "turn.fail",
        /// The end of the stream, for a terminator.
        TurnEnd = "turn.end",
        /// A choice opens, in order of index.
        ChoiceOpen = "choice.open",
        /// A choice finishes, after its items.
        ChoiceFinish = "choice.finish",
        /// A message opens, for text or a refusal.
        MessageOpen = "message.open",
        /// A message closes, because it is complete, another item opens, or the choice finishes.
        MessageClose = "message.close",
        /// A part of a message opens: text or a refusal.
        PartOpen = "part.open",
        /// A part of a message closes.
        PartClose = "part.close",
        /// A text delta, never empty.
        TextDelta = "text.delta",
        /// A refusal delta, never empty.
        RefusalDelta = "refusal.delta",
        /// An annotation of a text part.
        Annotation = "annotation",
        /// Reasoning opens.
        ReasoningOpen = "reasoning.open",
        /// Reasoning closes.
        ReasoningClose = "reasoning.close",
        /// A reasoning summary opens.
        SummaryOpen = "summary.open",
        /// A delta of a reasoning summary, never empty.
        SummaryDelta = "summary.delta",
        /// A reasoning summary closes.
        SummaryClose = "summary.close",
        /// Raw reasoning text opens.
        ThoughtOpen = "thought.open",
        /// A delta of raw reasoning text, never empty.
        ThoughtDelta = "thought.delta",
        /// Raw reasoning text closes.
        ThoughtClose = "thought.close",
        /// A tool call opens; its name is known.
        ToolOpen = "tool.open",
        /// An argument delta, never empty; by the policy `tool_arguments`, all arguments so far.
        ToolArgs = "tool.args",
        /// A tool call closes.
        ToolClose = "tool.close",
        /// The usage of the turn, if known (policy `usage`).
        Usage = "usage",
        /// A keepalive is due in an open stream (`keepalive.every`). Its frames replace the comment. It can occur between
        /// any two moments, so it is in no order.
        Idle = "idle",
    }
}

/// The most specific part of a turn that a moment concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    Turn,
    Choice,
    Item,
    Part,
}

impl MomentKind {
    pub fn subject(self) -> Subject {
        use MomentKind as M;
        match self {
            M::TurnOpen | M::TurnFinish | M::TurnClose | M::TurnFail | M::TurnEnd => Subject::Turn,
            M::Usage | M::Idle => Subject::Turn,
            M::ChoiceOpen | M::ChoiceFinish => Subject::Choice,
            M::MessageOpen | M::MessageClose | M::ReasoningOpen | M::ReasoningClose => Subject::Item,
            M::ToolOpen | M::ToolArgs | M::ToolClose => Subject::Item,
            M::PartOpen | M::TextDelta | M::RefusalDelta | M::Annotation | M::PartClose => Subject::Part,
            M::SummaryOpen | M::SummaryDelta | M::SummaryClose => Subject::Part,
            M::ThoughtOpen | M::ThoughtDelta | M::ThoughtClose => Subject::Part,
        }
    }

    /// True for the moments that carry a text delta and typically occur many times.
    pub fn is_delta(self) -> bool {
        use MomentKind as M;
        matches!(self, M::TextDelta | M::RefusalDelta | M::SummaryDelta | M::ThoughtDelta | M::ToolArgs)
    }
}

named_enum! {
    /// The scope of an order: the whole turn, one choice, or one item.
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
    /// The log-probabilities of the text, if there are any.
    pub logprobs: Option<Arc<[TokenLogprob]>>,
}

impl Moment {
    pub fn turn(kind: MomentKind) -> Moment {
        Moment { kind, choice: None, item: None, part: None, text: String::new(), logprobs: None }
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
