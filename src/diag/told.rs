//! A diagnostic for machines: the same facts as in its picture, each under its name.

use super::{Diagnostic, Severity, Sources};
use reframe_frame::Tree;

pub fn told(diagnostic: &Diagnostic, sources: &Sources) -> Tree {
    let text = |text: &str| if text.is_empty() { Tree::Null } else { Tree::from(text) };
    let severity = match diagnostic.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let source = sources.get(diagnostic.span.file);
    // What is wrong with a file as a whole stands in none of its lines.
    let place =
        source.filter(|s| diagnostic.span.end > 0 && !s.text.is_empty()).map(|_| sources.place(diagnostic.span));
    let number = |n: Option<usize>| n.map_or(Tree::Null, |n| Tree::from(n as i64));
    Tree::map([
        ("code", Tree::from(diagnostic.code.as_str())),
        ("severity", Tree::from(severity)),
        ("message", Tree::from(diagnostic.message.as_str())),
        ("file", source.map_or(Tree::Null, |s| Tree::from(s.shown.as_str()))),
        ("line", number(place.map(|p| p.line))),
        ("column", number(place.map(|p| p.column))),
        ("label", text(&diagnostic.label)),
        ("help", text(diagnostic.help.as_deref().unwrap_or_default())),
    ])
}
