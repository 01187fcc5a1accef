//! The records that variables consist of. Each field is declared once: its name, its type and how its value is read.

use super::{Value, Variable, VariableType as T};
use crate::domain::request_item::{
    ChoiceMode, Content, ContentPart as P, ContentPartType, Format, FormatKind, RequestCall, RequestItem as I,
    RequestItemType, RequestReasoning, Tool, ToolChoice, ToolKind,
};
use crate::domain::{
    AnnotationKind, CallKind, Choice, Fault, FaultKind, Finish, Item, ItemKind, ItemState, Part, PartAnnotation,
    PartKind, RequestContent, RoleNames, TokenLogprob, TurnRequest, TurnState, Usage,
};
use std::borrow::Cow;
use std::sync::Arc;

/// The roles that every backend should expect. A dialect may emit others.
const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool"];

/// Declares the records: each is read from a Rust type, with an expression for each field.
macro_rules! records {
    ($(
        $(#[$doc:meta])*
        $record:ident($($subject:ident: $subject_type:ty),+) {
            $($field:ident: $field_type:expr => $value:expr;)*
        }
    )*) => {
        /// A record with named fields.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum RecordType {
            $($(#[$doc])* $record,)*
            /// Any JSON object: all field names are allowed.
            Untyped,
        }

        impl RecordType {
            /// `None`: all field names are allowed.
            pub fn fields(self) -> Option<&'static [Variable]> {
                match self {
                    $(RecordType::$record => Some(&[$((stringify!($field), $field_type)),*]),)*
                    RecordType::Untyped => None,
                }
            }
        }

        /// The value of a record.
        #[derive(Clone, Copy, Debug)]
        pub enum Record<'a> {
            $($(#[$doc])* $record($(&'a $subject_type),+),)*
        }

        impl<'a> Record<'a> {
            /// The loader has checked the name.
            pub fn field(self, name: &str) -> Value<'a> {
                match self {
                    $(Record::$record($($subject),+) => match name {
                        $(stringify!($field) => Value::from($value),)*
                        _ => Value::Null,
                    },)*
                }
            }

            /// All fields, with their values.
            pub fn fields(self) -> impl Iterator<Item = (&'static str, Value<'a>)> {
                let names = match self {
                    $(Record::$record(..) => RecordType::$record.fields().unwrap_or_default(),)*
                };
                names.iter().map(move |(name, _)| (*name, self.field(name)))
            }
        }
    };
}

/// A field that only these variants have.
macro_rules! field {
    ($value:expr, $pattern:pat => $field:expr) => {
        match $value {
            $pattern => Some($field),
            _ => None,
        }
    };
}

use RecordType as R;

records! {
    /// A model, for static routes.
    Model(id: str, backend: str, created: i64) {
        id: T::Text => id;
        backend: T::Text => backend;
        created: T::Int => *created;
    }
    /// This build of the gateway.
    Build(version: str) {
        version: T::Text => version;
    }
    /// Properties of the request to the backend.
    Upstream(stream: bool) {
        stream: T::Bool => *stream;
    }
    /// The API key of the backend.
    Secret(key: str) {
        key: T::Text => key;
    }
    Turn(turn: TurnState) {
        id: T::Text => &turn.id;
        created: T::Int => turn.created;
        model: T::Text => &turn.model;
        state: T::Enum(ItemState::NAMES) => turn.state().name();
        finish: T::Enum(Finish::NAMES) => turn.finish.map(Finish::name);
        choices: T::List(R::Choice) => Value::list(turn.choices.iter().map(|choice| Record::Choice(turn, choice)));
        items: T::List(R::Item) => items_by_index(turn);
        usage: T::Record(R::Usage) => turn.usage.as_ref().map(Record::Usage);
        // What is known at this moment; `usage` is null until the end.
        usage_so_far: T::Record(R::Usage) => turn.usage_so_far.is_known().then_some(Record::Usage(&turn.usage_so_far));
        // Vendor fields, by the names that the backend's rules emit.
        extra: T::Json => turn.extra.as_ref();
        error: T::Record(R::Fault) => turn.error.as_ref().map(Record::Fault);
        truncated: T::Bool => turn.finish.is_some_and(Finish::is_truncated);
        // Seconds since 1970, once the turn has ended.
        ended: T::Int => turn.ended;
        elapsed_ms: T::Int => turn.elapsed_ms;
        first_ms: T::Int => turn.first_output_ms;
    }
    Choice(turn: TurnState, choice: Choice) {
        index: T::Int => choice.index;
        items: T::List(R::Item) => Value::list(turn.items_of(choice.index).map(Record::Item));
        text: T::Text => texts(turn, choice, &[PartKind::Text]);
        refusal: T::Text => texts(turn, choice, &[PartKind::Refusal]);
        // The text of the last message that has any.
        last_text: T::Text => last_text(turn, choice);
        // Text and refusals, in order of arrival.
        content: T::Text => texts(turn, choice, &[PartKind::Text, PartKind::Refusal]);
        thoughts: T::Text => texts(turn, choice, &[PartKind::Thought]);
        summary: T::Text => {
            let summaries = turn.items_of(choice.index).flat_map(|item| &item.summaries);
            Value::joined(summaries.map(|part| part.text.as_str()))
        };
        calls: T::List(R::Item) => {
            Value::list(turn.items_of(choice.index).filter(|item| item.is_call()).map(Record::Item))
        };
        annotations: T::List(R::Annotation) => {
            Value::list(parts(turn, choice).flat_map(|part| &part.annotations).map(Record::Annotation))
        };
        logprobs: T::List(R::Token) => tokens(parts(turn, choice));
        finish: T::Enum(Finish::NAMES) => choice.finish.map(Finish::name);
        extra: T::Json => turn.choice_extra.get(&choice.index);
    }
    Item(item: Item) {
        id: T::Text => &item.id;
        index: T::Int => item.index;
        ordinal: T::Int => item.ordinal;
        kind: T::Enum(ItemKind::NAMES) => item.kind.name();
        state: T::Enum(ItemState::NAMES) => item.state.name();
        parts: T::List(R::Part) => Value::list(item.parts.iter().map(Record::Part));
        summaries: T::List(R::Part) => Value::list(item.summaries.iter().map(Record::Part));
        // A call has no parts, and no text.
        text: T::Text => Value::joined(item.parts.iter().map(|part| part.text.as_str()));
        encrypted: T::Text => item.encrypted.as_ref();
        call_id: T::Text => &item.call_id;
        name: T::Text => &item.name;
        arguments: T::Text => &item.arguments;
        // The arguments as JSON, once the call is closed.
        input: T::Json => item.input.as_ref();
        // The number of its first block.
        block: T::Int => item.block;
    }
    Part(part: Part) {
        index: T::Int => part.index;
        // Its number among all parts and calls of the turn.
        block: T::Int => part.block;
        kind: T::Enum(PartKind::NAMES) => part.kind.name();
        text: T::Text => &part.text;
        annotations: T::List(R::Annotation) => Value::list(part.annotations.iter().map(Record::Annotation));
        logprobs: T::List(R::Token) => tokens([part]);
    }
    /// A token with its log-probability.
    Token(token: TokenLogprob) {
        token: T::Text => &token.token;
        logprob: T::Number => &token.logprob;
        bytes: T::ScalarList => token.bytes().map(|bytes| Value::list(bytes.iter().copied().map(i64::from)));
        top_logprobs: T::List(R::Token) => Value::list(token.top.iter().map(Record::Token));
    }
    Annotation(part: PartAnnotation) {
        kind: T::Enum(AnnotationKind::NAMES) => part.annotation.kind.map(AnnotationKind::name);
        url: T::Text => part.annotation.url.as_ref();
        title: T::Text => part.annotation.title.as_ref();
        file: T::Text => part.annotation.file.as_ref();
        name: T::Text => part.annotation.name.as_ref();
        start: T::Int => part.annotation.start;
        end: T::Int => part.annotation.end;
        // Characters of the choice before the part that contains the annotation.
        shift: T::Int => part.shift;
        index: T::Int => part.annotation.index;
        value: T::Json => part.annotation.value.as_ref();
    }
    Usage(usage: Usage) {
        input: T::Int => usage.input.unwrap_or(0);
        output: T::Int => usage.output.unwrap_or(0);
        total: T::Int => usage.total();
        cached: T::Int => usage.cached;
        cache_write: T::Int => usage.cache_write;
        reasoning: T::Int => usage.reasoning;
    }
    Fault(fault: Fault) {
        kind: T::Enum(FaultKind::NAMES) => fault.kind.name();
        message: T::Text => &fault.message;
        param: T::Text => fault.param.as_ref();
        code: T::Text => fault.code.as_ref();
        status: T::Int => fault.status();
        retry_after: T::Int => fault.retry_after;
    }
    Request(request: TurnRequest, content: RequestContent, roles: RoleNames) {
        model: T::Text => content.scalar(request, "model");
        stream: T::Bool => content.scalar(request, "stream");
        usage: T::Bool => content.scalar(request, "usage");
        n: T::Int => content.scalar(request, "n");
        max_tokens: T::Int => content.scalar(request, "max_tokens");
        temperature: T::Number => content.scalar(request, "temperature");
        top_p: T::Number => content.scalar(request, "top_p");
        stop: T::ScalarList => content.scalar(request, "stop");
        seed: T::Int => content.scalar(request, "seed");
        reasoning_effort: T::Text => content.scalar(request, "reasoning_effort");
        parallel_tool_calls: T::Bool => content.scalar(request, "parallel_tool_calls");
        metadata: T::Json => content.scalar(request, "metadata");
        user: T::Text => content.scalar(request, "user");
        previous_response_id: T::Text => content.scalar(request, "previous_response_id");
        stored_prompt: T::Json => content.scalar(request, "stored_prompt");
        tool_choice: T::Record(R::ToolChoice) => content.tool_choice.as_ref().map(Record::ToolChoice);
        format: T::Record(R::Format) => content.format.as_ref().map(Record::Format);
        tools: T::List(R::Tool) => Value::list(content.tools.iter().map(|tool| Record::Tool(tool)));
        items: T::List(R::RequestItem) => request_items(roles, content.items());
        messages: T::List(R::RequestMessage) => request_messages(roles, content.messages());
        history: T::List(R::RequestItem) => request_items(roles, content.history());
        last: T::Record(R::RequestItem) => content.items().last().map(|item| Record::RequestItem(roles, item));
        last_user_parts: T::List(R::RequestPart) => request_parts(content.last_user_parts());
        last_user_text: T::Text => content.last_user_text();
        instructions: T::Text => content.instructions();
        // The messages after those in `instructions`.
        conversation: T::List(R::RequestMessage) => request_messages(roles, content.conversation());
        extra: T::Json => &request.extra;
        // The client's body as sent, for fields that are only echoed.
        raw: T::Json => &request.raw;
    }
    RequestItem(roles: RoleNames, item: I) {
        type: T::Enum(RequestItemType::NAMES) => item.kind().name();
        role: T::OpenEnum(ROLES) => field!(item, I::Message { role, .. } => role.as_ref().map(|role| roles.map(role)));
        text: T::Text => match item {
            I::Reasoning { reasoning } => reasoning.text.as_deref().map(Cow::Borrowed),
            _ => item.content().map(Content::text),
        };
        parts: T::List(R::RequestPart) => item.content().map(|content| request_parts(&content.parts));
        // Contains only text parts.
        plain: T::Bool => item.content().map(Content::is_plain);
        id: T::Text => {
            let id = item.call().map(|call| &call.id).or(item.reasoning().map(|reasoning| &reasoning.id));
            id.and_then(Option::as_ref)
        };
        name: T::Text => item.tool().and_then(|tool| tool.name.as_ref());
        // Of a call or its result: function or custom. Of another item: the client's type.
        kind: T::Text => match item {
            I::Other { kind, .. } => kind.as_deref(),
            _ => item.tool().and_then(|tool| tool.kind).map(CallKind::name),
        };
        arguments: T::Text => item.call().and_then(|call| call.arguments.as_ref());
        // The arguments as JSON, for backends that do not accept them as text.
        input: T::Json => item.call().map(RequestCall::input);
        call_id: T::Text => field!(item, I::Result { call_id, .. } => call_id.as_ref());
        failed: T::Bool => field!(item, I::Result { failed, .. } => *failed);
        summaries: T::ScalarList => item.reasoning().and_then(|r| r.summaries.as_ref()).map(Value::list);
        signature: T::Text => item.reasoning().and_then(|reasoning| reasoning.signature.as_ref());
        encrypted: T::Text => item.reasoning().and_then(|reasoning| reasoning.encrypted.as_ref());
        raw: T::Json => field!(item, I::Other { raw, .. } => raw);
    }
    /// One or more items that are one message.
    RequestMessage(roles: RoleNames, items: [Arc<I>]) {
        role: T::OpenEnum(ROLES) => items.iter().find_map(|item| item.message_role()).map(|role| roles.map(role));
        text: T::Text => contents(items).map(Content::text).reduce(|text, more| text + more);
        parts: T::List(R::RequestPart) => request_parts(contents(items).flat_map(|content| &content.parts));
        calls: T::List(R::RequestCall) => {
            Value::list(items.iter().filter_map(|item| item.call()).map(Record::RequestCall))
        };
        // The reasoning before it, sent back by the client.
        reasoning: T::List(R::RequestReasoning) => {
            Value::list(items.iter().filter_map(|item| item.reasoning()).map(Record::RequestReasoning))
        };
        // The texts of its reasoning.
        thoughts: T::Text => {
            Value::joined(items.iter().filter_map(|item| item.reasoning()).filter_map(|r| r.text.as_deref()))
        };
        // Contains only text parts.
        plain: T::Bool => contents(items).all(Content::is_plain);
        call_id: T::Text => items.first().map(|item| field!(&**item, I::Result { call_id, .. } => call_id.as_ref()));
        // The name of the call that this is the result of.
        name: T::Text => items.first().map(|item| field!(&**item, I::Result { tool, .. } => tool.0.name.as_ref()));
        failed: T::Bool => items.first().map(|item| field!(&**item, I::Result { failed, .. } => *failed));
    }
    RequestReasoning(reasoning: RequestReasoning) {
        id: T::Text => reasoning.id.as_ref();
        text: T::Text => reasoning.text.as_ref();
        summaries: T::ScalarList => reasoning.summaries.as_ref().map(Value::list);
        signature: T::Text => reasoning.signature.as_ref();
        encrypted: T::Text => reasoning.encrypted.as_ref();
    }
    RequestCall(call: RequestCall) {
        id: T::Text => call.id.as_ref();
        name: T::Text => call.tool.name.as_ref();
        kind: T::Enum(CallKind::NAMES) => call.tool.kind.map(CallKind::name);
        arguments: T::Text => call.arguments.as_ref();
        input: T::Json => call.input();
    }
    RequestPart(part: P) {
        type: T::Enum(ContentPartType::NAMES) => part.kind().name();
        text: T::Text => part.text();
        url: T::Text => part.url();
        detail: T::Text => field!(part, P::Image { detail, .. } => detail.as_ref());
        id: T::Text => field!(part, P::File { id, .. } => id.as_ref());
        name: T::Text => field!(part, P::File { name, .. } => name.as_ref());
        data: T::Text => part.data();
        format: T::Text => part.format();
        // Of bytes, whichever form the client sent: the media type, and the bytes in base64.
        media_type: T::Text => part.media_type();
        base64: T::Text => part.base64();
    }
    Tool(tool: Tool) {
        kind: T::Enum(ToolKind::NAMES) => tool.kind.map(ToolKind::name);
        // The client's type of the tool.
        type: T::Text => tool.client_type.as_ref();
        name: T::Text => tool.name.as_ref();
        description: T::Text => tool.description.as_ref();
        parameters: T::Json => tool.parameters.as_ref();
        strict: T::Bool => tool.strict;
        raw: T::Json => tool.raw.as_ref();
    }
    ToolChoice(choice: ToolChoice) {
        mode: T::Enum(ChoiceMode::NAMES) => choice.mode.map(ChoiceMode::name);
        name: T::Text => choice.name.as_ref();
        unknown: T::Json => choice.unknown.0.as_ref();
    }
    Format(format: Format) {
        kind: T::Enum(FormatKind::NAMES) => format.kind.map(FormatKind::name);
        name: T::Text => format.name.as_ref();
        schema: T::Json => format.schema.as_ref();
        strict: T::Bool => format.strict;
        description: T::Text => format.description.as_ref();
        unknown: T::Json => format.unknown.0.as_ref();
    }
}

impl<'a> Record<'a> {
    /// The request as the client sent it, not adapted to a backend.
    pub fn request(request: &'a TurnRequest) -> Record<'a> {
        Record::Request(request, &request.content, RoleNames::IDENTITY)
    }

    /// Whether the whole record as JSON is without the fields that are null: those that a client did not set.
    pub fn omits_null(self) -> bool {
        use Record::{Choice, Fault, Item, Part, Token, Turn, Usage};
        !matches!(self, Turn(_) | Choice(..) | Item(_) | Part(_) | Token(_) | Usage(_) | Fault(_))
    }
}

impl RecordType {
    pub fn field(self, name: &str) -> Option<T> {
        match self.fields() {
            None => Some(T::Json),
            Some(fields) => fields.iter().find(|(n, _)| *n == name).map(|(_, t)| *t),
        }
    }
}

/// Under `message_first` a message may open after the calls that it precedes.
fn items_by_index(turn: &TurnState) -> Value<'_> {
    let mut items: Vec<&Item> = turn.items.iter().collect();
    items.sort_by_key(|item| item.index);
    Value::list(items.into_iter().map(Record::Item))
}

fn parts<'a>(turn: &'a TurnState, choice: &'a Choice) -> impl Iterator<Item = &'a Part> {
    turn.items_of(choice.index).flat_map(|item| &item.parts)
}

fn tokens<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Value<'a> {
    Value::list(parts.into_iter().flat_map(|part| &part.logprobs).flat_map(|delta| delta.iter()).map(Record::Token))
}

