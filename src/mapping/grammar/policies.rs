//! The schemas of maps of policies, generated from the list of built-in policies.

use super::notation::{notation_schema, one_of, or_null};
use crate::domain::policy::{ALIASES, BUILT_IN, PolicySpec};
use schemars::{Schema, json_schema};
use serde_json::{Map, Value, json};

/// Declares a map of policies that is resolved later.
macro_rules! policy_map {
    ($(#[doc = $about:literal])* $name:ident, $title:literal, $schema:expr) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        notation_schema!($name, |_generator| {
            let mut schema = or_null($schema);
            schema.insert("title".to_owned(), $title.into());
            schema
        });
    };
}

policy_map! {
    /// In a dialect or route: name to value.
    DialectPolicies, "policies", of_dialect()
}
policy_map! {
    /// In a profile: a value for every dialect, or dialect to value. A custom policy is set per dialect only.
    ProfilePolicies, "policies by dialect", of_profile()
}
policy_map! {
    /// `custom_policies:`: a name and its values, the default first.
    CustomPolicies, "name to list of values", declared()
}

fn of_dialect() -> Schema {
    let properties = built_in(|spec| value(spec).to_value());
    json_schema!({ "properties": properties, "additionalProperties": custom_value() })
}

fn of_profile() -> Schema {
    let by_dialect = |one: Value| json!({ "type": "object", "additionalProperties": one });
    let properties = built_in(|spec| {
        let one = value(spec).to_value();
        json!({ "if": { "type": "object" }, "then": by_dialect(one.clone()), "else": one })
    });
    json_schema!({ "properties": properties, "additionalProperties": by_dialect(custom_value()) })
}

fn declared() -> Schema {
    let names: Vec<&str> = BUILT_IN.iter().map(|p| p.name).collect();
    let values = json!({ "type": "array", "minItems": 1, "items": custom_value() });
    json_schema!({ "propertyNames": { "not": { "enum": names } }, "additionalProperties": values })
}

/// A dialect that declares no custom policies can set built-in ones only.
pub fn custom_policies_are_declared(schema: &mut Schema) {
    let names: Vec<&str> = BUILT_IN.iter().map(|p| p.name).collect();
    schema.insert("if".to_owned(), json!({ "not": { "required": ["custom_policies"] } }));
    let closed = json!({ "propertyNames": { "enum": names } });
    schema.insert("then".to_owned(), json!({ "properties": { "policies": closed } }));
}

fn built_in(schema: impl Fn(&PolicySpec) -> Value) -> Map<String, Value> {
    let described = |spec: &PolicySpec| {
        let mut schema = schema(spec);
        schema["description"] = spec.description.into();
        if !spec.list {
            schema["default"] = spec.values[0].into();
        }
        (spec.name.to_owned(), schema)
    };
    BUILT_IN.iter().map(described).collect()
}

fn value(spec: &PolicySpec) -> Schema {
    let aliases = ALIASES.iter().filter(|(policy, ..)| *policy == spec.name).map(|(_, alias, _)| *alias);
    let words: Vec<&str> = spec.values.iter().copied().chain(aliases).collect();
    let word = one_of(&words);
    if spec.list { json_schema!({ "type": "array", "items": word, "uniqueItems": true }) } else { word }
}

/// A value of a custom policy.
fn custom_value() -> Value {
    json!({ "type": ["string", "number", "boolean"] })
}
