//! The variables that expressions may read, and their types. `check` reads this table; `egress` fills it.

use super::emit::ANNOTATION_KINDS;
use super::{FaultKind, Finish, ItemKind, ItemState, MomentKind, PartKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Text,
    Int,
    Number,
    Bool,
    /// Any JSON; its members cannot be checked.
    Json,
    /// One of a closed set of words.
    Word(&'static [&'static str]),
    Record(Shape),
    List(Shape),
    /// A list of scalars.
    Scalars,
}

/// A record with named fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Turn,
    Choice,
    Item,
    Part,
    Annotation,
    Usage,
    Fault,
    Request,
    RequestItem,
    RequestMessage,
    RequestCall,
    RequestPart,
    Tool,
    ToolChoice,
    Format,
    /// A model, as `pages:` list it.
    Model,
    Build,
    /// What the backend is asked for.
    Upstream,
    Secret,
    /// Free JSON: any field may be asked for.
    Open,
}

use Shape as S;
use Type as T;

const TURN: &[(&str, Type)] = &[
    ("id", T::Text),
    ("created", T::Int),
    ("model", T::Text),
    ("state", T::Word(ItemState::WORDS)),
    ("finish", T::Word(Finish::WORDS)),
    ("choices", T::List(S::Choice)),
    ("items", T::List(S::Item)),
    ("usage", T::Record(S::Usage)),
    ("error", T::Record(S::Fault)),
    ("cut", T::Bool),
    // Seconds since 1970, once the turn is over.
    ("ended", T::Int),
    ("elapsed_ms", T::Int),
    ("first_ms", T::Int),
];
const CHOICE: &[(&str, Type)] = &[
    ("index", T::Int),
    ("items", T::List(S::Item)),
    ("text", T::Text),
    ("refusal", T::Text),
    // Of the last message that has some.
    ("last_text", T::Text),
    // Text and refusals, as they came.
    ("said", T::Text),
    ("thoughts", T::Text),
    ("summary", T::Text),
    ("calls", T::List(S::Item)),
    ("annotations", T::List(S::Annotation)),
    ("logprobs", T::Json),
    ("finish", T::Word(Finish::WORDS)),
];
const ITEM: &[(&str, Type)] = &[
    ("id", T::Text),
    ("index", T::Int),
    ("ordinal", T::Int),
    ("kind", T::Word(ItemKind::WORDS)),
    ("state", T::Word(ItemState::WORDS)),
    ("parts", T::List(S::Part)),
    ("summaries", T::List(S::Part)),
    ("text", T::Text),
    ("encrypted", T::Text),
    ("call_id", T::Text),
    ("name", T::Text),
    ("arguments", T::Text),
];
const PART: &[(&str, Type)] = &[
    ("index", T::Int),
    ("kind", T::Word(PartKind::WORDS)),
    ("text", T::Text),
    ("annotations", T::List(S::Annotation)),
    ("logprobs", T::Json),
];
const ANNOTATION: &[(&str, Type)] = &[
    ("kind", T::Word(ANNOTATION_KINDS)),
    ("url", T::Text),
    ("title", T::Text),
    ("file", T::Text),
    ("name", T::Text),
    ("start", T::Int),
    ("end", T::Int),
    // Characters of the choice before the part that it stands in.
    ("shift", T::Int),
    ("index", T::Int),
    ("value", T::Json),
];
const USAGE: &[(&str, Type)] = &[
    ("input", T::Int),
    ("output", T::Int),
    ("total", T::Int),
    ("cached", T::Int),
    ("cache_write", T::Int),
    ("reasoning", T::Int),
];
const FAULT: &[(&str, Type)] = &[
    ("kind", T::Word(FaultKind::WORDS)),
    ("message", T::Text),
    ("param", T::Text),
    ("code", T::Text),
    ("status", T::Int),
    ("retry_after", T::Int),
];
const REQUEST: &[(&str, Type)] = &[
    ("model", T::Text),
    ("stream", T::Bool),
    ("usage", T::Bool),
    ("n", T::Int),
    ("max_tokens", T::Int),
    ("temperature", T::Number),
    ("top_p", T::Number),
    ("stop", T::Scalars),
    ("seed", T::Int),
    ("effort", T::Text),
    ("parallel", T::Bool),
    ("metadata", T::Json),
    ("user", T::Text),
    ("previous", T::Text),
    ("tool_choice", T::Record(S::ToolChoice)),
    ("format", T::Record(S::Format)),
    ("tools", T::List(S::Tool)),
    ("items", T::List(S::RequestItem)),
    ("messages", T::List(S::RequestMessage)),
    ("history", T::List(S::RequestItem)),
    ("last", T::Record(S::RequestItem)),
    ("last_user_parts", T::List(S::RequestPart)),
    ("last_user_text", T::Text),
    ("instructions", T::Text),
    // The messages after those that `instructions` holds.
    ("conversation", T::List(S::RequestMessage)),
    ("extra", T::Json),
    // The client's body as it was sent, for what is only echoed.
    ("raw", T::Json),
];
const REQUEST_ITEM: &[(&str, Type)] = &[
    ("type", T::Word(&["message", "call", "result", "reasoning", "other"])),
    ("role", T::Text),
    ("text", T::Text),
    ("parts", T::List(S::RequestPart)),
    // Nothing but text.
    ("plain", T::Bool),
    ("id", T::Text),
    ("name", T::Text),
    // Of a call or its result: function or custom. Of another item: the client's own word.
    ("kind", T::Text),
    ("arguments", T::Text),
    // The arguments as JSON, for a backend that does not take them as text.
    ("input", T::Json),
    ("call_id", T::Text),
    ("failed", T::Bool),
    ("summaries", T::Scalars),
    ("encrypted", T::Text),
    ("raw", T::Json),
];
const REQUEST_MESSAGE: &[(&str, Type)] = &[
    ("role", T::Text),
    ("text", T::Text),
    ("parts", T::List(S::RequestPart)),
    ("calls", T::List(S::RequestCall)),
    // Nothing but text.
    ("plain", T::Bool),
    ("call_id", T::Text),
    // Of the call that this is the result of.
    ("name", T::Text),
    ("failed", T::Bool),
];
const REQUEST_CALL: &[(&str, Type)] =
    &[("id", T::Text), ("name", T::Text), ("kind", T::Text), ("arguments", T::Text), ("input", T::Json)];
