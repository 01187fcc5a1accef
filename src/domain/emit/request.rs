//! What rules of a dialect's `request:` can emit: items, content parts, tools; and the scalar fields of a request.

use super::{EmitGrammar, EmitKind, FieldSpec, FieldType, field};
use crate::domain::CallKind;

pub static ITEMS: EmitGrammar = EmitGrammar {
    noun: "request item",
    skip_empty: false,
    kinds: &[
        EmitKind {
            name: "message",
            description: "A message, with `text` or `parts`.",
            fields: &[
                field("role", FieldType::Text),
                field("text", FieldType::Text),
                field("parts", FieldType::ContentParts),
            ],
            payload: &["text", "parts"],
        },
        EmitKind {
            name: "call",
            description: "A tool call that the model made earlier.",
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
            description: "The result of a tool call.",
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
            description: "Reasoning of an earlier turn, sent back by the client.",
            fields: &[
                field("id", FieldType::Text),
                field("summaries", FieldType::TextOrList),
                field("encrypted", FieldType::Text),
            ],
            payload: &["id", "summaries", "encrypted"],
        },
        EmitKind {
            name: "other",
            description: "An item of a kind that only backends of the same dialect support.",
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
            description: "A text part.",
            fields: &[field("text", FieldType::Text)],
            payload: &["text"],
        },
        EmitKind {
            name: "image",
            description: "An image part.",
            fields: &[field("url", FieldType::Text), field("detail", FieldType::Text)],
            payload: &["url"],
        },
        EmitKind {
            name: "file",
            description: "A file part.",
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
            description: "An audio part.",
            fields: &[field("data", FieldType::Text), field("format", FieldType::Text)],
            payload: &["data"],
        },
        EmitKind {
            name: "refusal",
            description: "A refusal part.",
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
        description: "A tool that the model can call.",
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
