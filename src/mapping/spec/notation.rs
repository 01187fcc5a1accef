//! Scalar notations (selectors, expressions, durations, sizes, enumerations), and lists and maps as the loader accepts
//! them.

use crate::domain::NamedEnum;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map as Members, Value, json};
use std::borrow::Cow;
use std::marker::PhantomData;

/// The pattern of `Selector::looks_like`.
pub const SELECTOR: &str = "^[$@^]([.\\[]|$)";

/// A notation: a type that is only a schema.
macro_rules! notation {
    ($(#[doc = $about:literal])* $name:ident, $title:literal, $schema:tt) => {
        $(#[doc = $about])*
        pub struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let mut schema = json_schema!($schema);
                schema.insert("title".to_owned(), $title.into());
                schema.insert("description".to_owned(), concat!($($about),*).trim_ascii().into());
                schema
            }
        }
    };
}

notation! {
    /// JSONPath (RFC 9535) that begins with `$` (the whole event or body), `@` (the current node: the element of the
    /// innermost `each`) or `^` (the node around the current node).
    Selector, "selector", { "type": "string", "pattern": "^[$@^]" }
}
notation! {
    /// A Jinja expression over the variables in scope, without braces. A condition is true unless it is null, false, 0,
    /// an empty text or an empty list.
    Expression, "expression", { "type": "string" }
}
notation! {
    /// A duration: `250ms`, `15s`, `5m`; `none` is no limit.
    Duration, "duration", { "type": "string", "pattern": "^(none|\\s*0*[1-9][0-9]*\\s*(ms|s|m))$" }
}
notation! {
    /// A number of bytes: `65536`, `512KiB`, `16MiB`.
    Bytes, "bytes", { "if": { "type": "string" }, "then": { "pattern": "^\\s*[0-9]+\\s*(KiB|MiB|GiB)$" }, "else": { "type": "integer", "minimum": 1 } }
}
notation! {
    /// The name of an HTTP header.
    HeaderName, "header name", { "type": "string", "pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" }
}
notation! {
    /// Text without line breaks: a line break would begin another frame.
    Line, "text", { "type": "string", "pattern": "^[^\\n\\r\\x00]*$" }
}
notation! {
    /// A map from words to values; `default:` applies to every other word. In a rule, the value `none` means that the
    /// field stays empty.
    Table, "table", { "type": "object" }
}
notation! {
    /// Any value, used unchanged.
    AnyValue, "any value", {}
}

/// A value with a schema that a function generates from the loader's lists.
#[derive(Default)]
pub struct Generated;

/// One name of an enumeration.
pub struct NameOf<T>(PhantomData<T>);

impl<T: NamedEnum> JsonSchema for NameOf<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Name".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = one_of(T::NAMES);
        if T::VALUE_DESCRIPTIONS.iter().any(|m| !m.is_empty()) {
            schema.insert("markdownEnumDescriptions".to_owned(), json!(T::VALUE_DESCRIPTIONS));
        }
        schema
    }
}

/// One of these names.
pub fn one_of(words: &[&str]) -> Schema {
    json_schema!({ "type": "string", "enum": words })
}

/// A list; a single value counts as a list of one, and null as an empty list.
pub struct List<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for List<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("List{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let item = generator.subschema_for::<T>();
        json_schema!({ "if": { "type": "array" }, "then": { "items": item }, "else": { "anyOf": [{ "type": "null" }, item] } })
    }
}

/// The same, where null is not allowed.
pub struct OneOrMore<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for OneOrMore<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMore{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let item = generator.subschema_for::<T>();
        json_schema!({ "if": { "type": "array" }, "then": { "items": item }, "else": item })
    }
}

/// A list with at least one element.
pub struct NonEmptyList<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for NonEmptyList<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("NonEmptyList{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "minItems": 1, "items": generator.subschema_for::<T>() })
    }
}

/// A map with arbitrary keys; null counts as an empty map.
pub struct Map<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for Map<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Map{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["null", "object"], "additionalProperties": generator.subschema_for::<T>() })
    }
}

/// A map with selectors as keys.
pub struct BySelector<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for BySelector<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("BySelector{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["null", "object"],
            "propertyNames": { "pattern": "^[$@^]" },
            "additionalProperties": generator.subschema_for::<T>(),
        })
    }
}

/// The value of `oneOf` for a map that must have exactly one of these keys.
pub fn exactly_one<'k>(keys: impl IntoIterator<Item = &'k str>) -> Value {
    keys.into_iter().map(|key| json!({ "required": [key] })).collect()
}

/// A map without unknown keys.
pub fn closed(properties: Members<String, Value>) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": false, "properties": properties })
}

/// Null counts as an empty map.
pub fn or_null(mut schema: Schema) -> Schema {
    schema.insert("type".to_owned(), json!(["null", "object"]));
    schema
}
