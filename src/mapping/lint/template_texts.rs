//! The texts of a tree of YAML, and the names that stand in them.

use crate::mapping::language::expression_tokens;
use crate::mapping::language::expression_tokens::{CallKind, Token};
use crate::mapping::source::yaml::{Kind, Node};

/// Every text of a tree, with the key that it stands below.
pub(super) fn walk<'n>(node: &'n Node, key: &'n str, see: &mut dyn FnMut(&'n str, &'n str)) {
    match &node.kind {
        Kind::Text(text) => see(key, text),
        Kind::List(items) => items.iter().for_each(|item| walk(item, key, see)),
        Kind::Map(entries) => entries.iter().for_each(|entry| walk(&entry.value, &entry.key, see)),
        Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => {}
    }
}

/// The tables that a text looks words up in: `x | table('status')`.
pub(super) fn tables(text: &str) -> Vec<&str> {
    if !text.contains("table") {
        return Vec::new();
    }
    let tokens = expression_tokens::tokens(text);
    let calls = expression_tokens::calls(&tokens);
    let named = calls.iter().filter(|c| c.kind == CallKind::Filter && c.name == "table");
    named.filter_map(|c| c.argument.map(|(_, name)| name)).collect()
}

/// Every dotted name of a text; also those that only look like one.
pub(super) fn paths(text: &str) -> Vec<&str> {
    let words = expression_tokens::tokens(text).into_iter().filter_map(|(_, token)| match token {
        Token::Word(word) => Some(word),
        Token::Text(_) | Token::Sign(_) => None,
    });
    words.collect()
}
