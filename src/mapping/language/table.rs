//! Tables: look up a value by a word. `default:` is for words without a row.

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::domain::Tree;
use crate::mapping::grammar::notation::{AnyValue, Spanned, notation_schema};
use crate::mapping::grammar::{At, FromNode, section};
use crate::mapping::source::field_reader::{LoadContext, constant};
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use std::borrow::Cow;
use std::sync::Arc;

/// A table in YAML.
#[derive(Clone, Copy, Debug)]
pub struct TableNode;

notation_schema! {
    /// A map from words to values; `default:` applies to every other word, and `default: same` gives the word itself.
    /// `patterns:` is a list of tests for words without a row, tried in order before the default. `extends:` names a table
    /// of shared.yaml for words without a row or a pattern. With `ignore_case: true`, words are compared in lower case. In a
    /// rule, the value `none` means that the field stays empty.
    TableNode, "table", {
        "type": "object",
        "properties": {
            "default": { "description": "The value of every other word; `same` gives the word itself." },
            "patterns": { "description": "Tests for words without a row, tried in order before the default." },
            "extends": {
                "type": "string",
                "description": "A table of shared.yaml, for words without a row or a pattern."
            },
            "ignore_case": { "type": "boolean", "description": "Whether words are compared in lower case." },
        },
    }
}

section! {
    /// A test for words without a row of their own, with the value of those that match. It has exactly one test.
    #[subject = "a pattern"]
    #[title = "pattern"]
    pub struct PatternEntry {
        /// The word contains this text.
        contains: Option<String>,
        /// The word begins with this text.
        starts_with: Option<String>,
        /// The word ends with this text.
        ends_with: Option<String>,
        /// The word is a number below this one.
        below: Option<AnyValue>,
        /// The value.
        is: AnyValue,
    }
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    /// Span of its name.
    pub span: Span,
    rows: Vec<Row>,
    /// For words without a row, in order.
    patterns: Vec<(Pattern, Value)>,
    default: Option<Value>,
    /// Rows and patterns are in lower case.
    ignore_case: bool,
    /// The name of another table, and the table once it is known.
    extends: Option<Spanned<String>>,
    base: Option<Arc<Table>>,
}

#[derive(Clone, Debug)]
enum Pattern {
    Contains(String),
    StartsWith(String),
    EndsWith(String),
    Below(f64),
}

impl Pattern {
    fn matches(&self, word: &str) -> bool {
        match self {
            Pattern::Contains(text) => word.contains(text),
            Pattern::StartsWith(text) => word.starts_with(text),
            Pattern::EndsWith(text) => word.ends_with(text),
            Pattern::Below(limit) => word.parse::<f64>().is_ok_and(|number| number < *limit),
        }
    }

    /// From now on for words in lower case.
    fn ignore_case(&mut self) {
        match self {
            Pattern::Contains(text) | Pattern::StartsWith(text) | Pattern::EndsWith(text) => {
                *text = text.to_lowercase();
            }
            Pattern::Below(_) => {}
        }
    }
}

