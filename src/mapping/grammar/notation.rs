//! How single values are written in YAML: names, durations, sizes, header names, constants. Each notation is a type
//! with its reader and its schema.

use super::section::{At, FromNode};
use crate::diagnostics::{Code, Span};
use crate::domain::{NamedEnum, Tree};
use crate::mapping::source::field_reader::{constant, text_of};
use crate::mapping::source::yaml::{Node, YamlKind};
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Map, Value, json};
use std::fmt;
use std::ops::Deref;
use std::time::Duration;

/// Declares the schema of a notation: what JSON Schema can check, for some with a title and a description. A notation
/// without a title is described by the keys that use it.
macro_rules! notation_schema {
    ($name:ident $(<$life:lifetime>)?, $schema:tt) => {
        notation_schema!([$($life)?] $name $(<$life>)?, |_generator| schemars::json_schema!($schema));
    };
    ($name:ident, |$generator:ident| $schema:expr) => { notation_schema!([] $name, |$generator| $schema); };
    ([$($generics:tt)*] $type:ty, |$generator:ident| $schema:expr) => {
        impl<$($generics)*> schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema($generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
    ($(#[doc = $about:literal])* $name:ident $(<$life:lifetime>)?, $title:literal, $schema:tt) => {
        impl $(<$life>)? schemars::JsonSchema for $name $(<$life>)? {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut schema = schemars::json_schema!($schema);
                schema.insert("title".to_owned(), $title.into());
                schema.insert("description".to_owned(), concat!($($about),*).trim_ascii().into());
                schema
            }
        }
    };
}
pub(crate) use notation_schema;

impl<'n> FromNode<'n> for String {
    fn from_node(node: &'n Node, at: At) -> Option<String> {
        text_of(node, at.cx).map(str::to_owned)
    }

    fn shown(&self) -> Option<Value> {
        Some(json!(self))
    }
}

impl<'n> FromNode<'n> for &'n str {
    fn from_node(node: &'n Node, at: At) -> Option<&'n str> {
        text_of(node, at.cx)
    }
}

impl<'n> FromNode<'n> for bool {
    fn from_node(node: &'n Node, at: At) -> Option<bool> {
        at.cx.boolean(node)
    }

    fn shown(&self) -> Option<Value> {
        Some(json!(self))
    }
}

/// A number of things: an integer that is not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub usize);

impl<'n> FromNode<'n> for Count {
    fn from_node(node: &'n Node, at: At) -> Option<Count> {
        match node.kind {
            YamlKind::Int(value) if value >= 0 => Some(Count(value as usize)),
            _ => {
                at.cx.error(Code::WrongType, node.span, format!("`{}:` must be an integer, 0 or more", at.key));
                None
            }
        }
    }

    fn shown(&self) -> Option<Value> {
        Some(json!(self.0))
    }
}

notation_schema!(Count, { "type": "integer", "minimum": 0 });

/// A number of things, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositiveCount(pub usize);

impl<'n> FromNode<'n> for PositiveCount {
    fn from_node(node: &'n Node, at: At) -> Option<PositiveCount> {
        match node.kind {
            YamlKind::Int(value) if value > 0 => Some(PositiveCount(value as usize)),
            _ => {
                at.cx.error(Code::WrongType, node.span, format!("`{}:` must be an integer, 1 or more", at.key));
                None
            }
        }
    }

    fn shown(&self) -> Option<Value> {
        Some(json!(self.0))
    }
}

notation_schema!(PositiveCount, { "type": "integer", "minimum": 1 });

/// A value and its position, for values that are checked later.
#[derive(Clone, Copy, Debug)]
pub struct Spanned<T> {
    pub value: T,
    pub span: Span,
    pub key_span: Span,
}

impl<T> Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<'n, T: FromNode<'n>> FromNode<'n> for Spanned<T> {
    fn from_node(node: &'n Node, at: At) -> Option<Spanned<T>> {
        Some(Spanned { value: T::from_node(node, at)?, span: node.span, key_span: at.key_span })
    }

    fn shown(&self) -> Option<Value> {
        self.value.shown()
    }
}

notation_schema!([T: JsonSchema] Spanned<T>, |generator| generator.subschema_for::<T>());

/// One name of an enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameOf<T>(pub T);

impl<'n, T: NamedEnum> FromNode<'n> for NameOf<T> {
    fn from_node(node: &'n Node, at: At) -> Option<NameOf<T>> {
        at.cx.one_of(node, T::NAMES).and_then(T::from_name).map(NameOf)
    }

    fn shown(&self) -> Option<Value> {
        Some(json!(self.0.as_name()))
    }
}

notation_schema!([T: NamedEnum] NameOf<T>, |_generator| {
    let mut schema = one_of(T::NAMES);
    if T::VALUE_DESCRIPTIONS.iter().any(|m| !m.is_empty()) {
        schema.insert("markdownEnumDescriptions".to_owned(), json!(T::VALUE_DESCRIPTIONS));
    }
    schema
});

/// A time limit; `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimit(pub Option<Duration>);

impl TimeLimit {
    /// About two years. More would overflow clocks.
    const MAX_MS: u64 = 1_000_000 * 60_000;

    /// A setting of so many seconds.
    pub const fn seconds(seconds: u64) -> Option<TimeLimit> {
        Some(TimeLimit(Some(Duration::from_secs(seconds))))
    }

    /// The limit of a setting; `None` is no limit.
    pub fn of(setting: Option<TimeLimit>) -> Option<Duration> {
        setting.and_then(|limit| limit.0)
    }
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.0 {
            Some(limit) => write!(f, "{}s", limit.as_secs()),
            None => f.write_str("none"),
        }
    }
}

