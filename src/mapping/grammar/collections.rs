//! Lists and maps in YAML, as the loader accepts them.

use super::notation::notation_schema;
use super::section::{At, FromNode};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use schemars::{JsonSchema, json_schema};
use std::marker::PhantomData;
use std::ops::Deref;

/// Declares a list type with its schema. `$item` is the schema of an element.
macro_rules! list_type {
    ($(#[doc = $about:literal])* $name:ident, |$item:ident| $schema:expr) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name<T>(pub Vec<T>);

        impl<T> Deref for $name<T> {
            type Target = [T];

            fn deref(&self) -> &[T] {
                &self.0
            }
        }

        impl<T> Default for $name<T> {
            fn default() -> Self {
                $name(Vec::new())
            }
        }

        impl<T> IntoIterator for $name<T> {
            type Item = T;
            type IntoIter = std::vec::IntoIter<T>;

            fn into_iter(self) -> Self::IntoIter {
                self.0.into_iter()
            }
        }

        notation_schema!([T: JsonSchema] $name<T>, |generator| {
            let $item = generator.subschema_for::<T>();
            $schema
        });
    };
}

list_type! {
    /// A list; a single value counts as a list of one, and null as an empty list.
    List, |item| json_schema!({
        "if": { "type": "array" }, "then": { "items": item }, "else": { "anyOf": [{ "type": "null" }, item] },
    })
}
list_type! {
    /// A list; a single value counts as a list of one.
    OneOrMore, |item| json_schema!({ "if": { "type": "array" }, "then": { "items": item }, "else": item })
}
list_type! {
    /// A list with at least one element.
    NonEmptyList, |item| json_schema!({ "type": "array", "minItems": 1, "items": item })
}

/// Elements with mistakes are reported and skipped.
fn elements<'n, T: FromNode<'n>>(nodes: &'n [Node], at: At) -> Vec<T> {
    nodes.iter().filter_map(|node| T::from_node(node, at)).collect()
}

impl<'n, T: FromNode<'n>> FromNode<'n> for List<T> {
    fn from_node(node: &'n Node, at: At) -> Option<List<T>> {
        Some(List(elements(list_elements(node), at)))
    }
}

impl<'n, T: FromNode<'n>> FromNode<'n> for OneOrMore<T> {
    fn from_node(node: &'n Node, at: At) -> Option<OneOrMore<T>> {
        Some(OneOrMore(elements(node.as_list_or_one(), at)))
    }
}

impl<'n, T: FromNode<'n>> FromNode<'n> for NonEmptyList<T> {
    fn from_node(node: &'n Node, at: At) -> Option<NonEmptyList<T>> {
        match &node.kind {
            YamlKind::List(items) if !items.is_empty() => return Some(NonEmptyList(elements(items, at))),
            YamlKind::List(_) | YamlKind::Null => {
                at.cx.error(Code::MissingKey, at.key_span, format!("`{}:` is empty", at.key));
            }
            YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_) | YamlKind::Text(_) | YamlKind::Map(_) => {
                let message = format!("`{}:` must be a list, not {}", at.key, node.type_name());
                let label = "list items begin with `- `";
                at.cx.add(Diagnostic::new(Code::WrongType, node.span, message).label(label));
            }
        }
        None
    }
}

/// A map with arbitrary keys, in the order of the file; null counts as an empty map.
#[derive(Clone, Debug)]
pub struct Map<T>(pub Vec<MapEntry<T>>);

#[derive(Clone, Debug)]
pub struct MapEntry<T> {
    pub key: String,
    pub key_span: Span,
    pub value: T,
}

impl<T> Default for Map<T> {
    fn default() -> Self {
        Map(Vec::new())
    }
}

impl<T> Map<T> {
    /// The entries of both maps; those of `over` take precedence.
    pub fn merged(&self, over: &Map<T>) -> Map<T>
    where
        T: Clone,
    {
        let kept = self.0.iter().filter(|e| over.get(&e.key).is_none());
        Map(kept.chain(&over.0).cloned().collect())
    }

    pub fn pairs(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|e| (e.key.as_str(), &e.value))
    }

    pub fn get(&self, key: &str) -> Option<&T> {
        self.0.iter().find(|e| e.key == key).map(|e| &e.value)
    }
}

impl<T> Deref for Map<T> {
    type Target = [MapEntry<T>];

    fn deref(&self) -> &[MapEntry<T>] {
        &self.0
    }
}

impl<'n, T: FromNode<'n>> FromNode<'n> for Map<T> {
    fn from_node(node: &'n Node, at: At) -> Option<Map<T>> {
        let entries = entries(node, at)?;
        let read = |e: &'n Entry| {
            let value = T::from_node(&e.value, At { key: &e.key, key_span: e.key_span, cx: at.cx })?;
            Some(MapEntry { key: e.key.clone(), key_span: e.key_span, value })
        };
        Some(Map(entries.iter().filter_map(read).collect()))
    }
}

notation_schema!([T: JsonSchema] Map<T>, |generator| {
    json_schema!({ "type": ["null", "object"], "additionalProperties": generator.subschema_for::<T>() })
});

/// Declares a collection that is compiled later, when the names in scope are known. `S` has its schema.
macro_rules! unparsed_collection {
    ($(#[doc = $about:literal])* $name:ident, $item:ty, $read:expr, |$schema:ident| $json_schema:expr) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'n, S> {
            pub items: &'n [$item],
            schema: PhantomData<S>,
        }

        impl<S> Default for $name<'_, S> {
            fn default() -> Self {
                $name { items: &[], schema: PhantomData }
            }
        }

        impl<S> Deref for $name<'_, S> {
            type Target = [$item];

            fn deref(&self) -> &[$item] {
                self.items
            }
        }

        impl<'n, S> FromNode<'n> for $name<'n, S> {
            fn from_node(node: &'n Node, at: At) -> Option<$name<'n, S>> {
                let read: fn(&'n Node, At) -> Option<&'n [$item]> = $read;
                read(node, at).map(|items| $name { items, schema: PhantomData })
            }
        }

        notation_schema!([S: JsonSchema] $name<'_, S>, |$schema| $json_schema);
    };
}

unparsed_collection! {
    /// The entries of a map; null counts as an empty map. `S` is the schema of the whole map.
    Entries, Entry, entries, |generator| S::json_schema(generator)
}
unparsed_collection! {
    /// The elements of a list; a single value counts as a list of one, and null as an empty list.
    Elements, Node, |node, _| Some(list_elements(node)), |generator| List::<S>::json_schema(generator)
}

/// The entries of a map; null counts as an empty map.
pub fn entries<'n>(node: &'n Node, at: At) -> Option<&'n [Entry]> {
    match &node.kind {
        YamlKind::Map(entries) => Some(entries),
        YamlKind::Null => Some(&[]),
        YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_) | YamlKind::Text(_) | YamlKind::List(_) => {
            at.cx.wrong_type(node, "a map");
            None
        }
    }
}

fn list_elements(node: &Node) -> &[Node] {
    match &node.kind {
        YamlKind::Null => &[],
        _ => node.as_list_or_one(),
    }
}
