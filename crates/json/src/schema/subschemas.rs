//! Where the schemas inside a schema are, by the keywords of draft 2020-12.
//!
//! Not everything in a schema document is a schema: `const`, `enum`, `default` and `examples`
//! hold data that may look like one.

use serde_json::Value;

/// What an inner schema is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A part of the value: a property, an item.
    Part,
    /// The very value the outer schema is about.
    Same,
    /// The very value too, but only to decide something: it allows and forbids nothing itself.
    Condition,
    /// Whatever refers to it.
    Definition,
}

/// How a keyword holds schemas.
enum Shape {
    One,
    List,
    Named,
}

const KEYWORDS: [(&str, Shape, Role); 20] = [
    ("$defs", Shape::Named, Role::Definition),
    ("definitions", Shape::Named, Role::Definition),
    ("properties", Shape::Named, Role::Part),
    ("patternProperties", Shape::Named, Role::Part),
    ("additionalProperties", Shape::One, Role::Part),
    ("unevaluatedProperties", Shape::One, Role::Part),
    ("propertyNames", Shape::One, Role::Part),
    ("prefixItems", Shape::List, Role::Part),
    ("items", Shape::One, Role::Part),
    ("contains", Shape::One, Role::Part),
    ("unevaluatedItems", Shape::One, Role::Part),
    ("contentSchema", Shape::One, Role::Part),
    ("allOf", Shape::List, Role::Same),
    ("anyOf", Shape::List, Role::Same),
    ("oneOf", Shape::List, Role::Same),
    ("then", Shape::One, Role::Same),
    ("else", Shape::One, Role::Same),
    ("dependentSchemas", Shape::Named, Role::Same),
    ("if", Shape::One, Role::Condition),
    ("not", Shape::One, Role::Condition),
];

pub(super) struct Inner<'a> {
    /// From the outer schema, as a JSON pointer.
    pub(super) pointer: String,
    pub(super) schema: &'a Value,
    pub(super) role: Role,
}

/// The schemas directly inside this one, in the order they are written.
pub(super) fn inner_schemas(schema: &Value) -> Vec<Inner<'_>> {
    let mut found = Vec::new();
    for (keyword, held) in schema.as_object().into_iter().flatten() {
        let known = KEYWORDS.iter().find(|(name, _, _)| name == keyword);
        let Some((_, shape, role)) = known else {
            continue;
        };
        let at = format!("/{keyword}");
        let mut add = |pointer, schema| {
            found.push(Inner { pointer, schema, role: *role });
        };
        match shape {
            Shape::One => add(at, held),
            Shape::List => {
                for (index, schema) in held.as_array().into_iter().flatten().enumerate() {
                    add(format!("{at}/{index}"), schema);
                }
            }
            Shape::Named => {
                for (name, schema) in held.as_object().into_iter().flatten() {
                    add(format!("{at}/{}", escape(name)), schema);
                }
            }
        }
    }
    found
}

/// A name as one step of a JSON pointer.
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