const REQUEST_PART: &[(&str, Type)] = &[
    ("type", T::Word(&["text", "image", "file", "audio", "refusal"])),
    ("text", T::Text),
    ("url", T::Text),
    ("detail", T::Text),
    ("id", T::Text),
    ("name", T::Text),
    ("data", T::Text),
    ("format", T::Text),
    // Of a `data:` URL: what it holds, and the bytes in base64.
    ("media", T::Text),
    ("base64", T::Text),
];
const TOOL: &[(&str, Type)] = &[
    ("kind", T::Text),
    // The client's own word for it.
    ("type", T::Text),
    ("name", T::Text),
    ("description", T::Text),
    ("parameters", T::Json),
    ("strict", T::Bool),
    ("raw", T::Json),
];
const TOOL_CHOICE: &[(&str, Type)] = &[("mode", T::Text), ("name", T::Text)];
const FORMAT: &[(&str, Type)] =
    &[("kind", T::Text), ("name", T::Text), ("schema", T::Json), ("strict", T::Bool), ("description", T::Text)];
const MODEL: &[(&str, Type)] = &[("id", T::Text), ("backend", T::Text), ("created", T::Int)];
const BUILD: &[(&str, Type)] = &[("version", T::Text)];
const UPSTREAM: &[(&str, Type)] = &[("stream", T::Bool)];
const SECRET: &[(&str, Type)] = &[("key", T::Text)];

impl Shape {
    /// `None`: any field may be asked for.
    pub fn fields(self) -> Option<&'static [(&'static str, Type)]> {
        Some(match self {
            S::Turn => TURN,
            S::Choice => CHOICE,
            S::Item => ITEM,
            S::Part => PART,
            S::Annotation => ANNOTATION,
            S::Usage => USAGE,
            S::Fault => FAULT,
            S::Request => REQUEST,
            S::RequestItem => REQUEST_ITEM,
            S::RequestMessage => REQUEST_MESSAGE,
            S::RequestCall => REQUEST_CALL,
            S::RequestPart => REQUEST_PART,
            S::Tool => TOOL,
            S::ToolChoice => TOOL_CHOICE,
            S::Format => FORMAT,
            S::Model => MODEL,
            S::Build => BUILD,
            S::Upstream => UPSTREAM,
            S::Secret => SECRET,
            S::Open => return None,
        })
    }

    pub fn field(self, name: &str) -> Option<Type> {
        match self.fields() {
            None => Some(T::Json),
            Some(fields) => fields.iter().find(|(n, _)| *n == name).map(|(_, t)| *t),
        }
    }
}

/// The variables in a frame of this moment, besides `policy`.
pub fn variables_at(moment: MomentKind) -> Vec<(&'static str, Type)> {
    use MomentKind as M;
    let mut all =
        vec![("turn", T::Record(S::Turn)), ("request", T::Record(S::Request)), ("seq", T::Int), ("frame", T::Text)];
    let choice = ("choice", T::Record(S::Choice));
    let item = ("item", T::Record(S::Item));
    let part = ("part", T::Record(S::Part));
    match moment {
        M::TurnOpen | M::TurnFinish | M::TurnClose | M::TurnEnd => {}
        M::TurnFail => all.push(("fault", T::Record(S::Fault))),
        M::Usage => all.push(("usage", T::Record(S::Usage))),
        M::ChoiceOpen | M::ChoiceFinish => all.push(choice),
        M::MessageOpen | M::MessageClose | M::ReasoningOpen | M::ReasoningClose | M::ToolOpen | M::ToolClose => {
            all.extend([choice, item]);
        }
        M::ToolArgs => all.extend([choice, item, ("args", T::Text)]),
        M::PartOpen | M::PartClose | M::SummaryOpen | M::SummaryClose | M::ThoughtOpen | M::ThoughtClose => {
            all.extend([choice, item, part]);
        }
        M::TextDelta => all.extend([choice, item, part, ("text", T::Text), ("logprobs", T::Json)]),
        M::RefusalDelta | M::SummaryDelta | M::ThoughtDelta => {
            all.extend([choice, item, part, ("text", T::Text)]);
        }
        M::Annotation => {
            all.extend([choice, item, part, ("annotation", T::Record(S::Annotation)), ("ordinal", T::Int)])
        }
    }
    all
}
