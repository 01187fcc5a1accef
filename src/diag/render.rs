//! The look of a diagnostic: rustc's, which everyone can read.

use super::{Code, Diagnostic, Severity, Source, Sources, Span};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::borrow::Cow;

pub fn render_one(diagnostic: &Diagnostic, sources: &Sources, colour: bool) -> String {
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.as_str());
    let mut group = match sources.get(diagnostic.span.file) {
        // About the set as a whole.
        None => Group::with_title(title),
        Some(source) => match visible(source, diagnostic.span) {
            None => title.element(Origin::path(source.shown.as_str())),
            Some(span) => {
                let mut annotation = AnnotationKind::Primary.span(span.start as usize..span.end as usize);
                if !diagnostic.label.is_empty() {
                    annotation = annotation.label(diagnostic.label.as_str());
                }
                let text = match diagnostic.code {
                    // A key that stands in a file must not stand in a log too.
                    Code::PlainSecret => Cow::Owned(masked(&source.text, diagnostic.span)),
                    _ => Cow::Borrowed(&*source.text),
                };
                title.element(Snippet::source(text).path(source.shown.as_str()).annotation(annotation))
            }
        },
    };
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut text = renderer.render(&[group]);
    while text.ends_with('\n') {
        text.pop();
    }
    text
}

pub fn render_all(diagnostics: &[Diagnostic], sources: &Sources, colour: bool) -> String {
    diagnostics.iter().map(|d| render_one(d, sources, colour) + "\n").collect::<Vec<_>>().join("\n")
}

/// Where the carets stand: under one line at most, for a span over many lines would bury the sentence. Nowhere if it is
/// the file as a whole that is wrong.
pub fn visible(source: &Source, span: Span) -> Option<Span> {
    let text = &*source.text;
    if span.end == 0 || text.is_empty() {
        return None;
    }
    let start = char_start(text, span.start as usize);
    let end = char_start(text, span.end as usize).max(start);
    let line_end = text[start..].find(['\r', '\n']).map_or(text.len(), |n| start + n);
    let end = end.min(line_end).max(start);
    if end == start && start < line_end {
        let next = text[start..].chars().next().map_or(0, char::len_utf8);
        return Some(Span::new(span.file, start, start + next));
    }
    Some(Span::new(span.file, start, end))
}

fn masked(text: &str, span: Span) -> String {
    let (start, end) = (char_start(text, span.start as usize), char_start(text, span.end as usize));
    let hidden: String = text[start..end].chars().map(|c| if c == '\n' { c } else { '*' }).collect();
    [&text[..start], &hidden, &text[end..]].concat()
}

/// A place that was counted in bytes may lie inside a character.
fn char_start(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
