//! What rules of a dialect's `request:` can set besides items: tools, and the scalar fields of a request.

use super::{EmitGrammar, EmitKind, FieldSpec, FieldType, field, specs};
use crate::domain::request_item::{Format, Tool, ToolChoice};

pub static TOOLS: EmitGrammar = EmitGrammar {
    noun: "tool",
    skip_empty: false,
    kinds: &[EmitKind {
        name: "tool",
        description: "A tool that the model can call.",
        fields: specs!(tool: Tool),
        payload: &[],
    }],
};

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
    field("stored_prompt", FieldType::Json),
];

pub const TOOL_CHOICE: &[FieldSpec] = specs!(tool_choice: ToolChoice);
pub const FORMAT: &[FieldSpec] = specs!(format: Format);
