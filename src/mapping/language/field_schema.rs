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
    let (title, constant) = described(field_type);
    if let FieldType::Enum(_) = field_type {
        return field_schema(field_type, title, constant, generator);
    }
    let key = format!("Field.{}", title.replace(' ', "-"));
    if !generator.definitions().contains_key(&key) {
        let schema = field_schema(field_type, title, constant, generator);
        generator.definitions_mut().insert(key.clone(), schema);
    }
    json!({ "$ref": format!("#/$defs/{key}") })
}

/// The constants that a field of this type accepts.
pub fn constant_schema(field_type: FieldType) -> Value {
    described(field_type).1
}

/// The name of a type, and the constants that a field of this type accepts.
fn described(field_type: FieldType) -> (String, Value) {
    let (name, constant) = match field_type {
        FieldType::Text => ("text", json!({ "type": ["null", "string", "number", "boolean"] })),
        FieldType::Int => ("integer", json!({ "type": ["null", "integer"] })),
        FieldType::Number => ("number", json!({ "type": ["null", "number"] })),
        FieldType::Bool => ("boolean", json!({ "type": ["null", "boolean"] })),
        FieldType::TextOrList => {
            ("texts", json!({ "type": ["null", "string", "array"], "items": { "type": "string" } }))
        }
        FieldType::Json => ("json", json!({})),
        FieldType::ContentParts => ("content parts", json!({})),
        FieldType::Enum(words) => {
            let title = words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
            return (title, json!({ "enum": with_null(words.iter().copied()) }));
        }
    };
    (name.to_owned(), constant)
}

fn field_schema(field_type: FieldType, title: String, constant: Value, generator: &mut SchemaGenerator) -> Value {
    let selector = json!({ "type": "string", "pattern": SELECTOR });
    // A plain selector is not allowed for content parts: they need rules.
    let other = match field_type {
        FieldType::ContentParts => json!({ "not": selector }),
        _ => json!({ "anyOf": [constant, selector] }),
    };
    let value = json!({ "type": "object", "additionalProperties": false, "properties": { "value": constant } });
    let map = map_schema(field_type, constant, generator);
    json!({
        "title": title,
        "if": { "type": "object" },
        "then": { "if": { "required": ["value"] }, "then": value, "else": map },
        "else": other,
    })
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