impl<'n> FromNode<'n> for TimeLimit {
    fn from_node(node: &'n Node, at: At) -> Option<TimeLimit> {
        let parsed = match &node.kind {
            YamlKind::Text(text) if text == "none" => return Some(TimeLimit(None)),
            YamlKind::Text(text) => number_with_unit(text, &[("ms", 1), ("s", 1000), ("m", 60_000)]),
            _ => None,
        };
        match parsed {
            Some(1..=TimeLimit::MAX_MS) => parsed.map(|ms| TimeLimit(Some(Duration::from_millis(ms)))),
            Some(0) => at.cx.out_of_range(node, "a time limit is longer than 0", "no limit is `none`"),
            Some(_) => at.cx.out_of_range(node, "a time limit is at most 1000000m", "no limit is `none`"),
            None => {
                at.cx.wrong_value(node, "a time", "250ms, 15s, 5m or none");
                None
            }
        }
    }

    fn shown(&self) -> Option<Value> {
        Some(json!(self.to_string()))
    }
}

notation_schema! {
    /// A duration: `250ms`, `15s`, `5m`; `none` is no limit.
    TimeLimit, "duration", { "type": "string", "pattern": "^(none|\\s*0*[1-9][0-9]*\\s*(ms|s|m))$" }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub usize);

impl Bytes {
    const MAX: u64 = 1 << 40;
}

/// The product of the number and its unit; the largest number if it does not fit.
fn number_with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, factor) = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?.trim(), factor)))?;
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(number.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(*factor))
}

