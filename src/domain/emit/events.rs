//! The events that rules of a backend can emit.

use super::{CHOICE, EmitGrammar, EmitKind, FieldSpec, FieldType, PART, field};
use crate::domain::{CallKind, Finish, Merge, ReasoningKind};

const ITEM: FieldSpec = field("item", FieldType::Text);
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
            description: "Metadata of the response. Before the turn opens, `model` replaces the requested model.",
            fields: &[field("id", FieldType::Text), field("model", FieldType::Text), field("created", FieldType::Int)],
            payload: &["id", "model", "created"],
        },
        EmitKind {
            name: "text",
            description: "A text delta. `whole` is a snapshot of the text so far; only its new suffix is emitted.",
            fields: &[CHOICE, ITEM, PART, DELTA, WHOLE],
            payload: &["delta", "whole"],
        },
        EmitKind {
            name: "refusal",
            description: "A refusal delta. `whole` is a snapshot of the refusal so far.",
            fields: &[CHOICE, ITEM, PART, DELTA, WHOLE],
            payload: &["delta", "whole"],
        },
        EmitKind {
            name: "reasoning",
            description: "A reasoning delta. `part` is the index of the summary.",
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
            description: "A citation. `value` is any JSON, for data without a field of its own.",
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
            description: "The log-probabilities of the next text delta.",
            fields: &[CHOICE, ITEM, field("value", FieldType::Json)],
            payload: &["value"],
        },
        EmitKind {
            name: "tool",
            description: "A delta of a tool call. `key` is the backend's identifier of the call, such as an index.",
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
            description: "The item, or the call (by key or id), is complete; without either, all calls of the choice.",
            fields: &[CHOICE, ITEM, field("key", FieldType::Text)],
            payload: &[],
        },
        EmitKind {
            name: "usage",
            description: "Token counts, as far as the backend reports them.",
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
            description: "The finish reason of a choice. Without `choice` it finishes all open choices.",
            fields: &[CHOICE, field("reason", FieldType::Enum(Finish::NAMES))],
            payload: &["reason"],
        },
        EmitKind {
            name: "fault",
            description: "An error. `final: false` means that the backend continues after it.",
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
            description: "The end of the stream. Not needed if the framing has an end marker or the bytes end.",
            fields: &[],
            payload: &[],
        },
    ],
};
