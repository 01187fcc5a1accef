//! The records that variables consist of. Each field is declared once: its name, its type and how its value is read.

use super::{Value, Variable, VariableType as T};
use crate::domain::{
    AnnotationKind, Choice, Fault, FaultKind, Finish, Item, ItemKind, ItemState, Part, PartAnnotation, PartKind,
    TurnState, Usage,
};

/// Declares the records. Those of `typed` are read from a Rust type, with an expression for each field. Those of `json`
/// are JSON objects; a field is the member of the same name.
macro_rules! records {
    (
        typed {$(
            $(#[$typed_doc:meta])*
            $typed:ident($($subject:ident: $subject_type:ty),+) {
                $($field:ident: $field_type:expr => $value:expr;)*
            }
        )*}
        json {$(
            $(#[$json_doc:meta])*
            $json:ident { $($member:ident: $member_type:expr;)* }
        )*}
    ) => {
        /// A record with named fields.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum RecordType {
            $($(#[$typed_doc])* $typed,)*
            $($(#[$json_doc])* $json,)*
            /// Any JSON object: all field names are allowed.
            Untyped,
        }

        impl RecordType {
            /// `None`: all field names are allowed.
            pub fn fields(self) -> Option<&'static [Variable]> {
                match self {
                    $(RecordType::$typed => Some(&[$((stringify!($field), $field_type)),*]),)*
                    $(RecordType::$json => Some(&[$((stringify!($member), $member_type)),*]),)*
                    RecordType::Untyped => None,
                }
            }
        }

        /// The value of a record that is read from a Rust type.
        #[derive(Clone, Copy, Debug)]
        pub enum Record<'a> {
            $($(#[$typed_doc])* $typed($(&'a $subject_type),+),)*
        }

        impl<'a> Record<'a> {
            /// The loader has checked the name.
            pub fn field(self, name: &str) -> Value<'a> {
                match self {
                    $(Record::$typed($($subject),+) => match name {
                        $(stringify!($field) => Value::from($value),)*
                        _ => Value::Null,
                    },)*
                }
            }

            /// All fields, with their values.
            pub fn fields(self) -> impl Iterator<Item = (&'static str, Value<'a>)> {
                let names = match self {
                    $(Record::$typed(..) => RecordType::$typed.fields().unwrap_or_default(),)*
                };
                names.iter().map(move |(name, _)| (*name, self.field(name)))
            }
        }
    };
}

use RecordType as R;

records! {
    typed {
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
            logprobs: T::Json => Value::list(parts(turn, choice).flat_map(|part| &part.logprobs));
            finish: T::Enum(Finish::NAMES) => choice.finish.map(Finish::name);
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
        }
        Part(part: Part) {
            index: T::Int => part.index;
            kind: T::Enum(PartKind::NAMES) => part.kind.name();
            text: T::Text => &part.text;
            annotations: T::List(R::Annotation) => Value::list(part.annotations.iter().map(Record::Annotation));
            logprobs: T::Json => Value::list(&part.logprobs);
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
    }
    json {
        Request {
            model: T::Text;
            stream: T::Bool;
            usage: T::Bool;
            n: T::Int;
            max_tokens: T::Int;
            temperature: T::Number;
            top_p: T::Number;
            stop: T::ScalarList;
            seed: T::Int;
            reasoning_effort: T::Text;
            parallel_tool_calls: T::Bool;
            metadata: T::Json;
            user: T::Text;
            previous_response_id: T::Text;
            tool_choice: T::Record(R::ToolChoice);
            format: T::Record(R::Format);
            tools: T::List(R::Tool);
            items: T::List(R::RequestItem);
            messages: T::List(R::RequestMessage);
            history: T::List(R::RequestItem);
            last: T::Record(R::RequestItem);
            last_user_parts: T::List(R::RequestPart);
            last_user_text: T::Text;
            instructions: T::Text;
            // The messages after those in `instructions`.
            conversation: T::List(R::RequestMessage);
            extra: T::Json;
            // The client's body as sent, for fields that are only echoed.
            raw: T::Json;
        }
        RequestItem {
            type: T::Enum(&["message", "call", "result", "reasoning", "other"]);
            role: T::Text;
            text: T::Text;
            parts: T::List(R::RequestPart);
            // Contains only text parts.
            plain: T::Bool;
            id: T::Text;
            name: T::Text;
            // Of a call or its result: function or custom. Of another item: the client's type.
            kind: T::Text;
            arguments: T::Text;
            // The arguments as JSON, for backends that do not accept them as text.
            input: T::Json;
            call_id: T::Text;
            failed: T::Bool;
            summaries: T::ScalarList;
            encrypted: T::Text;
            raw: T::Json;
        }
        RequestMessage {
            role: T::Text;
            text: T::Text;
            parts: T::List(R::RequestPart);
            calls: T::List(R::RequestCall);
            // Contains only text parts.
            plain: T::Bool;
            call_id: T::Text;
            // The name of the call that this is the result of.
            name: T::Text;
            failed: T::Bool;
        }
        RequestCall {
            id: T::Text;
            name: T::Text;
            kind: T::Text;
            arguments: T::Text;
            input: T::Json;
        }
        RequestPart {
            type: T::Enum(&["text", "image", "file", "audio", "refusal"]);
            text: T::Text;
            url: T::Text;
            detail: T::Text;
            id: T::Text;
            name: T::Text;
            data: T::Text;
            format: T::Text;
            // Of a `data:` URL: the media type, and the bytes in base64.
            media: T::Text;
            base64: T::Text;
        }
        Tool {
            kind: T::Text;
            // The client's type of the tool.
            type: T::Text;
            name: T::Text;
            description: T::Text;
            parameters: T::Json;
            strict: T::Bool;
            raw: T::Json;
        }
        ToolChoice {
            mode: T::Text;
            name: T::Text;
        }
        Format {
            kind: T::Text;
            name: T::Text;
            schema: T::Json;
            strict: T::Bool;
            description: T::Text;
        }
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
