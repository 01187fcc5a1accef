//! Lint: object schemas that allow undeclared properties.

use serde_json::Value;

use super::subschemas::{SubschemaRole, direct_subschemas};

/// Pointers of the object schemas that allow undeclared properties.
///
/// Validation is strict only where the schema is closed, and object schemas are open by default. The branches of a
/// closed object (`allOf`, `then`, …) need not and cannot be closed themselves, because `additionalProperties` ignores
/// the properties of other branches. Conditions (`if`, `not`) forbid nothing, so they are skipped.
pub(super) fn open_objects(document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    visit(document, String::new(), Enclosing::Open, &mut found);
    found
}

/// Whether an enclosing schema for the same value is closed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Enclosing {
    Open,
    Closed,
}

fn visit(schema: &Value, pointer: String, enclosing: Enclosing, found: &mut Vec<String>) {
    // What `$ref` leads to decides whether undeclared properties are allowed next to it, and is looked at in its own
    // place.
    let closed = enclosing == Enclosing::Closed || is_closed(schema) || schema.get("$ref").is_some();
    let here = if closed { Enclosing::Closed } else { Enclosing::Open };
    if here == Enclosing::Open && is_object_schema(schema) {
        found.push(pointer.clone());
    }
    for inner in direct_subschemas(schema) {
        let enclosing = match inner.role {
            SubschemaRole::Same => here,
            SubschemaRole::Part | SubschemaRole::Definition => Enclosing::Open,
            SubschemaRole::Condition => continue,
        };
        visit(inner.schema, format!("{pointer}{}", inner.pointer), enclosing, found);
    }
}

fn is_object_schema(schema: &Value) -> bool {
    let by_type = match schema.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        Some(_) | None => false,
    };
    by_type || schema.get("properties").is_some()
}

fn is_closed(schema: &Value) -> bool {
    ["additionalProperties", "unevaluatedProperties"]
        .iter()
        .any(|keyword| schema.get(keyword).is_some_and(|rest| *rest != Value::Bool(true)))
}
