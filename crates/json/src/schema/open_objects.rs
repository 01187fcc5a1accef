//! The lint for objects that let anything pass.

use serde_json::Value;

use super::subschemas::{Role, inner_schemas};

/// Pointers of the object schemas that leave room for properties nobody described.
///
/// A frame is strict only where its schema is closed, and an object is open by default. The
/// branches of a closed object (`allOf`, `then`, …) need not close themselves, and could not:
/// `additionalProperties` does not see what the other branches describe. Conditions (`if`, `not`)
/// forbid nothing, so they are not asked.
pub(super) fn open_objects(document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    visit(document, String::new(), Around::Open, &mut found);
    found
}

/// Whether a schema about the same value already closes it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    Open,
    Closed,
}

fn visit(schema: &Value, pointer: String, around: Around, found: &mut Vec<String>) {
    let here = if around == Around::Closed || is_closed(schema) { Around::Closed } else { Around::Open };
    if here == Around::Open && is_object_schema(schema) {
        found.push(pointer.clone());
    }
    for inner in inner_schemas(schema) {
        let around = match inner.role {
            Role::Same => here,
            Role::Part | Role::Definition => Around::Open,
            Role::Condition => continue,
        };
        visit(inner.schema, format!("{pointer}{}", inner.pointer), around, found);
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
