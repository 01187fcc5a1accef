//! A diagnostic as JSON. docs/check.md documents the members.

use super::{Diagnostic, SourceLocation, Sources, visible_span};
use reframe_json::Tree;

pub fn diagnostic_json(diagnostic: &Diagnostic, sources: &Sources) -> Tree {
    let text = |text: &str| if text.is_empty() { Tree::Null } else { Tree::from(text) };
    let source = sources.get(diagnostic.span.file);
    let span = source.and_then(|source| visible_span(source, diagnostic.span));
    let (start, end) = (span.map(|s| sources.location(s)), span.map(|s| sources.end_location(s)));
    let number = |n: Option<usize>| n.map_or(Tree::Null, |n| Tree::from(n as i64));
    let line = |at: Option<SourceLocation>| number(at.map(|l| l.line));
    let column = |at: Option<SourceLocation>| number(at.map(|l| l.column));
    Tree::map([
        ("code", Tree::from(diagnostic.code.as_str())),
        ("severity", Tree::from(diagnostic.severity().as_str())),
        ("message", Tree::from(diagnostic.message.as_str())),
        ("label", text(&diagnostic.label)),
        ("help", text(diagnostic.help.as_deref().unwrap_or_default())),
        ("file", source.map_or(Tree::Null, |s| Tree::from(s.shown.as_str()))),
        ("line", line(start)),
        ("column", column(start)),
        ("end_line", line(end)),
        ("end_column", column(end)),
    ])
}
