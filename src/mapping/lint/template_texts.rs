//! The texts of a YAML tree, and the names in their expressions.

use crate::mapping::language::expression_tokens;
use crate::mapping::language::expression_tokens::{CallKind, Token};
use crate::mapping::source::yaml::Node;

/// All texts of a tree.
pub(super) fn texts(node: &Node) -> Vec<&str> {
    let mut texts = Vec::new();
    node.visit("", &mut |_, inner| texts.extend(inner.as_text()));
    texts
}

/// The tables that a text uses: `x | table('status')`.
pub(super) fn tables(text: &str) -> Vec<&str> {
    if !text.contains("table") {
        return Vec::new();
    }
    let tokens = expression_tokens::tokens(text);
    let calls = expression_tokens::calls(&tokens);
    let named = calls.iter().filter(|c| c.kind == CallKind::Filter && c.name == "table");
    named.filter_map(|c| c.argument.map(|(_, name)| name)).collect()
}

/// All dotted names of a text, including words that only look like one.
pub(super) fn paths(text: &str) -> Vec<&str> {
    let words = expression_tokens::tokens(text).into_iter().filter_map(|(_, token)| match token {
        Token::Word(word) => Some(word),
        Token::Text(_) | Token::Symbol(_) => None,
    });
    words.collect()
}
