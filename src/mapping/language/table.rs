//! Tables: look up a value by a word. `default:` is for words without a row.

use crate::diagnostics::Span;
use crate::domain::Tree;
use crate::mapping::grammar::notation::notation_schema;
use crate::mapping::source::field_reader::{LoadContext, constant};
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use std::sync::Arc;

/// A table in YAML.
#[derive(Clone, Copy, Debug)]
pub struct TableNode;

notation_schema! {
    /// A map from words to values; `default:` applies to every other word. In a rule, the value `none` means that the
    /// field stays empty.
    TableNode, "table", { "type": "object" }
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    /// Span of its name.
    pub span: Span,
    rows: Vec<Row>,
    default: Option<Value>,
}

#[derive(Clone, Debug)]
struct Row {
    word: String,
    span: Span,
    value: Value,
}

#[derive(Clone, Debug)]
struct Value {
    tree: Tree,
    span: Span,
}

impl Table {
    pub fn parse(name: &str, span: Span, node: &Node, cx: LoadContext) -> Option<Arc<Table>> {
        let YamlKind::Map(entries) = &node.kind else {
            cx.wrong_type(node, "a table (a map from word to value)");
            return None;
        };
        let mut table = Table { name: name.to_owned(), span, rows: Vec::new(), default: None };
        for entry in entries {
            let value = Value { tree: constant(&entry.value), span: entry.value.span };
            if entry.key == "default" {
                table.default = Some(value);
            } else {
                table.rows.push(Row { word: entry.key.clone(), span: entry.key_span, value });
            }
        }
        Some(Arc::new(table))
    }

    /// `None`: the table has neither the word nor a default.
    pub fn get(&self, word: &str) -> Option<&Tree> {
        self.rows.iter().find(|r| r.word == word).map(|r| &r.value).or(self.default.as_ref()).map(|v| &v.tree)
    }

    /// Whether the table has a row for the word, apart from its default.
    pub fn contains(&self, word: &str) -> bool {
        self.rows.iter().any(|r| r.word == word)
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|r| r.word.as_str())
    }

    /// The word of each row, with its span.
    pub fn rows(&self) -> impl Iterator<Item = (&str, Span)> {
        self.rows.iter().map(|r| (r.word.as_str(), r.span))
    }

    /// Every possible result, with its span.
    pub fn values(&self) -> impl Iterator<Item = (&Tree, Span)> {
        self.rows.iter().map(|r| &r.value).chain(&self.default).map(|v| (&v.tree, v.span))
    }

    /// Whether a look-up can find nothing: no default, and not both rows of a boolean.
    pub fn is_partial(&self) -> bool {
        self.default.is_none() && !(self.contains("true") && self.contains("false"))
    }

    /// The words of a closed set that the table does not cover.
    pub fn missing<'w>(&self, closed: &[&'w str]) -> Vec<&'w str> {
        if self.default.is_some() {
            return Vec::new();
        }
        closed.iter().copied().filter(|w| !self.contains(w)).collect()
    }
}

/// The tables that a file can use: its own, then the shared ones.
#[derive(Clone, Debug, Default)]
pub struct Tables(Vec<Arc<Table>>);

impl Tables {
    pub fn parse(entries: &[Entry], cx: LoadContext) -> Tables {
        Tables(entries.iter().filter_map(|e| Table::parse(&e.key, e.key_span, &e.value, cx)).collect())
    }

    pub fn with_shared(mut self, shared: &Tables) -> Tables {
        for table in &shared.0 {
            if self.get(&table.name).is_none() {
                self.0.push(table.clone());
            }
        }
        self
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Table>> {
        self.0.iter().find(|t| t.name == name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|t| t.name.as_str())
    }
}
