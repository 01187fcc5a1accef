//! The subschemas of a schema, by the keywords of draft 2020-12.
//!
//! Not everything in a schema document is a schema: `const`, `enum`, `default` and `examples` contain data that can
//! look like one.

use crate::escape_pointer_token;
use serde_json::Value;

/// How the value of a subschema relates to the value of the outer schema.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SubschemaRole {
    /// A part of the value: a property, an item.
    Part,
    /// The same value.
    Same,
    /// The same value, but only as a condition: it allows and forbids nothing itself.
    Condition,
    /// Any value that is validated through a reference to it.
    Definition,
}

/// The form in which a keyword contains schemas.
enum KeywordShape {
    One,
    List,
    Named,
}

const KEYWORDS: [(&str, KeywordShape, SubschemaRole); 20] = [
    ("$defs", KeywordShape::Named, SubschemaRole::Definition),
    ("definitions", KeywordShape::Named, SubschemaRole::Definition),
    ("properties", KeywordShape::Named, SubschemaRole::Part),
    ("patternProperties", KeywordShape::Named, SubschemaRole::Part),
    ("additionalProperties", KeywordShape::One, SubschemaRole::Part),
    ("unevaluatedProperties", KeywordShape::One, SubschemaRole::Part),
    ("propertyNames", KeywordShape::One, SubschemaRole::Part),
    ("prefixItems", KeywordShape::List, SubschemaRole::Part),
    ("items", KeywordShape::One, SubschemaRole::Part),
    ("contains", KeywordShape::One, SubschemaRole::Part),
    ("unevaluatedItems", KeywordShape::One, SubschemaRole::Part),
    ("contentSchema", KeywordShape::One, SubschemaRole::Part),
    ("allOf", KeywordShape::List, SubschemaRole::Same),
    ("anyOf", KeywordShape::List, SubschemaRole::Same),
    ("oneOf", KeywordShape::List, SubschemaRole::Same),
    ("then", KeywordShape::One, SubschemaRole::Same),
    ("else", KeywordShape::One, SubschemaRole::Same),
    ("dependentSchemas", KeywordShape::Named, SubschemaRole::Same),
    ("if", KeywordShape::One, SubschemaRole::Condition),
    ("not", KeywordShape::One, SubschemaRole::Condition),
];

pub(super) struct Subschema<'a> {
    /// From the outer schema, as a JSON pointer.
    pub(super) pointer: String,
    pub(super) schema: &'a Value,
    pub(super) role: SubschemaRole,
}

/// The direct subschemas, in document order.
pub(super) fn direct_subschemas(schema: &Value) -> Vec<Subschema<'_>> {
    let mut found = Vec::new();
    for (keyword, held) in schema.as_object().into_iter().flatten() {
        let known = KEYWORDS.iter().find(|(name, _, _)| name == keyword);
        let Some((_, shape, role)) = known else {
            continue;
        };
        let at = format!("/{keyword}");
        let mut add = |pointer, schema| {
            found.push(Subschema { pointer, schema, role: *role });
        };
        match shape {
            KeywordShape::One => add(at, held),
            KeywordShape::List => {
                for (index, schema) in held.as_array().into_iter().flatten().enumerate() {
                    add(format!("{at}/{index}"), schema);
                }
            }
            KeywordShape::Named => {
                for (name, schema) in held.as_object().into_iter().flatten() {
                    add(format!("{at}/{}", escape_pointer_token(name)), schema);
                }
            }
        }
    }
    found
}
