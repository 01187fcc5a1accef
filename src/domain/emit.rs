//! What rules can `emit:`, with the fields of each kind. Rules of backends emit events; rules of dialects emit the items of
//! a request, and observations about captured frames.

use super::{CallKind, Finish, Merge, ReasoningKind};

/// The type of a field that a rule sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// A string; numbers and booleans are converted to text.
    Text,
    Int,
    Number,
    Bool,
    /// One of a closed set of names.
    Enum(&'static [&'static str]),
    /// One string or a list of them.
    TextOrList,
    /// Any JSON, with key order and exact numbers preserved.
    Json,
    /// A list of content parts, built by the named rules after `use:`.
    ContentParts,
}

#[derive(Debug)]
pub struct FieldSpec {
    pub name: &'static str,
    pub field_type: FieldType,
}

/// One kind of thing that a rule can emit.
#[derive(Debug)]
pub struct EmitKind {
    pub name: &'static str,
    /// For the generated schema and reference.
    pub description: &'static str,
    pub fields: &'static [FieldSpec],
    /// Nothing is emitted if all of these fields are absent. If the list is empty, it is always emitted.
    pub payload: &'static [&'static str],
}

/// The kinds that one category of rules can emit.
#[derive(Debug)]
pub struct EmitGrammar {
    /// The noun for one of its kinds in diagnostics.
    pub noun: &'static str,
    /// Treat empty strings as absent: an empty delta of a stream carries nothing, an empty message of a request does.
    pub skip_empty: bool,
    pub kinds: &'static [EmitKind],
}

impl EmitGrammar {
    pub fn find(&self, name: &str) -> Option<&'static EmitKind> {
        self.kinds.iter().find(|w| w.name == name)
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.kinds.iter().map(|w| w.name)
    }
}

const fn field(name: &'static str, field_type: FieldType) -> FieldSpec {
    FieldSpec { name, field_type }
}

const CHOICE: FieldSpec = field("choice", FieldType::Int);
const ITEM: FieldSpec = field("item", FieldType::Text);
const PART: FieldSpec = field("part", FieldType::Int);
const DELTA: FieldSpec = field("delta", FieldType::Text);
const WHOLE: FieldSpec = field("whole", FieldType::Text);

/// What an annotation refers to.
pub const ANNOTATION_KINDS: &[&str] = &["url", "file", "other"];

pub static EVENTS: EmitGrammar = EmitGrammar {
    noun: "event",
    skip_empty: true,
    kinds: &[
        EmitKind {
            name: "start",
            description: "Who answers. Before anything was told, `model` replaces the model that was asked for.",
            fields: &[field("id", FieldType::Text), field("model", FieldType::Text), field("created", FieldType::Int)],
            payload: &["id", "model", "created"],
        },
        EmitKind {
            name: "text",
            description: "A piece of text; `whole` is a snapshot of all so far, of which only what is new counts.",
            fields: &[CHOICE, ITEM, PART, DELTA, WHOLE],
            payload: &["delta", "whole"],
        },
        EmitKind {
            name: "refusal",
            description: "A piece of a refusal; `whole` is a snapshot of all so far.",
            fields: &[CHOICE, ITEM, PART, DELTA, WHOLE],
            payload: &["delta", "whole"],
        },
        EmitKind {
            name: "reasoning",
            description: "Thoughts; `part` numbers the summaries.",
            fields: &[
                CHOICE,
                ITEM,
                field("kind", FieldType::Enum(ReasoningKind::NAMES)),
                PART,
                DELTA,
                WHOLE,
                field("encrypted", FieldType::Text),
            ],
            payload: &["delta", "whole", "encrypted"],
        },
        EmitKind {
            name: "annotation",
            description: "A citation; `value` is any JSON, for what has no field of its own.",
            fields: &[
                CHOICE,
                ITEM,
                field("kind", FieldType::Enum(ANNOTATION_KINDS)),
                field("url", FieldType::Text),
                field("title", FieldType::Text),
                field("file", FieldType::Text),
                field("name", FieldType::Text),
                field("start", FieldType::Int),
                field("end", FieldType::Int),
                field("index", FieldType::Int),
                field("value", FieldType::Json),
            ],
            payload: &["url", "file", "value"],
        },
        EmitKind {
            name: "logprobs",
            description: "The log-probabilities of the text that comes next.",
            fields: &[CHOICE, ITEM, field("value", FieldType::Json)],
            payload: &["value"],
        },
        EmitKind {
            name: "tool",
            description: "A piece of a call; `key` is whatever names the call in this backend.",
            fields: &[
                CHOICE,
                field("key", FieldType::Text),
                field("id", FieldType::Text),
                field("name", FieldType::Text),
                field("kind", FieldType::Enum(CallKind::NAMES)),
                DELTA,
                WHOLE,
            ],
            payload: &["id", "name", "delta", "whole"],
        },
        EmitKind {
            name: "batch",
            description: "The calls with these ids are complete.",
            fields: &[CHOICE, field("ids", FieldType::TextOrList)],
            payload: &["ids"],
        },
        // Without a key it closes every open call of the choice.
        EmitKind {
            name: "close",
            description: "This item, or this call (by key or id), is complete.",
            fields: &[CHOICE, ITEM, field("key", FieldType::Text)],
            payload: &[],
        },
        EmitKind {
            name: "usage",
            description: "Tokens, as far as the backend counted them.",
            fields: &[
                field("input", FieldType::Int),
                field("output", FieldType::Int),
                field("total", FieldType::Int),
                field("cached", FieldType::Int),
                field("cache_write", FieldType::Int),
                field("reasoning", FieldType::Int),
                field("merge", FieldType::Enum(Merge::NAMES)),
            ],
            payload: &["input", "output", "total", "cached", "cache_write", "reasoning"],
        },
        EmitKind {
            name: "finish",
            description: "Why the choice ended; without `choice` it ends all that are open.",
            fields: &[CHOICE, field("reason", FieldType::Enum(Finish::NAMES))],
            payload: &["reason"],
        },
        EmitKind {
            name: "fault",
            description: "An error; `final: false` when the backend goes on by itself.",
            fields: &[
                field("message", FieldType::Text),
                field("code", FieldType::Text),
                field("param", FieldType::Text),
                field("status", FieldType::Int),
                field("retry_after", FieldType::Int),
                field("final", FieldType::Bool),
            ],
            payload: &[],
        },
        EmitKind {
            name: "end",
            description: "Nothing follows. Not needed where the framing has an end marker or the bytes end.",
            fields: &[],
            payload: &[],
        },
    ],
};

