//! The variables that expressions can read, and their types. `check` reads this table; `engine/render` provides the
//! values.

use super::emit::ANNOTATION_KINDS;
use super::{FaultKind, Finish, ItemKind, ItemState, MomentKind, PartKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableType {
    Text,
    Int,
    Number,
    Bool,
    /// Any JSON; its members cannot be checked.
    Json,
    /// One of a closed set of names.
    Enum(&'static [&'static str]),
    Record(RecordType),
    List(RecordType),
    /// A list of scalars.
    ScalarList,
}

/// A record with named fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordType {
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
    /// A model, for static routes.
    Model,
    Build,
    /// Properties of the request to the backend.
    Upstream,
    Secret,
    /// Any JSON object: all field names are allowed.
    Untyped,
}

use RecordType as S;
use VariableType as T;

const TURN: &[(&str, VariableType)] = &[
    ("id", T::Text),
    ("created", T::Int),
    ("model", T::Text),
    ("state", T::Enum(ItemState::NAMES)),
    ("finish", T::Enum(Finish::NAMES)),
    ("choices", T::List(S::Choice)),
    ("items", T::List(S::Item)),
    ("usage", T::Record(S::Usage)),
    ("error", T::Record(S::Fault)),
    ("truncated", T::Bool),
    // Seconds since 1970, once the turn has ended.
    ("ended", T::Int),
    ("elapsed_ms", T::Int),
    ("first_ms", T::Int),
];
const CHOICE: &[(&str, VariableType)] = &[
    ("index", T::Int),
    ("items", T::List(S::Item)),
    ("text", T::Text),
    ("refusal", T::Text),
    // The text of the last message that has any.
    ("last_text", T::Text),
    // Text and refusals, in order of arrival.
    ("content", T::Text),
    ("thoughts", T::Text),
    ("summary", T::Text),
    ("calls", T::List(S::Item)),
    ("annotations", T::List(S::Annotation)),
    ("logprobs", T::Json),
    ("finish", T::Enum(Finish::NAMES)),
];
const ITEM: &[(&str, VariableType)] = &[
    ("id", T::Text),
    ("index", T::Int),
    ("ordinal", T::Int),
    ("kind", T::Enum(ItemKind::NAMES)),
    ("state", T::Enum(ItemState::NAMES)),
    ("parts", T::List(S::Part)),
    ("summaries", T::List(S::Part)),
    ("text", T::Text),
    ("encrypted", T::Text),
    ("call_id", T::Text),
    ("name", T::Text),
    ("arguments", T::Text),
];
const PART: &[(&str, VariableType)] = &[
    ("index", T::Int),
    ("kind", T::Enum(PartKind::NAMES)),
    ("text", T::Text),
    ("annotations", T::List(S::Annotation)),
    ("logprobs", T::Json),
];
const ANNOTATION: &[(&str, VariableType)] = &[
    ("kind", T::Enum(ANNOTATION_KINDS)),
    ("url", T::Text),
    ("title", T::Text),
    ("file", T::Text),
    ("name", T::Text),
    ("start", T::Int),
    ("end", T::Int),
    // Characters of the choice before the part that contains the annotation.
    ("shift", T::Int),
    ("index", T::Int),
    ("value", T::Json),
];
const USAGE: &[(&str, VariableType)] = &[
    ("input", T::Int),
    ("output", T::Int),
    ("total", T::Int),
    ("cached", T::Int),
    ("cache_write", T::Int),
    ("reasoning", T::Int),
];
const FAULT: &[(&str, VariableType)] = &[
    ("kind", T::Enum(FaultKind::NAMES)),
    ("message", T::Text),
    ("param", T::Text),
    ("code", T::Text),
    ("status", T::Int),
    ("retry_after", T::Int),
];
const REQUEST: &[(&str, VariableType)] = &[
    ("model", T::Text),
    ("stream", T::Bool),
    ("usage", T::Bool),
    ("n", T::Int),
    ("max_tokens", T::Int),
    ("temperature", T::Number),
    ("top_p", T::Number),
    ("stop", T::ScalarList),
    ("seed", T::Int),
    ("reasoning_effort", T::Text),
    ("parallel_tool_calls", T::Bool),
    ("metadata", T::Json),
    ("user", T::Text),
    ("previous_response_id", T::Text),
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
    // The messages after those in `instructions`.
    ("conversation", T::List(S::RequestMessage)),
    ("extra", T::Json),
    // The client's body as sent, for fields that are only echoed.
    ("raw", T::Json),
];
const REQUEST_ITEM: &[(&str, VariableType)] = &[
    ("type", T::Enum(&["message", "call", "result", "reasoning", "other"])),
    ("role", T::Text),
    ("text", T::Text),
    ("parts", T::List(S::RequestPart)),
    // Contains only text parts.
    ("plain", T::Bool),
    ("id", T::Text),
    ("name", T::Text),
    // Of a call or its result: function or custom. Of another item: the client's type.
    ("kind", T::Text),
    ("arguments", T::Text),
    // The arguments as JSON, for backends that do not accept them as text.
    ("input", T::Json),
    ("call_id", T::Text),
    ("failed", T::Bool),
    ("summaries", T::ScalarList),
    ("encrypted", T::Text),
    ("raw", T::Json),
];
const REQUEST_MESSAGE: &[(&str, VariableType)] = &[
    ("role", T::Text),
    ("text", T::Text),
    ("parts", T::List(S::RequestPart)),
    ("calls", T::List(S::RequestCall)),
    // Contains only text parts.
    ("plain", T::Bool),
    ("call_id", T::Text),
    // The name of the call that this is the result of.
    ("name", T::Text),
    ("failed", T::Bool),
];
const REQUEST_CALL: &[(&str, VariableType)] =
    &[("id", T::Text), ("name", T::Text), ("kind", T::Text), ("arguments", T::Text), ("input", T::Json)];
