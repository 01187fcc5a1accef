//! Holes: `{{ … }}` is found by our own scanner, and only what stands between goes to the expression engine. So
//! quoting cannot break a frame, and no text of a user is ever a template.

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::source::field_reader::Cx;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Template {
    /// No hole.
    Plain,
    /// The whole scalar is one hole: it keeps the type of its expression.
    Whole { hole: Hole, optional: bool },
    /// Text with holes in it: it makes text.
    Mixed(Vec<Segment>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    Text(String),
    Hole(Hole),
}

/// An expression, and where its hole stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hole {
    pub expression: String,
    pub span: Span,
}

impl Template {
    /// `span` is the scalar that holds the text.
    pub fn parse(text: &str, span: Span, cx: Cx) -> Option<Template> {
        let places = Places::of(span, cx);
        let mut segments = Vec::new();
        let mut optional = None;
        let mut end = 0;
        for (n, open) in Openings::of(text).enumerate() {
            let here = places.hole(n);
            let Some(close) = open.close else {
                cx.add(
                    Diagnostic::new(Code::BadHole, here, "this hole is not closed")
                        .help("a hole is `{{ expression }}`; braces inside quotes do not count"),
                );
                return None;
            };
            if open.at > end {
                segments.push(Segment::Text(text[end..open.at].to_owned()));
            }
            let mut expression = text[open.at + 2..close].trim();
            if let Some(stripped) = expression.strip_prefix('?') {
                optional = Some(here);
                expression = stripped.trim();
            }
            if expression.is_empty() {
                cx.error(Code::BadHole, here, "this hole is empty");
                return None;
            }
            segments.push(Segment::Hole(Hole { expression: expression.to_owned(), span: here }));
            end = close + 2;
        }
        if end < text.len() {
            segments.push(Segment::Text(text[end..].to_owned()));
        }
        let statement = |s: &Segment| matches!(s, Segment::Text(t) if t.contains("{%"));
        if segments.iter().any(statement) {
            cx.add(
                Diagnostic::new(Code::BadHole, cx.sources.within(span, "{%"), "there are no statements, only holes")
                    .help("`$if`, `$switch` and `$each` choose and repeat; `{{ a if x else b }}` chooses inside text"),
            );
            return None;
        }
        if matches!(segments.first(), Some(Segment::Text(t)) if t.starts_with(['“', '”', '„', '‘', '’'])) {
            let message = "typographic quotes are part of the text";
            cx.add(Diagnostic::new(Code::BadHole, span, message).help("YAML quotes with `\"` and `'`"));
            return None;
        }
        match (segments.as_slice(), optional) {
            ([] | [Segment::Text(_)], _) => Some(Template::Plain),
            ([Segment::Hole(hole)], optional) => {
                Some(Template::Whole { hole: hole.clone(), optional: optional.is_some() })
            }
            (_, Some(here)) => {
                cx.add(
                    Diagnostic::new(Code::BadHole, here, "an optional hole `{{? … }}` cannot stand inside text")
                        .help("it leaves its key out when the value is null, so it must be the whole value"),
                );
                None
            }
            (_, None) => Some(Template::Mixed(segments)),
        }
    }
}

/// `{{` and, where it is closed, its `}}`.
struct Opening {
    at: usize,
    close: Option<usize>,
}

struct Openings<'t> {
    text: &'t str,
    from: usize,
}

impl Openings<'_> {
    fn of(text: &str) -> Openings<'_> {
        Openings { text, from: 0 }
    }
}

impl Iterator for Openings<'_> {
    type Item = Opening;

    fn next(&mut self) -> Option<Opening> {
        let at = self.from + self.text.get(self.from..)?.find("{{")?;
        let close = closing(&self.text[at + 2..]).map(|n| at + 2 + n);
        self.from = close.map_or(self.text.len(), |c| c + 2);
        Some(Opening { at, close })
    }
}

/// Where the holes of a scalar stand in the file. What the YAML wrote with escapes, or folded, is longer or shorter
/// there than the text that it means; the holes are as many.
struct Places {
    scalar: Span,
    holes: Vec<Span>,
}

impl Places {
    fn of(scalar: Span, cx: Cx) -> Places {
        let written = cx.sources.text(scalar);
        let start = scalar.start as usize;
        let span = |o: Opening| {
            // A hole that is not closed reaches as far as its line, without the quote behind it.
            let line =
                written[o.at..].lines().next().map_or(written.len(), |l| o.at + l.trim_end_matches(['"', '\'']).len());
            Span::new(scalar.file, start + o.at, start + o.close.map_or(line, |c| c + 2))
        };
        Places { scalar, holes: Openings::of(written).map(span).collect() }
    }

    fn hole(&self, n: usize) -> Span {
        self.holes.get(n).copied().unwrap_or(self.scalar)
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
