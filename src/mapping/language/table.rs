//! Tables: closed words to other words. `default:` is for what the table does not name.

use crate::diagnostics::Span;
use crate::domain::Tree;
use crate::mapping::source::field_reader::{Cx, constant};
use crate::mapping::source::yaml::{Kind, Node};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    /// Where its name stands.
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
    pub fn parse(name: &str, span: Span, node: &Node, cx: Cx) -> Option<Arc<Table>> {
        let Kind::Map(entries) = &node.kind else {
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

    /// The word stands in the table itself, not only under its default.
    pub fn names(&self, word: &str) -> bool {
        self.rows.iter().any(|r| r.word == word)
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|r| r.word.as_str())
    }

    /// The word of each row, and where it stands.
    pub fn rows(&self) -> impl Iterator<Item = (&str, Span)> {
        self.rows.iter().map(|r| (r.word.as_str(), r.span))
    }

    /// Every value that can come out, and where it stands.
    pub fn values(&self) -> impl Iterator<Item = (&Tree, Span)> {
        self.rows.iter().map(|r| &r.value).chain(&self.default).map(|v| (&v.tree, v.span))
    }

    /// Can a word come that it has no row for? Yes and no are all that a boolean can be.
    pub fn is_open(&self) -> bool {
        self.default.is_none() && !(self.names("true") && self.names("false"))
    }

    /// The words of a closed set that it does not cover.
    pub fn missing<'w>(&self, closed: &[&'w str]) -> Vec<&'w str> {
        if self.default.is_some() {
            return Vec::new();
        }
        closed.iter().copied().filter(|w| !self.names(w)).collect()
    }
}

/// The tables that a file can name: its own, then the shared ones.
#[derive(Clone, Debug, Default)]
pub struct Tables(Vec<Arc<Table>>);

impl Tables {
    pub fn parse(entries: &[crate::mapping::source::yaml::Entry], cx: Cx) -> Tables {
        Tables(entries.iter().filter_map(|e| Table::parse(&e.key, e.key_span, &e.value, cx)).collect())
    }

    pub fn or(mut self, shared: &Tables) -> Tables {
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
