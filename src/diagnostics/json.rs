//! A diagnostic for programs: the same facts as in its picture, each under its name. docs/check.md describes them.

use super::{Diagnostic, Place, Sources, visible};
use reframe_json::Tree;

pub fn told(diagnostic: &Diagnostic, sources: &Sources) -> Tree {
    let text = |text: &str| if text.is_empty() { Tree::Null } else { Tree::from(text) };
    let source = sources.get(diagnostic.span.file);
    let span = source.and_then(|source| visible(source, diagnostic.span));
    let (start, end) = (span.map(|s| sources.place(s)), span.map(|s| sources.end(s)));
    let number = |n: Option<usize>| n.map_or(Tree::Null, |n| Tree::from(n as i64));
    let line = |place: Option<Place>| number(place.map(|p| p.line));
    let column = |place: Option<Place>| number(place.map(|p| p.column));
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
