//! The observations that rules of a dialect's `capture:` can emit.

use super::{CHOICE, EmitGrammar, EmitKind, FieldSpec, FieldType, PART, field};

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
            description: "The turn of the frame. Id, model and creation time must not change within a stream.",
            fields: &[ID, field("model", FieldType::Text), field("created", FieldType::Int)],
            payload: &["id", "model", "created"],
        },
        EmitKind {
            name: "sequence",
            description: "The sequence number of the frame.",
            fields: &[field("value", FieldType::Int)],
            payload: &["value"],
        },
        EmitKind { name: "start", description: "A choice starts.", fields: &[CHOICE], payload: &[] },
        EmitKind { name: "open", description: "An item opens.", fields: ITEM_FIELDS, payload: &["id", "index"] },
        EmitKind {
            name: "open_part",
            description: "A part of an item opens.",
            fields: &[CHOICE, ID, INDEX, PART, DELTA_KIND],
            payload: &["part"],
        },
        EmitKind {
            name: "delta",
            description: "A delta of text, arguments or reasoning.",
            fields: &[CHOICE, ID, INDEX, PART, DELTA_KIND, field("text", FieldType::Text)],
            payload: &["text"],
        },
        // Always emitted: an empty text is a valid final text.
        EmitKind {
            name: "whole",
            description: "The complete text of a part, as sent at its end.",
            fields: &[CHOICE, ID, INDEX, PART, DELTA_KIND, field("text", FieldType::Text)],
            payload: &[],
        },
        EmitKind {
            name: "close_part",
            description: "A part closes.",
            fields: &[CHOICE, ID, INDEX, PART, DELTA_KIND],
            payload: &["part"],
        },
        EmitKind { name: "close", description: "An item closes.", fields: ITEM_FIELDS, payload: &["id", "index"] },
        // An item that is repeated at the end of the stream.
        EmitKind {
            name: "item",
            description: "An item that is repeated at the end of the stream.",
            fields: ITEM_FIELDS,
            payload: &["id", "index"],
        },
        EmitKind {
            name: "finish",
            description: "The finish reason of a choice.",
            fields: &[CHOICE, field("reason", FieldType::Text)],
            payload: &["reason"],
        },
        EmitKind {
            name: "usage",
            description: "The token usage.",
            fields: &[field("total", FieldType::Int)],
            payload: &["total"],
        },
        EmitKind {
            name: "end",
            description: "The stream is complete.",
            fields: &[field("items", FieldType::Int)],
            payload: &[],
        },
        EmitKind { name: "fail", description: "The stream failed.", fields: &[], payload: &[] },
        // An error that is visible in a single frame, with a message from the mapping.
        EmitKind {
            name: "invalid",
            description: "An error that is visible in a single frame.",
            fields: &[field("message", FieldType::Text)],
            payload: &["message"],
        },
    ],
};
