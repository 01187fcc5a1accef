//! How a rule fills a field, for each type that a field can have. The types are those of `canon::vocabulary`.

use super::notation::{SELECTOR, Selector, Some1, Word, closed, or_null};
use crate::domain::emit::{Field, Kind};
use crate::mapping::language::field::Convert;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

/// The fields of a word, each as rules fill it.
pub fn fields(fields: &[Field], generator: &mut SchemaGenerator) -> Schema {
    or_null(closed(properties(fields, generator)))
}

pub fn properties(fields: &[Field], generator: &mut SchemaGenerator) -> Map<String, Value> {
    fields.iter().map(|f| (f.name.to_owned(), field(f.kind, generator))).collect()
}

/// A constant, a selector, or a map. Each type is defined once, but for those that have words of their own.
fn field(kind: Kind, generator: &mut SchemaGenerator) -> Value {
    let Some(name) = name(kind) else { return made(kind, generator) };
    let key = format!("Field.{name}");
    if !generator.definitions().contains_key(&key) {
        let made = made(kind, generator);
        generator.definitions_mut().insert(key.clone(), made);
    }
    json!({ "$ref": format!("#/$defs/{key}") })
}

fn name(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Text => Some("text"),
        Kind::Int => Some("integer"),
        Kind::Number => Some("number"),
        Kind::Bool => Some("boolean"),
        Kind::Texts => Some("texts"),
        Kind::Json => Some("json"),
        Kind::Parts => Some("parts"),
        Kind::Word(_) => None,
    }
}

fn made(kind: Kind, generator: &mut SchemaGenerator) -> Value {
    let constant = constant(kind);
    let other = match kind {
        // What looks like a selector is one, and finds no parts without rules.
        Kind::Parts => json!({ "not": { "type": "string", "pattern": SELECTOR } }),
        Kind::Text | Kind::Int | Kind::Number | Kind::Bool | Kind::Word(_) | Kind::Texts | Kind::Json => {
            json!({ "anyOf": [constant, { "type": "string", "pattern": SELECTOR }] })
        }
    };
    let value = json!({ "type": "object", "additionalProperties": false, "properties": { "value": constant } });
    let title = match kind {
        Kind::Word(words) => words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", "),
        Kind::Parts => "content parts".to_owned(),
        Kind::Text | Kind::Int | Kind::Number | Kind::Bool | Kind::Texts | Kind::Json => {
            name(kind).unwrap_or_default().to_owned()
        }
    };
    json!({
        "title": title,
        "if": { "type": "object" },
        "then": { "if": { "required": ["value"] }, "then": value, "else": map(kind, constant.clone(), generator) },
        "else": other,
    })
}

/// What may stand there as it is.
fn constant(kind: Kind) -> Value {
    match kind {
        Kind::Text => json!({ "type": ["null", "string", "number", "boolean"] }),
        Kind::Int => json!({ "type": ["null", "integer"] }),
        Kind::Number => json!({ "type": ["null", "number"] }),
        Kind::Bool => json!({ "type": ["null", "boolean"] }),
        Kind::Word(words) => json!({ "enum": with_null(words.iter().copied()) }),
        Kind::Texts => json!({ "type": ["null", "string", "array"], "items": { "type": "string" } }),
        Kind::Json | Kind::Parts => json!({}),
    }
}

fn with_null<'w>(words: impl Iterator<Item = &'w str>) -> Vec<Value> {
    std::iter::once(Value::Null).chain(words.map(Value::from)).collect()
}

/// `{ from, as, table, default, use }`.
fn map(kind: Kind, constant: Value, generator: &mut SchemaGenerator) -> Value {
    let described = |mut schema: Schema, text: &str| -> Value {
        schema.insert("description".to_owned(), text.into());
        schema.to_value()
    };
    let rows = match kind {
        Kind::Word(words) => json!({ "enum": with_null(words.iter().copied().chain(["none"])) }),
        _ => json!({}),
    };
    let from = generator.subschema_for::<Some1<Selector>>();
    let convert = generator.subschema_for::<Word<Convert>>();
    let table = json_schema!({ "if": { "type": "object" }, "then": { "additionalProperties": rows }, "else": { "type": "string" } });
    let default = Schema::try_from(constant).unwrap_or_default();
    let text = json_schema!({ "type": "string" });
    let mut properties = Map::new();
    properties.insert(
        "from".to_owned(),
        described(from, "Where the value stands; of several selectors the first that is there and not null."),
    );
    properties.insert("as".to_owned(), described(convert, "A conversion."));
    properties.insert("table".to_owned(), described(table, "A table by name, or written here: word to value."));
    properties.insert("default".to_owned(), described(default, "For what is null or absent."));
    let mut required = vec!["from"];
    if kind == Kind::Parts {
        properties.insert("use".to_owned(), described(text, "The rules, below `rules:`, that make the parts."));
        required.push("use");
    }
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}