pub static ITEMS: EmitGrammar = EmitGrammar {
    noun: "request item",
    skip_empty: false,
    kinds: &[
        EmitKind {
            name: "message",
            description: "What somebody said: `text`, or `parts`.",
            fields: &[
                field("role", FieldType::Text),
                field("text", FieldType::Text),
                field("parts", FieldType::ContentParts),
            ],
            payload: &["text", "parts"],
        },
        EmitKind {
            name: "call",
            description: "A call that the model made earlier.",
            fields: &[
                field("id", FieldType::Text),
                field("name", FieldType::Text),
                field("kind", FieldType::Enum(CallKind::NAMES)),
                field("arguments", FieldType::Text),
            ],
            payload: &["id", "name", "arguments"],
        },
        EmitKind {
            name: "result",
            description: "What a call came to.",
            fields: &[
                field("call_id", FieldType::Text),
                field("text", FieldType::Text),
                field("parts", FieldType::ContentParts),
                field("failed", FieldType::Bool),
            ],
            payload: &[],
        },
        EmitKind {
            name: "reasoning",
            description: "Earlier thoughts, given back.",
            fields: &[
                field("id", FieldType::Text),
                field("summaries", FieldType::TextOrList),
                field("encrypted", FieldType::Text),
            ],
            payload: &["id", "summaries", "encrypted"],
        },
        EmitKind {
            name: "other",
            description: "An item of a kind that only a backend of the same dialect knows.",
            fields: &[field("kind", FieldType::Text), field("raw", FieldType::Json)],
            payload: &["raw"],
        },
    ],
};

pub static PARTS: EmitGrammar = EmitGrammar {
    noun: "content part",
    skip_empty: false,
    kinds: &[
        EmitKind {
            name: "text",
            description: "A part that is text.",
            fields: &[field("text", FieldType::Text)],
            payload: &["text"],
        },
        EmitKind {
            name: "image",
            description: "A part that is an image.",
            fields: &[field("url", FieldType::Text), field("detail", FieldType::Text)],
            payload: &["url"],
        },
        EmitKind {
            name: "file",
            description: "A part that is a file.",
            fields: &[
                field("id", FieldType::Text),
                field("name", FieldType::Text),
                field("data", FieldType::Text),
                field("url", FieldType::Text),
            ],
            payload: &["id", "data", "url"],
        },
        EmitKind {
            name: "audio",
            description: "A part that is sound.",
            fields: &[field("data", FieldType::Text), field("format", FieldType::Text)],
            payload: &["data"],
        },
        EmitKind {
            name: "refusal",
            description: "A part that is a refusal.",
            fields: &[field("text", FieldType::Text)],
            payload: &["text"],
        },
    ],
};

pub const TOOL_KINDS: &[&str] = &["function", "custom", "other"];

pub static TOOLS: EmitGrammar = EmitGrammar {
    noun: "tool",
    skip_empty: false,
    kinds: &[EmitKind {
        name: "tool",
        description: "A tool that the model may call.",
        fields: &[
            field("kind", FieldType::Enum(TOOL_KINDS)),
            field("type", FieldType::Text),
            field("name", FieldType::Text),
            field("description", FieldType::Text),
            field("parameters", FieldType::Json),
            field("strict", FieldType::Bool),
            field("raw", FieldType::Json),
        ],
        payload: &[],
    }],
};

