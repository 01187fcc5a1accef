//! Schemas for the fields of a rule, one for each type of `domain::emit::FieldType`.

use super::notation::{NameOf, OneOrMore, SELECTOR, Selector, closed, or_null};
use crate::domain::emit::{FieldSpec, FieldType};
use crate::mapping::language::field::Conversion;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

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

/// `{ from, as, table, default, use }`.
fn map_schema(field_type: FieldType, constant: Value, generator: &mut SchemaGenerator) -> Value {
    let described = |mut schema: Schema, text: &str| -> Value {
        schema.insert("description".to_owned(), text.into());
        schema.to_value()
    };
    let rows = match field_type {
        FieldType::Enum(words) => json!({ "enum": with_null(words.iter().copied().chain(["none"])) }),
        _ => json!({}),
    };
    let from = generator.subschema_for::<OneOrMore<Selector>>();
    let convert = generator.subschema_for::<NameOf<Conversion>>();
    let table = json_schema!({ "if": { "type": "object" }, "then": { "additionalProperties": rows }, "else": { "type": "string" } });
    let default = Schema::try_from(constant).unwrap_or_default();
    let text = json_schema!({ "type": "string" });
    let mut properties = Map::new();
    properties.insert(
        "from".to_owned(),
        described(
            from,
            "The selector of the value; of several selectors, the first that finds a value that is not null.",
        ),
    );
    properties.insert("as".to_owned(), described(convert, "A conversion."));
    properties.insert("table".to_owned(), described(table, "The name of a table, or a table in place: word to value."));
    properties.insert("default".to_owned(), described(default, "The value if the result is null or missing."));
    let mut required = vec!["from"];
    if field_type == FieldType::ContentParts {
        properties.insert(
            "use".to_owned(),
            described(text, "The name of the rules, below `request.rules`, that emit the content parts."),
        );
        required.push("use");
    }
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}
