//! Skeletons: YAML values with placeholders, and the four directives.

use super::notation::{Expression, Map};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// A YAML value with placeholders: `"{{ name }}"` is the value of a variable with its type, `"{{? name }}"` omits its
/// key if the value is null. A map with a key that begins with `$` is a directive: `$each`, `$switch`, `$if` or `$use`.
pub struct Skeleton;

impl JsonSchema for Skeleton {
    fn schema_name() -> Cow<'static, str> {
        "Skeleton".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let skeleton = generator.subschema_for::<Skeleton>();
        let (each, switch) = (generator.subschema_for::<Each>(), generator.subschema_for::<Switch>());
        let (condition, fragment) = (generator.subschema_for::<If>(), generator.subschema_for::<Use>());
        json_schema!({
            "title": "skeleton",
            "description": "A YAML value with placeholders: `\"{{ name }}\"` is the value of a variable with its type, \
                `\"{{? name }}\"` omits its key if the value is null. A map with a key that begins with `$` is a \
                directive: `$each`, `$switch`, `$if` or `$use`.",
            "items": skeleton,
            "if": { "type": "object" },
            "then": {
                "if": { "required": ["$use"] }, "then": fragment,
                "else": { "if": { "required": ["$each"] }, "then": each,
                "else": { "if": { "required": ["$if"] }, "then": condition,
                "else": { "if": { "required": ["$switch"] }, "then": switch,
                "else": { "propertyNames": { "pattern": "^([^$]|$)" }, "additionalProperties": skeleton },
                } } },
            },
        })
    }
}

/// A list with one element for each element of another list.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "$each")]
pub struct Each {
    /// The list: a variable, not an expression. If it is null, the result is an empty list.
    #[schemars(rename = "$each")]
    pub each: Expression,
    /// The name of an element in `where` and `do`.
    #[schemars(rename = "as")]
    pub name: String,
    /// A condition; elements that do not match are skipped.
    #[schemars(rename = "where")]
    pub filter: Option<Expression>,
    /// The result for each element.
    #[schemars(rename = "do")]
    pub body: Skeleton,
}

/// One of several values, selected by a word. Over a variable with a closed list of values it must have a case for each
/// of them or `$default:`. Elsewhere the key is omitted if no case matches.
#[derive(JsonSchema)]
#[schemars(title = "$switch")]
pub struct Switch {
    /// An expression for the word.
    #[schemars(rename = "$switch")]
    pub on: Expression,
    /// For every other word.
    #[schemars(rename = "$default")]
    pub default: Option<Skeleton>,
    #[schemars(flatten)]
    pub cases: std::collections::BTreeMap<String, Skeleton>,
}

/// A value if a condition is true.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "$if")]
pub struct If {
    /// The condition.
    #[schemars(rename = "$if")]
    pub condition: Expression,
    /// The value if it is true.
    pub then: Skeleton,
    /// The value if it is false; without it the key is omitted.
    #[schemars(rename = "else")]
    pub otherwise: Option<Skeleton>,
}

/// A fragment, inserted here. It sees the variables of this place.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "$use")]
pub struct Use {
    /// The name of the fragment, below `fragments:` of this file or of shared.yaml.
    #[schemars(rename = "$use")]
    pub fragment: String,
    /// Variables under other names: `{ usage: turn.usage }`.
    pub with: Option<Map<Expression>>,
}
