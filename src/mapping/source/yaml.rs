//! YAML text → a tree that knows where each of its values stands.

use super::yaml_errors;
use crate::diagnostics::{FileId, Findings, Span, did_you_mean};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::{Location, Spanned};
use std::fmt;

#[derive(Clone, Debug)]
pub struct Node {
    pub span: Span,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub enum Kind {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub key: String,
    pub key_span: Span,
    pub value: Node,
}

impl Node {
    pub fn as_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::List(_) | Kind::Map(_) => None,
        }
    }

    pub fn as_map(&self) -> Option<&[Entry]> {
        match &self.kind {
            Kind::Map(entries) => Some(entries),
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::List(_) | Kind::Text(_) => None,
        }
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        self.as_map()?.iter().find(|e| e.key == key).map(|e| &e.value)
    }

    /// The entry of a key, be it misspelt.
    pub fn meant(&self, key: &str) -> Option<&Entry> {
        let entries = self.as_map()?;
        // `policies` is no slip in `own_policies`.
        let slip = |e: &&Entry| e.key.len().abs_diff(key.len()) <= 2 && did_you_mean(&e.key, [key]).is_some();
        entries.iter().find(|e| e.key == key).or_else(|| entries.iter().find(slip))
    }

    /// A slip stands where the key should: it is unknown, and what it holds cannot be found.
    pub fn misspells(&self, key: &str) -> bool {
        self.meant(key).is_some_and(|entry| entry.key != key)
    }

    /// For the sentence "expected X, found Y".
    pub fn noun(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "a boolean",
            Kind::Int(_) | Kind::Float(_) => "a number",
            Kind::Text(_) => "text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a map",
        }
    }
}

/// Limits that no honest mapping reaches; an alias bomb is stopped within milliseconds.
pub(crate) const MAX_NODES: usize = 20_000;
pub(crate) const MAX_DEPTH: usize = 48;
pub(crate) const MAX_ALIASES: usize = 64;
/// What all aliases of a file may stand for, in values and the ends of lists and maps.
const MAX_REPLAYED: usize = 4_000;

/// Parses one document. What is wrong goes to `findings`, and `None` comes back.
pub fn parse(file: FileId, text: &str, findings: &Findings) -> Option<Node> {
    let options = serde_yaml::options! {
        strict_booleans: true,
        // `when: !turn.cut` is a tag and no value; a person means `not`.
        reject_unsupported_tags: true,
        with_snippet: false,
        alias_limits: serde_yaml::alias_limits! { max_total_replayed_events: MAX_REPLAYED },
        budget: serde_yaml::budget! {
            max_nodes: MAX_NODES, max_aliases: MAX_ALIASES, max_depth: MAX_DEPTH, max_documents: 1
        },
    };
    match serde_yaml::from_str_with_options::<Raw>(text, options) {
        Ok(raw) => Some(place(raw, file, text)),
        Err(error) => {
            findings.add(yaml_errors::explain(error.without_snippet(), file, text));
            None
        }
    }
}

pub(crate) fn span_of(location: Location, file: FileId, text: &str) -> Span {
    let span = location.span();
    let start = match span.byte_offset() {
        Some(start) => start as usize,
        // The scanner counts lines and characters only.
        None => offset(text, location.line() as usize, location.column() as usize),
    };
    let start = start.min(text.len());
    Span::new(file, start, (start + span.byte_len().unwrap_or(0) as usize).min(text.len()))
}

/// Where a line and a column are, both from 1; a column is a character.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = text.get(start..).unwrap_or_default();
    start + rest.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum::<usize>()
}

/// The tree before it knows its file.
struct Raw(Spanned<RawKind>);

enum RawKind {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Raw>),
    Map(Vec<(Spanned<String>, Raw)>),
}

fn place(raw: Raw, file: FileId, text: &str) -> Node {
    let span = span_of(raw.0.referenced, file, text);
    let kind = match raw.0.value {
        RawKind::Null => Kind::Null,
        RawKind::Bool(b) => Kind::Bool(b),
        RawKind::Int(i) => Kind::Int(i),
        RawKind::Float(f) => Kind::Float(f),
        RawKind::Text(t) => Kind::Text(t),
        RawKind::List(items) => Kind::List(items.into_iter().map(|i| place(i, file, text)).collect()),
        RawKind::Map(entries) => Kind::Map(
            entries
                .into_iter()
                .map(|(key, value)| Entry {
                    key_span: span_of(key.referenced, file, text),
                    key: key.value,
                    value: place(value, file, text),
                })
                .collect(),
        ),
    };
    Node { span, kind }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Raw)
    }
}

impl<'de> Deserialize<'de> for RawKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = RawKind;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<RawKind, E> {
        Ok(RawKind::Null)
    }

    fn visit_none<E>(self) -> Result<RawKind, E> {
        Ok(RawKind::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<RawKind, E> {
        Ok(RawKind::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<RawKind, E> {
        Ok(RawKind::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<RawKind, E> {
        Ok(i64::try_from(value).map_or(RawKind::Float(value as f64), RawKind::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<RawKind, E> {
        Ok(RawKind::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<RawKind, E> {
        Ok(RawKind::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<RawKind, E> {
        Ok(RawKind::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<RawKind, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(RawKind::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<RawKind, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(RawKind::Map(entries))
    }
}
