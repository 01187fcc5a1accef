//! The small notations: selectors, expressions, times, sizes, words of closed lists; lists and maps as the loader takes them.

use crate::domain::Closed;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map as Members, Value, json};
use std::borrow::Cow;
use std::marker::PhantomData;

/// What `Selector::looks_like` takes for one.
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
    /// JSONPath (RFC 9535) that begins with `$` (the whole event or body), `@` (the node at hand: the element of the
    /// innermost `each`) or `^` (the node around that one).
    Selector, "selector", { "type": "string", "pattern": "^[$@^]" }
}
notation! {
    /// A Jinja expression over the variables in sight, without braces. A condition holds unless it is null, false, 0,
    /// empty text or an empty list.
    Expression, "expression", { "type": "string" }
}
notation! {
    /// A time: `250ms`, `15s`, `5m`; `none` is no limit.
    Duration, "time", { "type": "string", "pattern": "^(none|\\s*0*[1-9][0-9]*\\s*(ms|s|m))$" }
}
notation! {
    /// A number of bytes: `65536`, `512KiB`, `16MiB`.
    Bytes, "bytes", { "if": { "type": "string" }, "then": { "pattern": "^\\s*[0-9]+\\s*(KiB|MiB|GiB)$" }, "else": { "type": "integer", "minimum": 1 } }
}
notation! {
    /// The name of an HTTP header.
    HeaderName, "name of a header", { "type": "string", "pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" }
}
notation! {
    /// Text in one line: a line break in it would begin another frame.
    Line, "text", { "type": "string", "pattern": "^[^\\n\\r\\x00]*$" }
}
notation! {
    /// A map from words to values; `default:` is for every other word. In a rule, `none` as a value means that the field
    /// stays empty.
    Table, "table", { "type": "object" }
}
notation! {
    /// Any value, taken as it is.
    Anything, "anything", {}
}
notation! {
    /// Text, a number or a boolean, taken as text.
    Scalar, "word", { "type": ["string", "number", "boolean"] }
}

/// A value whose schema a function makes, out of the loader's lists.
#[derive(Default)]
pub struct Made;

/// One word of a closed list.
pub struct Word<T>(PhantomData<T>);

impl<T: Closed> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Word".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = one_of(T::WORDS);
        if T::MEANINGS.iter().any(|m| !m.is_empty()) {
            schema.insert("markdownEnumDescriptions".to_owned(), json!(T::MEANINGS));
        }
        schema
    }
}

/// One of these words.
pub fn one_of(words: &[&str]) -> Schema {
    json_schema!({ "type": "string", "enum": words })
}

/// A list; a single value counts as a list of one, and nothing as an empty one.
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

/// The same, where something must stand.
pub struct Some1<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for Some1<T> {
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

/// A list that must hold something.
pub struct Full<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for Full<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Full{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "minItems": 1, "items": generator.subschema_for::<T>() })
    }
}

/// A map whose keys are free; nothing counts as an empty one.
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

/// A map whose keys are selectors.
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

/// Exactly one of several keys: what `oneOf` says in a map's schema.
pub fn exactly_one<'k>(keys: impl IntoIterator<Item = &'k str>) -> Value {
    keys.into_iter().map(|key| json!({ "required": [key] })).collect()
}

/// A map with known keys only.
pub fn closed(properties: Members<String, Value>) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": false, "properties": properties })
}

/// Nothing counts as an empty map.
pub fn or_null(mut schema: Schema) -> Schema {
    schema.insert("type".to_owned(), json!(["null", "object"]));
    schema
}
