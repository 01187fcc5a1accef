//! How a rule fills a field: a constant, a selector, or `{ from, as, table, default, use }`.

use super::named_rules::RuleBook;
use super::rule::RuleSet;
use super::selector::Selector;
use super::table::{Table, Tables};
use crate::diagnostics::{Code, Diagnostic, one_of};
use crate::domain::emit::{Field, Kind};
use crate::domain::{Tree, words};
use crate::mapping::source::field_reader::{Cx, Fields, constant};
use crate::mapping::source::yaml::{Kind as Yaml, Node};
use std::sync::Arc;

words! {
    /// The closed list of conversions. None is named after a dialect.
    pub enum Convert {
        /// Compact JSON text; a string is already text and stays as it is.
        JsonText = "json_text",
        /// JSON out of text that holds JSON.
        Json = "json",
        Not = "not",
        Lower = "lower",
        /// How many keys a map has, or items a list.
        Count = "count",
        /// Which element of its list the node is, from 0.
        Position = "position",
        /// All that `from` names, added up.
        Sum = "sum",
    }
}

#[derive(Clone, Debug)]
pub struct Read {
    pub field: &'static Field,
    /// A backend's number may stand for text (an id, an index); a client's may not.
    pub(crate) lenient: bool,
    pub(crate) way: Way,
}

#[derive(Clone, Debug)]
pub(crate) enum Way {
    Constant(Tree),
    Select {
        /// The first that is there and not null counts.
        from: Vec<Selector>,
        convert: Option<Convert>,
        table: Option<Arc<Table>>,
        default: Tree,
    },
    Parts {
        from: Selector,
        rules: Arc<RuleSet>,
    },
}

pub struct ReadCx<'c> {
    pub cx: Cx<'c>,
    pub tables: &'c Tables,
    pub book: &'c RuleBook,
    pub lenient: bool,
}

impl Read {
    pub fn parse(field: &'static Field, node: &Node, rcx: &ReadCx) -> Option<Read> {
        let cx = rcx.cx;
        let way = match &node.kind {
            Yaml::Text(text) if Selector::looks_like(text) => {
                let selector = Selector::parse(text, node.span, cx)?;
                match field.kind {
                    Kind::Parts => {
                        cx.add(
                            Diagnostic::new(Code::WrongType, node.span, format!("`{}` needs rules", field.name)).help(
                                "write `{ from: \"@.content\", use: NAME }`, with the rules of NAME below `rules:`",
                            ),
                        );
                        return None;
                    }
                    _ => Way::Select { from: vec![selector], convert: None, table: None, default: Tree::Null },
                }
            }
            Yaml::Map(_) => Self::parse_map(field, node, rcx)?,
            Yaml::Null | Yaml::Bool(_) | Yaml::Int(_) | Yaml::Float(_) | Yaml::Text(_) | Yaml::List(_) => {
                Way::Constant(self::fixed(field, &constant(node), node, cx)?)
            }
        };
        Some(Read { field, lenient: rcx.lenient, way })
    }

    fn parse_map(field: &'static Field, node: &Node, rcx: &ReadCx) -> Option<Way> {
        let cx = rcx.cx;
        let fields = Fields::of(node, format!("the field `{}`", field.name), cx)?;
        if let Some(value) = fields.get("value") {
            let way = Way::Constant(self::fitted(field, &constant(value), value, cx)?);
            fields.done();
            return Some(way);
        }
        let mut from = Vec::new();
        for item in fields.list("from") {
            if let Some(text) = crate::mapping::source::field_reader::text_of(item, cx) {
                from.extend(Selector::parse(text, item.span, cx));
            }
        }
        fields.required("from")?;
        let rules = match fields.get("use") {
            Some(name) => {
                let text = crate::mapping::source::field_reader::text_of(name, cx)?;
                let found = rcx.book.get(text);
                if found.is_none() {
                    let message = format!("no rules are called `{text}`");
                    cx.unknown(Code::UnknownReference, name.span, message, text, rcx.book.names());
                }
                Some(found?)
            }
            None => None,
        };
        let convert = fields.get("as").and_then(|n| cx.word(n, Convert::WORDS)).and_then(Convert::from_word);
        let table = match fields.get("table") {
            None => None,
            Some(name) => match &name.kind {
                Yaml::Map(_) => Table::parse(field.name, name.span, name, cx),
                _ => {
                    let text = crate::mapping::source::field_reader::text_of(name, cx)?;
                    let found = rcx.tables.get(text).cloned();
                    if found.is_none() {
                        let message = format!("no table is called `{text}`");
                        cx.unknown(Code::UnknownTable, name.span, message, text, rcx.tables.names());
                    }
                    found
                }
            },
        };
        if let (Some(table), Kind::Word(words)) = (&table, field.kind) {
            self::check_values(table, words, field, cx);
        }
        let default = match fields.get("default") {
            Some(node) => self::fixed(field, &constant(node), node, cx)?,
            None => Tree::Null,
        };
        fields.done();
        match (rules, field.kind) {
            (Some(rules), Kind::Parts) => {
                from.truncate(1);
                from.pop().map(|from| Way::Parts { from, rules })
            }
            (None, Kind::Parts) | (Some(_), _) => {
                if node.misspells("use") {
                    return None;
                }
                let message = if field.kind == Kind::Parts {
                    format!("`{}` needs `use:`, the rules that make its parts", field.name)
                } else {
                    format!("`use:` makes parts; `{}` is not made of parts", field.name)
                };
                cx.error(Code::WrongType, node.span, message);
                None
            }
            (None, _) => Some(Way::Select { from, convert, table, default }),
        }
    }

