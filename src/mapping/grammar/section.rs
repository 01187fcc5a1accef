//! Declares the sections of mapping files. A section is a map with a fixed list of keys; `section!` generates its
//! reader, its defaults and its JSON Schema from one declaration. Doc comments become the texts of the published
//! schema, which editors show, and of the mapping reference.

use super::notation::exactly_one;
use crate::diagnostics::{Code, Span};
use crate::mapping::source::field_reader::{FieldReader, LoadContext};
use crate::mapping::source::yaml::Node;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};
use std::ops::Deref;

/// Where a value is: the key in front of it, for messages.
#[derive(Clone, Copy)]
pub struct At<'a> {
    pub key: &'a str,
    pub key_span: Span,
    pub cx: LoadContext<'a>,
}

/// A value that can be read from YAML.
pub trait FromNode<'n>: Sized {
    /// `None`: the value is wrong, and was reported.
    fn from_node(node: &'n Node, at: At) -> Option<Self>;

    /// Reads a whole file.
    fn from_file(node: &'n Node, cx: LoadContext) -> Option<Self> {
        Self::from_node(node, At { key: "", key_span: node.span, cx })
    }

    /// The value as written in YAML, if it is short: defaults are shown in the published schema.
    fn shown(&self) -> Option<Value> {
        None
    }
}

/// The value of a key: required, or optional as an `Option`.
pub trait Field<'n>: Sized {
    type Value: FromNode<'n>;
    const REQUIRED: bool;

    /// `None`: the key is missing or its value is wrong, and that was reported.
    fn read(fields: &FieldReader<'n, '_>, key: &'static str) -> Option<Self>;
}

impl<'n, T: FromNode<'n>> Field<'n> for T {
    type Value = T;
    const REQUIRED: bool = true;

    fn read(fields: &FieldReader<'n, '_>, key: &'static str) -> Option<T> {
        fields.required(key)?;
        fields.value(key)
    }
}

impl<'n, T: FromNode<'n>> Field<'n> for Option<T> {
    type Value = T;
    const REQUIRED: bool = false;

    fn read(fields: &FieldReader<'n, '_>, key: &'static str) -> Option<Option<T>> {
        Some(fields.value(key))
    }
}

/// A required key. If it is missing or wrong, the section is read as if its value were empty, so that mistakes in its
/// other keys are reported too.
#[derive(Clone, Debug)]
pub struct Required<T>(pub T);

impl<T> Deref for Required<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'n, T: FromNode<'n>> Field<'n> for Required<Option<T>> {
    type Value = T;
    const REQUIRED: bool = true;

    fn read(fields: &FieldReader<'n, '_>, key: &'static str) -> Option<Self> {
        Some(Required(T::read(fields, key)))
    }
}

impl<'n, T: FromNode<'n> + Default> Field<'n> for Required<T> {
    type Value = T;
    const REQUIRED: bool = true;

    fn read(fields: &FieldReader<'n, '_>, key: &'static str) -> Option<Required<T>> {
        Some(Required(T::read(fields, key).unwrap_or_default()))
    }
}

/// A map with a fixed list of keys.
pub trait Section<'n>: Sized {
    /// Completes the sentence "unknown key `x` in …". `key` is the key in front of the section.
    fn subject(key: &str) -> String;

    /// Opens the map of a section, for checks that involve several keys.
    fn open<'c>(node: &'n Node, key: &str, cx: LoadContext<'c>) -> Option<FieldReader<'n, 'c>> {
        FieldReader::of(node, Self::subject(key), cx)
    }

    /// Reads the keys of the section. `None`: it cannot be built, and the reason was reported.
    fn read_fields(fields: &FieldReader<'n, '_>) -> Option<Self>;
    fn properties(generator: &mut SchemaGenerator) -> Map<String, Value>;
    fn required() -> Vec<&'static str>;
}

impl<'n> FieldReader<'n, '_> {
    /// The value of a key. `None`: the key is absent, or its value is wrong and was reported.
    pub fn value<T: FromNode<'n>>(&self, key: &'static str) -> Option<T> {
        let entry = self.entry(key)?;
        T::from_node(&entry.value, At { key, key_span: entry.key_span, cx: self.cx })
    }

    /// Reports a map that does not have exactly one of `keys`. An empty list allows everything.
    pub fn exactly_one(&self, keys: &[&'static str]) -> Option<()> {
        let present = keys.iter().filter(|key| self.get(key).is_some()).count();
        if keys.is_empty() || present == 1 {
            return Some(());
        }
        // One mistake is one error: an unknown key probably means one of these.
        if present > 1 || self.unread().is_empty() {
            let message = format!("{} must have exactly one of {}", self.subject, and_list(keys));
            self.cx.error(Code::MissingKey, self.span, message);
        }
        None
    }
}