pub const CHOICE_MODES: &[&str] = &["auto", "none", "required", "named"];
pub const FORMAT_KINDS: &[&str] = &["text", "json_object", "json_schema"];

/// The scalar fields of a request. `tool_choice` and `format` have their own fields.
pub const SCALARS: &[FieldSpec] = &[
    field("model", FieldType::Text),
    field("stream", FieldType::Bool),
    field("usage", FieldType::Bool),
    field("n", FieldType::Int),
    field("max_tokens", FieldType::Int),
    field("temperature", FieldType::Number),
    field("top_p", FieldType::Number),
    field("stop", FieldType::TextOrList),
    field("seed", FieldType::Int),
    field("reasoning_effort", FieldType::Text),
    field("parallel_tool_calls", FieldType::Bool),
    field("metadata", FieldType::Json),
    field("user", FieldType::Text),
    field("previous_response_id", FieldType::Text),
];

pub const TOOL_CHOICE: &[FieldSpec] = &[field("mode", FieldType::Enum(CHOICE_MODES)), field("name", FieldType::Text)];

pub const FORMAT: &[FieldSpec] = &[
    field("kind", FieldType::Enum(FORMAT_KINDS)),
    field("name", FieldType::Text),
    field("schema", FieldType::Json),
    field("strict", FieldType::Bool),
    field("description", FieldType::Text),
];

/// The kinds of content that a delta of a captured stream can have.
pub const DELTA_KINDS: &[&str] = &["text", "refusal", "arguments", "summary", "thought"];

const ID: FieldSpec = field("id", FieldType::Text);
const INDEX: FieldSpec = field("index", FieldType::Int);
const DELTA_KIND: FieldSpec = field("kind", FieldType::Enum(DELTA_KINDS));
/// An item is identified by its id, its index or both. The other fields must not change within a stream.
const ITEM_FIELDS: &[FieldSpec] = &[
    CHOICE,
    ID,
    INDEX,
    field("kind", FieldType::Text),
    field("call", FieldType::Text),
    field("name", FieldType::Text),
];

/// Observations about one captured frame. The stream rules of `capture/` check their sequence.
pub static OBSERVATIONS: EmitGrammar = EmitGrammar {
    noun: "observation",
    skip_empty: true,
    kinds: &[
        EmitKind {
            name: "turn",
            description: "whose frame it is: id, model and time never change within a stream",
            fields: &[ID, field("model", FieldType::Text), field("created", FieldType::Int)],
            payload: &["id", "model", "created"],
        },
        EmitKind {
            name: "sequence",
            description: "the frame's number",
            fields: &[field("value", FieldType::Int)],
            payload: &["value"],
        },
        EmitKind { name: "start", description: "a choice begins", fields: &[CHOICE], payload: &[] },
        EmitKind { name: "open", description: "an item begins", fields: ITEM_FIELDS, payload: &["id", "index"] },
        EmitKind {
            name: "open_part",
            description: "a part of an item begins",
            fields: &[CHOICE, ID, INDEX, PART, DELTA_KIND],
            payload: &["part"],
        },
        EmitKind {
            name: "delta",
            description: "a piece of text, arguments or thoughts",
            fields: &[CHOICE, ID, INDEX, PART, DELTA_KIND, field("text", FieldType::Text)],
            payload: &["text"],
        },
        // Always emitted: an empty text is a valid final text.
        EmitKind {
            name: "whole",
            description: "all of a part, as it is told at its end",
            fields: &[CHOICE, ID, INDEX, PART, DELTA_KIND, field("text", FieldType::Text)],
            payload: &[],
        },
        EmitKind {
            name: "close_part",
            description: "a part is over",
            fields: &[CHOICE, ID, INDEX, PART, DELTA_KIND],
            payload: &["part"],
        },
        EmitKind { name: "close", description: "an item is over", fields: ITEM_FIELDS, payload: &["id", "index"] },
        // An item that is repeated at the end of the stream.
        EmitKind {
            name: "item",
            description: "an item, told once more when all is over",
            fields: ITEM_FIELDS,
            payload: &["id", "index"],
        },
        EmitKind {
            name: "finish",
            description: "why a choice ended",
            fields: &[CHOICE, field("reason", FieldType::Text)],
            payload: &["reason"],
        },
        EmitKind {
            name: "usage",
            description: "what was counted",
            fields: &[field("total", FieldType::Int)],
            payload: &["total"],
        },
        EmitKind {
            name: "end",
            description: "the stream is complete",
            fields: &[field("items", FieldType::Int)],
            payload: &[],
        },
        EmitKind { name: "fail", description: "the stream failed", fields: &[], payload: &[] },
        // An error that is visible in a single frame, with a message from the mapping.
        EmitKind {
            name: "invalid",
            description: "a mistake that one frame shows by itself",
            fields: &[field("message", FieldType::Text)],
            payload: &["message"],
        },
    ],
};
