//! Schemas for the fields of a rule, one for each type of `domain::emit::FieldType`.

use super::field::FieldEntry;
use crate::domain::emit::{FieldSpec, FieldType};
use crate::mapping::grammar::Section;
use crate::mapping::grammar::notation::{closed, or_null};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// The pattern of `Selector::looks_like`.
const SELECTOR: &str = "^[$@^]([.\\[]|$)";

/// The fields of an emitted value.
pub fn fields(fields: &[FieldSpec], generator: &mut SchemaGenerator) -> Schema {
    or_null(closed(properties(fields, generator)))
}

pub fn properties(fields: &[FieldSpec], generator: &mut SchemaGenerator) -> Map<String, Value> {
    fields.iter().map(|f| (f.name.to_owned(), field(f.field_type, generator))).collect()
}

/// A constant, a selector, or a map. Each type has one definition, except enums, which differ in their values.
fn field(field_type: FieldType, generator: &mut SchemaGenerator) -> Value {
    let Some(type_name) = type_name(field_type) else { return field_schema(field_type, generator) };
    let key = format!("Field.{type_name}");
    if !generator.definitions().contains_key(&key) {
        let schema = field_schema(field_type, generator);
        generator.definitions_mut().insert(key.clone(), schema);
    }
    json!({ "$ref": format!("#/$defs/{key}") })
}

fn type_name(field_type: FieldType) -> Option<&'static str> {
    match field_type {
        FieldType::Text => Some("text"),
        FieldType::Int => Some("integer"),
        FieldType::Number => Some("number"),
        FieldType::Bool => Some("boolean"),
        FieldType::TextOrList => Some("texts"),
        FieldType::Json => Some("json"),
        FieldType::ContentParts => Some("parts"),
        FieldType::Enum(_) => None,
    }
}

fn field_schema(field_type: FieldType, generator: &mut SchemaGenerator) -> Value {
    let constant = constant(field_type);
    let other = match field_type {
        // A plain selector is not allowed: content parts need rules.
        FieldType::ContentParts => json!({ "not": { "type": "string", "pattern": SELECTOR } }),
        FieldType::Text
        | FieldType::Int
        | FieldType::Number
        | FieldType::Bool
        | FieldType::Enum(_)
        | FieldType::TextOrList
        | FieldType::Json => {
            json!({ "anyOf": [constant, { "type": "string", "pattern": SELECTOR }] })
        }
    };
    let value = json!({ "type": "object", "additionalProperties": false, "properties": { "value": constant } });
    let title = match field_type {
        FieldType::Enum(words) => words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", "),
        FieldType::ContentParts => "content parts".to_owned(),
        FieldType::Text
        | FieldType::Int
        | FieldType::Number
        | FieldType::Bool
        | FieldType::TextOrList
        | FieldType::Json => type_name(field_type).unwrap_or_default().to_owned(),
    };
    json!({
        "title": title,
        "if": { "type": "object" },
        "then": { "if": { "required": ["value"] }, "then": value, "else": map_schema(field_type, constant.clone(), generator) },
        "else": other,
    })
}

/// The constants that a field accepts.
fn constant(field_type: FieldType) -> Value {
    match field_type {
        FieldType::Text => json!({ "type": ["null", "string", "number", "boolean"] }),
        FieldType::Int => json!({ "type": ["null", "integer"] }),
        FieldType::Number => json!({ "type": ["null", "number"] }),
        FieldType::Bool => json!({ "type": ["null", "boolean"] }),
        FieldType::Enum(words) => json!({ "enum": with_null(words.iter().copied()) }),
        FieldType::TextOrList => json!({ "type": ["null", "string", "array"], "items": { "type": "string" } }),
        FieldType::Json | FieldType::ContentParts => json!({}),
    }
}

fn with_null<'w>(words: impl Iterator<Item = &'w str>) -> Vec<Value> {
    std::iter::once(Value::Null).chain(words.map(Value::from)).collect()
}

/// `{ from, as, table, default, use }`, with the values that the type allows.
fn map_schema(field_type: FieldType, constant: Value, generator: &mut SchemaGenerator) -> Value {
    let mut properties = FieldEntry::properties(generator);
    let rows = match field_type {
        FieldType::Enum(words) => json!({ "enum": with_null(words.iter().copied().chain(["none"])) }),
        _ => json!({}),
    };
    extend(
        &mut properties["table"],
        json!({
            "if": { "type": "object" }, "then": { "additionalProperties": rows }, "else": { "type": "string" },
        }),
    );
    extend(&mut properties["default"], constant);
    let mut required = vec!["from"];
    if field_type == FieldType::ContentParts {
        required.push("use");
    } else {
        properties.shift_remove("use");
    }
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}

fn extend(schema: &mut Value, keywords: Value) {
    if let (Value::Object(schema), Value::Object(keywords)) = (schema, keywords) {
        schema.extend(keywords);
    }
}