/// "`emit:`, `drop:` and `fail:`"
fn and_list(keys: &[&str]) -> String {
    let quoted: Vec<String> = keys.iter().map(|key| format!("`{key}:`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// How a section is called in messages, by the key in front of it.
pub trait Subject {
    fn text(&self, key: &str) -> String;
}

impl Subject for &str {
    fn text(&self, _: &str) -> String {
        (*self).to_owned()
    }
}

/// A subject with the name of the section in it: "the frame `chunk`".
pub struct Named(pub &'static str);

impl Subject for Named {
    fn text(&self, key: &str) -> String {
        format!("{} `{key}`", self.0)
    }
}

/// A subject that is the key of the section: "`sse:`".
pub struct Quoted;

impl Subject for Quoted {
    fn text(&self, key: &str) -> String {
        format!("`{key}:`")
    }
}

/// The schema of a section that has exactly one of the keys `one_of`.
pub fn object_schema<'n, S: Section<'n>>(about: &str, one_of: &[&str], generator: &mut SchemaGenerator) -> Schema {
    let mut schema = json_schema!({ "type": "object", "properties": S::properties(generator) });
    schema.insert("additionalProperties".to_owned(), false.into());
    let required = S::required();
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    if !one_of.is_empty() {
        schema.insert("oneOf".to_owned(), exactly_one(one_of.iter().copied()));
    }
    if !about.is_empty() {
        schema.insert("description".to_owned(), about.into());
    }
    schema
}

/// The schema of one key of a section.
pub fn property<'n, T: FromNode<'n> + JsonSchema>(
    about: &str,
    default: Option<&T>,
    generator: &mut SchemaGenerator,
) -> Value {
    let mut schema = generator.subschema_for::<T>();
    if !about.is_empty() {
        schema.insert("description".to_owned(), about.into());
    }
    if let Some(default) = default.and_then(T::shown) {
        schema.insert("default".to_owned(), default);
    }
    schema.to_value()
}

/// Declares a section.
///
/// ```text
/// section! {
///     /// What the section is for.
///     #[subject = "a model"]
///     pub struct Model {
///         /// A required key.
///         name: String,
///         /// An optional key.
///         owner: Option<String>,
///         /// A key with a default, and with another name in YAML than in Rust.
///         pattern as "match": String = "*".to_owned(),
///         /// Keys of another section in the same map.
///         ..limits: Limits,
///     }
/// }
/// ```
///
/// `#[subject]` completes the sentence "unknown key `x` in …". Optional attributes, in this order: `#[title = "…"]`
/// names the section in the reference, `#[exactly_one("a", "b")]` allows one of these keys, `#[extend("KEYWORD" =
/// value)]` adds a keyword to its schema (also possible for a key), `#[transform = function]` changes its schema. `pub
/// struct Limits: Default` generates `Default` for a section without required keys.
macro_rules! section {
    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident $key:literal) => { $key };
    (@read $fields:ident, $key:expr, $ty:ty) => { <$ty as $crate::mapping::grammar::Field<'_>>::read($fields, $key) };
    (@read $fields:ident, $key:expr, $ty:ty, $default:expr) => {
        Some($fields.value::<$ty>($key).unwrap_or_else(|| $default))
    };
    (@default $ty:ty) => { <$ty>::default() };
    (@default $ty:ty, $default:expr) => { $default };
    (@implement [] $name:ident $fields:tt) => {};
    (@implement [Default] $name:ident { $(($field:ident, $ty:ty $(, $default:expr)?))* }) => {
        impl Default for $name {
            fn default() -> Self {
                $name { $($field: section!(@default $ty $(, $default)?)),* }
            }
        }
    };
    (@required $ty:ty) => { <$ty as $crate::mapping::grammar::Field<'_>>::REQUIRED };
    (@required $ty:ty, $default:expr) => { false };
    (@property $generator:ident, $about:expr, $ty:ty) => {
        $crate::mapping::grammar::section::property::<<$ty as $crate::mapping::grammar::Field<'_>>::Value>(
            $about, None, $generator,
        )
    };
    (@property $generator:ident, $about:expr, $ty:ty, $default:expr) => {{
        let default: $ty = $default;
        $crate::mapping::grammar::section::property::<$ty>($about, Some(&default), $generator)
    }};
    (
        $(#[doc = $about:literal])*
        $(#[derive($($derive:ident),*)])?
        #[subject = $subject:expr]
        $(#[title = $title:literal])?
        $(#[exactly_one($($one:literal),*)])?
        $(#[extend($extend:literal = $extension:expr)])*
        $(#[transform = $transform:path])?
        pub struct $name:ident $(<$life:lifetime>)? $(: $default_trait:ident)? {
            $(
                $(#[doc = $doc:literal])*
                $(#[extend($key_extend:literal = $key_extension:expr)])*
                $field:ident $(as $key:literal)? : $ty:ty $(= $default:expr)?,
            )*
            $(..$flat:ident : $flat_ty:ty,)*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug $($(, $derive)*)?)]
        #[allow(dead_code, reason = "some keys are only checked")]
        pub struct $name $(<$life>)? {
            $($(#[doc = $doc])* pub $field: $ty,)*
            $(pub $flat: $flat_ty,)*
        }

        section!(@implement [$($default_trait)?] $name { $(($field, $ty $(, $default)?))* });

        impl<'n> $crate::mapping::grammar::Section<'n> for $name $(<$life>)? {
            fn subject(key: &str) -> String {
                $crate::mapping::grammar::Subject::text(&$subject, key)
            }

            fn read_fields(fields: &$crate::mapping::source::field_reader::FieldReader<'n, '_>) -> Option<Self> {
                $(let $field = section!(@read fields, section!(@key $field $($key)?), $ty $(, $default)?);)*
                $(let $flat = <$flat_ty as $crate::mapping::grammar::Section<'n>>::read_fields(fields);)*
                fields.exactly_one(&[$($($one),*)?])?;
                Some($name { $($field: $field?,)* $($flat: $flat?,)* })
            }

            fn properties(generator: &mut schemars::SchemaGenerator) -> serde_json::Map<String, serde_json::Value> {
                let mut properties = serde_json::Map::new();
                $({
                    let about = concat!($($doc),*).trim_ascii();
                    #[allow(unused_mut, reason = "only some keys have further keywords")]
                    let mut property = section!(@property generator, about, $ty $(, $default)?);
                    $(property[$key_extend] = serde_json::json!($key_extension);)*
                    properties.insert(section!(@key $field $($key)?).to_owned(), property);
                })*
                $(properties.extend(<$flat_ty as $crate::mapping::grammar::Section>::properties(generator));)*
                properties
            }

            fn required() -> Vec<&'static str> {
                let keys: &[(&'static str, bool)] =
                    &[$((section!(@key $field $($key)?), section!(@required $ty $(, $default)?))),*];
                #[allow(unused_mut, reason = "only some sections contain others")]
                let mut required: Vec<&'static str> =
                    keys.iter().filter_map(|(key, required)| required.then_some(*key)).collect();
                $(required.extend(<$flat_ty as $crate::mapping::grammar::Section>::required());)*
                required
            }
        }

        impl<'n> $crate::mapping::grammar::FromNode<'n> for $name $(<$life>)? {
            fn from_node(
                node: &'n $crate::mapping::source::yaml::Node,
                at: $crate::mapping::grammar::At,
            ) -> Option<Self> {
                let fields = <Self as $crate::mapping::grammar::Section<'n>>::open(node, at.key, at.cx)?;
                let section = <Self as $crate::mapping::grammar::Section<'n>>::read_fields(&fields);
                fields.finish();
                section
            }
        }

        impl $(<$life>)? schemars::JsonSchema for $name $(<$life>)? {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let about = concat!($($about),*).trim_ascii();
                #[allow(unused_mut, reason = "only some sections have further keywords")]
                let mut schema = $crate::mapping::grammar::object_schema::<Self>(about, &[$($($one),*)?], generator);
                $(schema.insert("title".to_owned(), $title.into());)?
                $(schema.insert($extend.to_owned(), serde_json::json!($extension));)*
                $($transform(&mut schema);)?
                schema
            }
        }
    };
}
pub(crate) use section;
