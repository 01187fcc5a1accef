//! Placeholders in text. A scanner finds `{{ … }}`, and only the expression inside is passed to the template engine. So
//! quoting cannot break a frame, and text from a request is never evaluated as a template.

use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::source::field_reader::LoadContext;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Template {
    /// No placeholder.
    Plain,
    /// The whole scalar is one placeholder: it keeps the type of its expression.
    Whole { placeholder: Placeholder, optional: bool },
    /// Text with placeholders: the result is text.
    Mixed(Vec<TemplateSegment>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateSegment {
    Text(String),
    Placeholder(Placeholder),
}

/// An expression, and the span of its placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder {
    pub expression: String,
    pub span: Span,
}

impl Template {
    /// `span` is the span of the scalar.
    pub fn parse(text: &str, span: Span, cx: LoadContext) -> Option<Template> {
        let spans = PlaceholderSpans::of(span, cx);
        let mut segments = Vec::new();
        let mut optional = None;
        let mut end = 0;
        for (n, open) in Openings::of(text).enumerate() {
            let span = spans.placeholder(n);
            let Some(close) = open.close else {
                cx.add(
                    Diagnostic::new(Code::BadPlaceholder, span, "this placeholder is not closed")
                        .help("a placeholder is `{{ expression }}`; braces inside quotes do not count"),
                );
                return None;
            };
            if open.at > end {
                segments.push(TemplateSegment::Text(text[end..open.at].to_owned()));
            }
            let mut expression = text[open.at + 2..close].trim();
            if let Some(stripped) = expression.strip_prefix('?') {
                optional = Some(span);
                expression = stripped.trim();
            }
            if expression.is_empty() {
                cx.error(Code::BadPlaceholder, span, "this placeholder is empty");
                return None;
            }
            segments.push(TemplateSegment::Placeholder(Placeholder { expression: expression.to_owned(), span }));
            end = close + 2;
        }
        if end < text.len() {
            segments.push(TemplateSegment::Text(text[end..].to_owned()));
        }
        let statement = |s: &TemplateSegment| matches!(s, TemplateSegment::Text(t) if t.contains("{%"));
        if segments.iter().any(statement) {
            cx.add(
                Diagnostic::new(
                    Code::BadPlaceholder,
                    cx.sources.within(span, "{%"),
                    "statements are not supported, only placeholders",
                )
                .help("use `$if`, `$switch` and `$each`, or `{{ a if x else b }}` inside text"),
            );
            return None;
        }
        if matches!(segments.first(), Some(TemplateSegment::Text(t)) if t.starts_with(['“', '”', '„', '‘', '’']))
        {
            let message = "typographic quotes are part of the text";
            cx.add(Diagnostic::new(Code::BadPlaceholder, span, message).help("use `\"` or `'`"));
            return None;
        }
        match (segments.as_slice(), optional) {
            ([] | [TemplateSegment::Text(_)], _) => Some(Template::Plain),
            ([TemplateSegment::Placeholder(placeholder)], optional) => {
                Some(Template::Whole { placeholder: placeholder.clone(), optional: optional.is_some() })
            }
            (_, Some(span)) => {
                cx.add(
                    Diagnostic::new(
                        Code::BadPlaceholder,
                        span,
                        "an optional placeholder `{{? … }}` cannot be part of a text",
                    )
                    .help("it omits its key when the value is null, so it must be the whole value"),
                );
                None
            }
            (_, None) => Some(Template::Mixed(segments)),
        }
    }
}

/// The offsets of `{{` and of its `}}`, if it is closed.
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

/// The spans of the placeholders of a scalar. With YAML escapes or folding, offsets in the file differ from offsets in
/// the parsed text, but the number of placeholders is the same.
struct PlaceholderSpans {
    scalar: Span,
    placeholders: Vec<Span>,
}

impl PlaceholderSpans {
    fn of(scalar: Span, cx: LoadContext) -> PlaceholderSpans {
        let written = cx.sources.text(scalar);
        let start = scalar.start as usize;
        let span = |o: Opening| {
            // A placeholder that is not closed extends to the end of its line, without the closing quote.
            let line =
                written[o.at..].lines().next().map_or(written.len(), |l| o.at + l.trim_end_matches(['"', '\'']).len());
            Span::new(scalar.file, start + o.at, start + o.close.map_or(line, |c| c + 2))
        };
        PlaceholderSpans { scalar, placeholders: Openings::of(written).map(span).collect() }
    }

    fn placeholder(&self, n: usize) -> Span {
        self.placeholders.get(n).copied().unwrap_or(self.scalar)
    }
}

/// The offset of `}}`, ignoring text in quotes.
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
