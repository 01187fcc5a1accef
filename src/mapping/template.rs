//! Holes: `{{ … }}` is found by our own scanner, and only what stands between goes to the expression engine. So
//! quoting cannot break a frame, and no text of a user is ever a template.

use super::fields::Cx;
use crate::diag::{Code, Diagnostic, Span};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Template {
    /// No hole.
    Plain,
    /// The whole scalar is one hole: it keeps the type of its expression.
    Whole { expression: String, optional: bool },
    /// Text with holes in it: it makes text.
    Mixed(Vec<Segment>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    Text(String),
    Hole(String),
}

impl Template {
    pub fn parse(text: &str, span: Span, cx: Cx) -> Option<Template> {
        let mut segments = Vec::new();
        let mut rest = text;
        let mut optional = false;
        while let Some(open) = rest.find("{{") {
            if open > 0 {
                segments.push(Segment::Text(rest[..open].to_owned()));
            }
            let inside = &rest[open + 2..];
            let Some(close) = closing(inside) else {
                cx.add(
                    Diagnostic::new(Code::BadHole, cx.sources.within(span, &rest[open..]), "this hole is not closed")
                        .help("a hole is `{{ expression }}`; braces inside quotes do not count"),
                );
                return None;
            };
            let mut expression = inside[..close].trim();
            if let Some(stripped) = expression.strip_prefix('?') {
                optional = true;
                expression = stripped.trim();
            }
            if expression.is_empty() {
                cx.error(Code::BadHole, span, "this hole is empty");
                return None;
            }
            segments.push(Segment::Hole(expression.to_owned()));
            rest = &inside[close + 2..];
        }
        if !rest.is_empty() {
            segments.push(Segment::Text(rest.to_owned()));
        }
        match segments.as_slice() {
            [] | [Segment::Text(_)] => Some(Template::Plain),
            [Segment::Hole(expression)] => Some(Template::Whole { expression: expression.clone(), optional }),
            _ if optional => {
                cx.add(
                    Diagnostic::new(Code::BadHole, span, "an optional hole `{{? … }}` cannot stand inside text")
                        .help("it leaves its key out when the value is null, so it must be the whole value"),
                );
                None
            }
            _ => Some(Template::Mixed(segments)),
        }
    }
}

/// Where `}}` stands, not counting what is inside quotes.
fn closing(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut quote = None;
    let mut i = 0;
    while i < bytes.len() {
        match (quote, bytes[i]) {
            (Some(_), b'\\') => i += 1,
            (Some(q), b) if b == q => quote = None,
            (Some(_), _) => {}
            (None, b @ (b'\'' | b'"')) => quote = Some(b),
            (None, b'}') if bytes.get(i + 1) == Some(&b'}') => return Some(i),
            (None, _) => {}
        }
        i += 1;
    }
    None
}
