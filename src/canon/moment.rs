use super::{Tree, words};

words! {
    /// A point in the life of the turn at which a client may have to be told something.
    pub enum MomentKind {
        TurnOpen = "turn.open",
        TurnFinish = "turn.finish",
        TurnClose = "turn.close",
        TurnFail = "turn.fail",
        TurnEnd = "turn.end",
        ChoiceOpen = "choice.open",
        ChoiceFinish = "choice.finish",
        MessageOpen = "message.open",
        MessageClose = "message.close",
        PartOpen = "part.open",
        PartClose = "part.close",
        TextDelta = "text.delta",
        RefusalDelta = "refusal.delta",
        Annotation = "annotation",
        ReasoningOpen = "reasoning.open",
        ReasoningClose = "reasoning.close",
        SummaryOpen = "summary.open",
        SummaryDelta = "summary.delta",
        SummaryClose = "summary.close",
        ThoughtOpen = "thought.open",
        ThoughtDelta = "thought.delta",
        ThoughtClose = "thought.close",
        ToolOpen = "tool.open",
        ToolArgs = "tool.args",
        ToolClose = "tool.close",
        Usage = "usage",
    }
}

impl MomentKind {
    /// Does it tell a piece, one of many that are alike?
    pub fn is_piece(self) -> bool {
        use MomentKind as M;
        matches!(self, M::TextDelta | M::RefusalDelta | M::SummaryDelta | M::ThoughtDelta | M::ToolArgs)
    }
}

words! {
    /// What an order is about: the whole turn, one choice, or one item.
    pub enum Scope {
        Turn = "turn",
        Choice = "choice",
        Item = "item",
    }
}

/// A moment, with the places in the turn's state that it speaks of.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    pub kind: MomentKind,
    pub choice: Option<usize>,
    /// Position in `TurnState::items`.
    pub item: Option<usize>,
    /// Position in the item's parts or summaries.
    pub part: Option<usize>,
    /// What is new: a piece of text, or of arguments (policy `tool_arguments`: or all so far).
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
