//! Parses YAML text into a tree of nodes with source spans.

use super::{simple_yaml, yaml_errors};
use crate::diagnostics::{Diagnostic, FileId, Findings, Span, did_you_mean};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::{Location, Spanned};
use std::fmt;

#[derive(Clone, Debug)]
pub struct Node {
    pub span: Span,
    pub kind: YamlKind,
}

#[derive(Clone, Debug)]
pub enum YamlKind {
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
        let YamlKind::Text(text) = &self.kind else { return None };
        Some(text)
    }

    pub fn as_map(&self) -> Option<&[Entry]> {
        let YamlKind::Map(entries) = &self.kind else { return None };
        Some(entries)
    }

    pub fn as_list(&self) -> Option<&[Node]> {
        let YamlKind::List(items) = &self.kind else { return None };
        Some(items)
    }

    /// The items of a list; any other value counts as a list of one.
    pub fn as_list_or_one(&self) -> &[Node] {
        match &self.kind {
            YamlKind::List(items) => items,
            _ => std::slice::from_ref(self),
        }
    }

    pub fn get(&self, key: &str) -> Option<&Node> {
        self.as_map()?.iter().find(|e| e.key == key).map(|e| &e.value)
    }

    /// The entry of a key, or of a misspelling of it.
    pub fn entry_or_typo(&self, key: &str) -> Option<&Entry> {
        let entries = self.as_map()?;
        // `policies` is not a misspelling of `custom_policies`.
        let is_typo = |e: &&Entry| e.key.len().abs_diff(key.len()) <= 2 && did_you_mean(&e.key, [key]).is_some();
        entries.iter().find(|e| e.key == key).or_else(|| entries.iter().find(is_typo))
    }

    /// Whether the map has a misspelling of `key` instead of the key. Then references to what the key defines cannot
    /// be resolved either.
    pub fn misspells(&self, key: &str) -> bool {
        self.entry_or_typo(key).is_some_and(|entry| entry.key != key)
    }

    /// Follows a JSON pointer as far as it leads: the last node, the span of its key or element, and whether the pointer
    /// ends there.
    pub fn follow(&self, pointer: &str) -> (&Node, Span, bool) {
        let (mut node, mut span) = (self, self.span);
        for step in reframe_json::pointer_tokens(pointer) {
            let next = match &node.kind {
                YamlKind::Map(entries) => entries.iter().find(|e| e.key == step).map(|e| (&e.value, e.key_span)),
                YamlKind::List(items) => step.parse().ok().and_then(|at: usize| items.get(at)).map(|n| (n, n.span)),
                YamlKind::Null | YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_) | YamlKind::Text(_) => None,
            };
            let Some(next) = next else { return (node, span, false) };
            (node, span) = next;
        }
        (node, span, true)
    }

    /// Visits this node and all below it, each with the key above it.
    pub fn visit<'n>(&'n self, key: &'n str, visit: &mut dyn FnMut(&'n str, &'n Node)) {
        visit(key, self);
        match &self.kind {
            YamlKind::List(items) => items.iter().for_each(|item| item.visit(key, visit)),
            YamlKind::Map(entries) => entries.iter().for_each(|entry| entry.value.visit(&entry.key, visit)),
            YamlKind::Null | YamlKind::Bool(_) | YamlKind::Int(_) | YamlKind::Float(_) | YamlKind::Text(_) => {}
        }
    }

    /// For the sentence "expected X, found Y".
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            YamlKind::Null => "null",
            YamlKind::Bool(_) => "a boolean",
            YamlKind::Int(_) | YamlKind::Float(_) => "a number",
            YamlKind::Text(_) => "a string",
            YamlKind::List(_) => "a list",
            YamlKind::Map(_) => "a map",
        }
    }
}

/// Limits far above the size of any real mapping. They stop an alias bomb within milliseconds.
pub(crate) const MAX_NODES: usize = 20_000;
pub(crate) const MAX_DEPTH: usize = 48;
pub(crate) const MAX_ALIASES: usize = 64;
/// Limit for the expansion of all aliases of a file, in parser events (values and the ends of lists and maps).
const MAX_REPLAYED: usize = 4_000;

/// Parses one document. Reports an error in `findings` and returns `None`.
pub fn parse(file: FileId, text: &str, findings: &Findings) -> Option<Node> {
    try_parse(file, text).map_err(|diagnostic| findings.add(diagnostic)).ok()
}

pub fn try_parse(file: FileId, text: &str) -> Result<Node, Diagnostic> {
    simple_yaml::parse(file, text).map_or_else(|| parse_any(file, text), Ok)
}

/// All of YAML, with an explanation of each mistake.
pub(super) fn parse_any(file: FileId, text: &str) -> Result<Node, Diagnostic> {
    let options = serde_yaml::options! {
        strict_booleans: true,
        // `when: !turn.truncated` would be a tag. The author meant `not turn.truncated`.
        reject_unsupported_tags: true,
        with_snippet: false,
        emit_comments: false,
        alias_limits: serde_yaml::alias_limits! { max_total_replayed_events: MAX_REPLAYED },
        budget: serde_yaml::budget! {
            max_nodes: MAX_NODES, max_aliases: MAX_ALIASES, max_depth: MAX_DEPTH, max_documents: 1, max_merge_keys: 0
        },
    };
    let raw = serde_yaml::from_str_with_options::<RawNode>(text, options)
        .map_err(|error| yaml_errors::explain(error.without_snippet(), file, text))?;
    Ok(resolve_spans(raw, file, text))
}

pub(crate) fn span_of(location: Location, file: FileId, text: &str) -> Span {
    let span = location.span();
    let start = match span.byte_offset() {
        Some(start) => start as usize,
        // The scanner reports only lines and columns.
        None => byte_offset(text, location.line() as usize, location.column() as usize),
    };
    let start = start.min(text.len());
    Span::new(file, start, (start + span.byte_len().unwrap_or(0) as usize).min(text.len()))
}

/// Byte offset of a line and a column, both counted from 1. A column is a character.
fn byte_offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = text.get(start..).unwrap_or_default();
    start + rest.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum::<usize>()
}

/// The tree as parsed, before its locations are resolved to spans of a file.
struct RawNode(Spanned<RawKind>);

enum RawKind {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<RawNode>),
    Map(Vec<(Spanned<String>, RawNode)>),
}

fn resolve_spans(raw: RawNode, file: FileId, text: &str) -> Node {
    let span = span_of(raw.0.referenced, file, text);
    let kind = match raw.0.value {
        RawKind::Null => YamlKind::Null,
        RawKind::Bool(b) => YamlKind::Bool(b),
        RawKind::Int(i) => YamlKind::Int(i),
        RawKind::Float(f) => YamlKind::Float(f),
        RawKind::Text(t) => YamlKind::Text(t),
        RawKind::List(items) => YamlKind::List(items.into_iter().map(|i| resolve_spans(i, file, text)).collect()),
        RawKind::Map(entries) => YamlKind::Map(
            entries
                .into_iter()
                .map(|(key, value)| Entry {
                    key_span: span_of(key.referenced, file, text),
                    key: key.value,
                    value: resolve_spans(value, file, text),
                })
                .collect(),
        ),
    };
    Node { span, kind }
}

impl<'de> Deserialize<'de> for RawNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(RawNode)
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