/// `default: same`
const SAME: &str = "same";

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
        let mut table = Table {
            name: name.to_owned(),
            span,
            rows: Vec::new(),
            patterns: Vec::new(),
            default: None,
            ignore_case: false,
            extends: None,
            base: None,
        };
        for entry in entries {
            let value = Value { tree: constant(&entry.value), span: entry.value.span };
            if entry.key == "patterns" {
                table.patterns = entry.value.as_list_or_one().iter().filter_map(|node| pattern(node, cx)).collect();
            } else if entry.key == "default" {
                table.default = Some(value);
            } else if entry.key == "ignore_case" {
                table.ignore_case = cx.boolean(&entry.value).unwrap_or(false);
            } else if entry.key == "extends" {
                let at = At { key: &entry.key, key_span: entry.key_span, cx };
                table.extends = Spanned::from_node(&entry.value, at);
            } else {
                table.rows.push(Row { word: entry.key.clone(), span: entry.key_span, value });
            }
        }
        if table.ignore_case {
            table.rows.iter_mut().for_each(|row| row.word = row.word.to_lowercase());
            table.patterns.iter_mut().for_each(|(pattern, _)| pattern.ignore_case());
        }
        Some(Arc::new(table))
    }

    /// `None`: the table has neither the word, nor a pattern for it, nor a default.
    pub fn get(&self, word: &str) -> Option<Cow<'_, Tree>> {
        if let Some(value) = self.find(word).or_else(|| self.base.as_ref()?.find(word)) {
            return Some(Cow::Borrowed(&value.tree));
        }
        let Some(default) = &self.default else { return self.base.as_ref()?.get(word) };
        Some(if self.keeps_words() { Cow::Owned(Tree::from(word)) } else { Cow::Borrowed(&default.tree) })
    }

    /// The value of its row or pattern.
    fn find(&self, word: &str) -> Option<&Value> {
        let word = match self.ignore_case {
            true => Cow::Owned(word.trim().to_lowercase()),
            false => Cow::Borrowed(word),
        };
        let row = self.rows.iter().find(|row| row.word == word).map(|row| &row.value);
        let pattern = || self.patterns.iter().find(|(pattern, _)| pattern.matches(&word)).map(|(_, value)| value);
        row.or_else(pattern)
    }

    /// `default: same`
    fn keeps_words(&self) -> bool {
        self.default.as_ref().is_some_and(|default| default.tree.as_str() == Some(SAME))
    }

    /// Whether the table has a row for the word, apart from its default.
    pub fn contains(&self, word: &str) -> bool {
        self.rows.iter().any(|r| r.word == word) || self.base.as_ref().is_some_and(|base| base.contains(word))
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
        let patterns = self.patterns.iter().map(|(_, value)| value);
        let default = self.default.as_ref().filter(|_| !self.keeps_words());
        let own = self.rows.iter().map(|r| &r.value).chain(patterns).chain(default).map(|v| (&v.tree, v.span));
        let base: Box<dyn Iterator<Item = (&Tree, Span)>> = match &self.base {
            Some(base) => Box::new(base.values()),
            None => Box::new(std::iter::empty()),
        };
        own.chain(base)
    }

    /// Whether a look-up can find nothing: no default, and not both rows of a boolean.
    pub fn is_partial(&self) -> bool {
        let has_both = self.contains("true") && self.contains("false");
        !self.has_default() && !has_both
    }

    fn has_default(&self) -> bool {
        self.default.is_some() || self.base.as_ref().is_some_and(|base| base.has_default())
    }

    /// The words of a closed set that the table does not cover.
    pub fn missing<'w>(&self, closed: &[&'w str]) -> Vec<&'w str> {
        if self.has_default() {
            return Vec::new();
        }
        closed.iter().copied().filter(|w| !self.contains(w)).collect()
    }
}

fn pattern(node: &Node, cx: LoadContext) -> Option<(Pattern, Value)> {
    let at = At { key: "patterns", key_span: node.span, cx };
    let entry = PatternEntry::from_node(node, at)?;
    let below = match entry.below {
        Some(AnyValue(limit)) => match limit.as_f64() {
            Some(limit) => Some(Pattern::Below(limit)),
            None => {
                cx.error(Code::WrongType, node.span, "`below:` is a number");
                return None;
            }
        },
        None => None,
    };
    let texts = [
        entry.contains.map(Pattern::Contains),
        entry.starts_with.map(Pattern::StartsWith),
        entry.ends_with.map(Pattern::EndsWith),
        below,
    ];
    let mut tests = texts.into_iter().flatten();
    match (tests.next(), tests.next()) {
        (Some(test), None) => Some((test, Value { tree: entry.is.0, span: node.span })),
        _ => {
            let message = "a pattern has exactly one of `contains:`, `starts_with:`, `ends_with:` and `below:`";
            cx.error(Code::MissingKey, node.span, message);
            None
        }
    }
}

/// The tables that a file can use: its own, then the shared ones.
#[derive(Clone, Debug, Default)]
pub struct Tables(Vec<Arc<Table>>);

impl Tables {
    pub fn parse(entries: &[Entry], cx: LoadContext) -> Tables {
        Tables(entries.iter().filter_map(|e| Table::parse(&e.key, e.key_span, &e.value, cx)).collect())
    }

    /// The tables of shared.yaml, which are what others extend.
    pub fn parse_shared(entries: &[Entry], cx: LoadContext) -> Tables {
        let tables = Tables::parse(entries, cx);
        for extends in tables.0.iter().filter_map(|table| table.extends.as_ref()) {
            let message = "a table of shared.yaml cannot extend another one";
            let help = "write the rows here, or `extends:` in the file that uses both";
            cx.add(Diagnostic::new(Code::UnknownKey, extends.key_span, message).help(help));
        }
        tables
    }

    /// Adds the shared tables, and finds those that others extend.
    pub fn with_shared(mut self, shared: &Tables, cx: LoadContext) -> Tables {
        for table in &mut self.0 {
            let Some(extends) = table.extends.clone() else { continue };
            match shared.get(&extends) {
                Some(base) => Arc::make_mut(table).base = Some(base.clone()),
                None => {
                    let message = format!("shared.yaml has no table `{}`", extends.value);
                    cx.unknown(Code::UnknownTable, extends.span, message, &extends, shared.names());
                }
            }
        }
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