fn texts<'a>(turn: &'a TurnState, choice: &'a Choice, kinds: &[PartKind]) -> Value<'a> {
    let wanted = parts(turn, choice).filter(|part| kinds.contains(&part.kind) && !part.text.is_empty());
    Value::joined(wanted.map(|part| part.text.as_str()))
}

fn last_text<'a>(turn: &'a TurnState, choice: &'a Choice) -> Value<'a> {
    let is_text = |part: &&Part| part.kind == PartKind::Text;
    let has_text = |item: &&Item| item.parts.iter().filter(is_text).any(|part| !part.text.is_empty());
    let last = turn.items_of(choice.index).filter(has_text).last();
    let parts = last.into_iter().flat_map(|item| &item.parts).filter(is_text);
    Value::joined(parts.map(|part| part.text.as_str()))
}

fn request_items<'a>(roles: &'a RoleNames, items: &'a [Arc<I>]) -> Value<'a> {
    Value::list(items.iter().map(|item| Record::RequestItem(roles, item)))
}

fn request_messages<'a>(roles: &'a RoleNames, messages: impl Iterator<Item = &'a [Arc<I>]>) -> Value<'a> {
    Value::list(messages.map(|items| Record::RequestMessage(roles, items)))
}

fn request_parts<'a>(parts: impl IntoIterator<Item = &'a P>) -> Value<'a> {
    Value::list(parts.into_iter().map(Record::RequestPart))
}

fn contents(items: &[Arc<I>]) -> impl Iterator<Item = &Content> {
    items.iter().filter_map(|item| item.content())
}
