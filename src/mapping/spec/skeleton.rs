//! Skeletons: YAML values with placeholders, and the four directives.

use super::notation::{Expression, Map};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// A YAML value with holes in it: `"{{ name }}"` is the value of a variable with its type, `"{{? name }}"` leaves its key out
/// when that is null. A map with a key that begins with `$` is a directive: `$each`, `$switch`, `$if` or `$use`.
pub struct Skeleton;

impl JsonSchema for Skeleton {
    fn schema_name() -> Cow<'static, str> {
        "Skeleton".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let skeleton = generator.subschema_for::<Skeleton>();
        let (each, switch) = (generator.subschema_for::<Each>(), generator.subschema_for::<Switch>());
        let (condition, part) = (generator.subschema_for::<If>(), generator.subschema_for::<Use>());
        json_schema!({
            "title": "skeleton",
            "description": "A YAML value with holes in it: `\"{{ name }}\"` is the value of a variable with its type, \
                `\"{{? name }}\"` leaves its key out when that is null. A map with a key that begins with `$` is a \
                directive: `$each`, `$switch`, `$if` or `$use`.",
            "items": skeleton,
            "if": { "type": "object" },
            "then": {
                "if": { "required": ["$use"] }, "then": part,
                "else": { "if": { "required": ["$each"] }, "then": each,
                "else": { "if": { "required": ["$if"] }, "then": condition,
                "else": { "if": { "required": ["$switch"] }, "then": switch,
                "else": { "propertyNames": { "pattern": "^([^$]|$)" }, "additionalProperties": skeleton },
                } } },
            },
        })
    }
}

/// A list: one element for each element of another one.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "$each")]
pub struct Each {
    /// The list: a variable, not an expression. Over null the result is an empty list.
    #[schemars(rename = "$each")]
    pub each: Expression,
    /// What an element is called below `where` and `do`.
    #[schemars(rename = "as")]
    pub name: String,
    /// Which elements count.
    #[schemars(rename = "where")]
    pub filter: Option<Expression>,
    /// What each element becomes.
    #[schemars(rename = "do")]
    pub body: Skeleton,
}

/// One of several values, by a word. Over a variable with closed words it names all of them or has `$default:`; elsewhere
/// the key is left out when no case fits.
#[derive(JsonSchema)]
#[schemars(title = "$switch")]
pub struct Switch {
    /// The word.
    #[schemars(rename = "$switch")]
    pub on: Expression,
    /// For every other word.
    #[schemars(rename = "$default")]
    pub default: Option<Skeleton>,
    #[schemars(flatten)]
    pub cases: std::collections::BTreeMap<String, Skeleton>,
}

/// A value if a condition holds.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "$if")]
pub struct If {
    /// The condition.
    #[schemars(rename = "$if")]
    pub condition: Expression,
    /// The value if it holds.
    pub then: Skeleton,
    /// The value if it does not; without it the key is left out.
    #[schemars(rename = "else")]
    pub otherwise: Option<Skeleton>,
}

/// A named part, put here. It sees the variables of this place.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "$use")]
pub struct Use {
    /// The name of the part, below `fragments:` of this file or of shared.yaml.
    #[schemars(rename = "$use")]
    pub part: String,
    /// Variables under other names: `{ usage: turn.usage }`.
    pub with: Option<Map<Expression>>,
}