    /// What this field always is.
    pub fn constant(&self) -> Option<&Tree> {
        match &self.way {
            Way::Constant(value) => Some(value),
            Way::Select { .. } | Way::Parts { .. } => None,
        }
    }

    pub fn table(&self) -> Option<&Arc<Table>> {
        match &self.way {
            Way::Select { table, .. } => table.as_ref(),
            Way::Constant(_) | Way::Parts { .. } => None,
        }
    }

    /// The rules that make its parts.
    pub fn rules(&self) -> Option<&RuleSet> {
        match &self.way {
            Way::Parts { rules, .. } => Some(rules),
            Way::Constant(_) | Way::Select { .. } => None,
        }
    }

    pub fn selectors(&self) -> Vec<&Selector> {
        match &self.way {
            Way::Constant(_) => Vec::new(),
            Way::Select { from, .. } => from.iter().collect(),
            Way::Parts { from, .. } => vec![from],
        }
    }
}

/// Brings a value into the type of its field, or says what was expected.
pub fn fit(field: &Field, value: Tree) -> Result<Tree, String> {
    match field.kind {
        Kind::Json | Kind::Parts => Ok(value),
        Kind::Text => match value {
            Tree::Str(_) | Tree::Torn(_) => Ok(value),
            other => scalar_text(&other).map(Tree::from).ok_or_else(|| "a string".to_owned()),
        },
        Kind::Int => match value.as_i64() {
            Some(i) => Ok(Tree::from(i)),
            None => Err("an integer".to_owned()),
        },
        Kind::Number => {
            if value.as_f64().is_some() {
                Ok(value)
            } else {
                Err("a number".to_owned())
            }
        }
        Kind::Bool => {
            if value.as_bool().is_some() {
                Ok(value)
            } else {
                Err("a boolean".to_owned())
            }
        }
        Kind::Word(words) => match value.as_str() {
            Some(word) if words.contains(&word) => Ok(value),
            _ => Err(one_of(words.iter().copied())),
        },
        Kind::Texts => match value {
            Tree::Str(_) => Ok(Tree::from(vec![value])),
            Tree::List(ref items) if items.iter().all(|i| i.as_str().is_some()) => Ok(value),
            _ => Err("a string or a list of strings".to_owned()),
        },
    }
}

/// Numbers and booleans as text: an id may come as a number.
pub fn scalar_text(value: &Tree) -> Option<String> {
    match value {
        Tree::Str(text) => Some(text.clone()),
        Tree::Torn(torn) => Some(torn.lossy()),
        Tree::Num(_) | Tree::Bool(_) => Some(value.to_json()),
        Tree::Null | Tree::List(_) | Tree::Map(_) => None,
    }
}

fn fixed(field: &Field, value: &Tree, node: &Node, cx: Cx) -> Option<Tree> {
    match node.as_text() {
        Some(text) if !plain(text, node, cx) => None,
        _ => fitted(field, value, node, cx),
    }
}

fn fitted(field: &Field, value: &Tree, node: &Node, cx: Cx) -> Option<Tree> {
    if value.is_null() {
        return Some(Tree::Null);
    }
    match (fit(field, value.clone()), field.kind) {
        (Ok(value), _) => Some(value),
        (Err(_), Kind::Word(words)) => {
            let said = node.as_text().unwrap_or_default();
            let message = format!("`{}` cannot be `{}`", field.name, value.to_json().trim_matches('"'));
            cx.unknown(Code::UnknownValue, node.span, message, said, words.iter().copied());
            None
        }
        (Err(expected), _) => {
            cx.wrong_type(node, &format!("{expected} for `{}`", field.name));
            None
        }
    }
}

/// Text that was meant to be read as something else, by someone in a hurry.
fn plain(text: &str, node: &Node, cx: Cx) -> bool {
    if text.contains("{{") {
        let span = cx.sources.within(node.span, "{{");
        cx.add(
            Diagnostic::new(Code::BadHole, span, "a rule has no holes")
                .help("it reads with a selector, `$.name`; holes stand in what is sent"),
        );
        return false;
    }
    let name = text.strip_prefix(['$', '@', '^']).filter(|n| n.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    if let Some(name) = name {
        let sign = &text[..1];
        cx.add(
            Diagnostic::new(Code::BadSelector, node.span, format!("`{text}` is not a selector"))
                .label(format!("did you mean `{sign}.{name}`?"))
                .help("where it is meant as it is, write `{ value: … }`"),
        );
        return false;
    }
    true
}

/// What a table gives must be words of ours; `none` stands for nothing.
fn check_values(table: &Table, words: &'static [&'static str], field: &Field, cx: Cx) {
    for (value, span) in table.values() {
        let word = scalar_text(value).unwrap_or_default();
        if !value.is_null() && word != "none" && !words.contains(&word.as_str()) {
            let message = format!("the table `{}` gives `{word}`, which is no `{}`", table.name, field.name);
            let known = words.iter().copied().chain(["none"]);
            cx.unknown(Code::UnknownValue, span, message, &word, known);
        }
    }
}