const REQUEST_PART: &[(&str, VariableType)] = &[
    ("type", T::Enum(&["text", "image", "file", "audio", "refusal"])),
    ("text", T::Text),
    ("url", T::Text),
    ("detail", T::Text),
    ("id", T::Text),
    ("name", T::Text),
    ("data", T::Text),
    ("format", T::Text),
    // Of a `data:` URL: the media type, and the bytes in base64.
    ("media", T::Text),
    ("base64", T::Text),
];
const TOOL: &[(&str, VariableType)] = &[
    ("kind", T::Text),
    // The client's type of the tool.
    ("type", T::Text),
    ("name", T::Text),
    ("description", T::Text),
    ("parameters", T::Json),
    ("strict", T::Bool),
    ("raw", T::Json),
];
const TOOL_CHOICE: &[(&str, VariableType)] = &[("mode", T::Text), ("name", T::Text)];
const FORMAT: &[(&str, VariableType)] =
    &[("kind", T::Text), ("name", T::Text), ("schema", T::Json), ("strict", T::Bool), ("description", T::Text)];
const MODEL: &[(&str, VariableType)] = &[("id", T::Text), ("backend", T::Text), ("created", T::Int)];
const BUILD: &[(&str, VariableType)] = &[("version", T::Text)];
const UPSTREAM: &[(&str, VariableType)] = &[("stream", T::Bool)];
const SECRET: &[(&str, VariableType)] = &[("key", T::Text)];

impl RecordType {
    /// `None`: all field names are allowed.
    pub fn fields(self) -> Option<&'static [(&'static str, VariableType)]> {
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
            S::Untyped => return None,
        })
    }

    pub fn field(self, name: &str) -> Option<VariableType> {
        match self.fields() {
            None => Some(T::Json),
            Some(fields) => fields.iter().find(|(n, _)| *n == name).map(|(_, t)| *t),
        }
    }
}

/// The variables of a frame at this moment, in addition to `policy`.
pub fn variables_at(moment: MomentKind) -> Vec<(&'static str, VariableType)> {
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