impl<'n> FromNode<'n> for Bytes {
    fn from_node(node: &'n Node, at: At) -> Option<Bytes> {
        let parsed = match &node.kind {
            YamlKind::Int(n) => u64::try_from(*n).ok(),
            YamlKind::Text(text) => number_with_unit(text, &[("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)]),
            _ => None,
        };
        match parsed {
            Some(1..=Bytes::MAX) => parsed.and_then(|bytes| usize::try_from(bytes).ok()).map(Bytes),
            Some(0) => at.cx.out_of_range(node, "a number of bytes is at least 1", "for example 512KiB"),
            Some(_) => at.cx.out_of_range(node, "a number of bytes is at most 1024GiB", "for example 16MiB"),
            None => {
                at.cx.wrong_value(node, "a number of bytes", "65536, 512KiB or 16MiB");
                None
            }
        }
    }

    fn shown(&self) -> Option<Value> {
        Some(json!(format!("{}MiB", self.0 >> 20)))
    }
}

notation_schema! {
    /// A number of bytes: `65536`, `512KiB`, `16MiB`.
    Bytes, "bytes", {
        "if": { "type": "string" },
        "then": { "pattern": "^\\s*[0-9]+\\s*(KiB|MiB|GiB)$" },
        "else": { "type": "integer", "minimum": 1 },
    }
}

/// Declares a text in a certain notation: its reader returns `None` after reporting what is wrong.
macro_rules! text_notation {
    ($(#[doc = $about:literal])* $name:ident($value:ty), |$text:ident, $node:ident, $at:ident| $read:expr) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(pub $value);

        impl<'n> $crate::mapping::grammar::FromNode<'n> for $name {
            fn from_node(
                $node: &'n $crate::mapping::source::yaml::Node,
                $at: $crate::mapping::grammar::At,
            ) -> Option<$name> {
                let $text = $crate::mapping::source::field_reader::text_of($node, $at.cx)?;
                let value: Option<$value> = $read;
                value.map($name)
            }

            fn shown(&self) -> Option<serde_json::Value> {
                Some(self.0.to_string().into())
            }
        }
    };
}
pub(crate) use text_notation;

text_notation! {
    /// The name of an HTTP header, in lower case.
    HeaderName(String), |text, node, at| {
        if !is_token(text) {
            at.cx.error(Code::UnsafeText, node.span, format!("`{text}` is not a valid header name"));
        }
        is_token(text).then(|| text.to_ascii_lowercase())
    }
}
notation_schema! {
    /// The name of an HTTP header.
    HeaderName, "header name", { "type": "string", "pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" }
}

/// Whether a name is a valid HTTP token, such as a header name.
pub fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

text_notation! {
    /// Text without line breaks: a line break would begin another frame.
    Line(String), |text, node, at| {
        let breaks = text.contains(LINE_BREAKS);
        if breaks {
            at.cx.error(Code::UnsafeText, node.span, format!("a line break in a {}", at.key));
        }
        (!breaks).then(|| text.to_owned())
    }
}
notation_schema! {
    /// Text without line breaks: a line break would begin another frame.
    Line, "line of text", { "type": "string", "pattern": "^[^\\n\\r\\x00]*$" }
}

/// What would end a line of a stream or a header, and begin another one.
pub const LINE_BREAKS: [char; 3] = ['\n', '\r', '\0'];

text_notation! {
    /// Text in lower case, for comparisons without case.
    LowerCase(String), |text, _node, _at| Some(text.to_lowercase())
}
notation_schema!(LowerCase, { "type": "string" });

/// Any value, used unchanged.
#[derive(Clone, Debug)]
pub struct AnyValue(pub Tree);

impl<'n> FromNode<'n> for AnyValue {
    fn from_node(node: &'n Node, _: At) -> Option<AnyValue> {
        Some(AnyValue(constant(node)))
    }
}

notation_schema! {
    /// Any value, used unchanged.
    AnyValue, "any value", {}
}

/// One of these names.
pub fn one_of(words: &[&str]) -> Schema {
    json_schema!({ "type": "string", "enum": words })
}

/// The value of `oneOf` for a map that must have exactly one of these keys.
pub fn exactly_one<'k>(keys: impl IntoIterator<Item = &'k str>) -> Value {
    keys.into_iter().map(|key| json!({ "required": [key] })).collect()
}

/// A map without unknown keys.
pub fn closed(properties: Map<String, Value>) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": false, "properties": properties })
}

/// Null counts as an empty map.
pub fn or_null(mut schema: Schema) -> Schema {
    schema.insert("type".to_owned(), json!(["null", "object"]));
    schema
}
