//! The look of a diagnostic: rustc's, which everyone can read.

use super::{Diagnostic, Severity, Sources};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

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
        // About the file as a whole.
        Some(source) if diagnostic.span.end == 0 || source.text.is_empty() => {
            title.element(Origin::path(source.shown.as_str()))
        }
        Some(source) => {
            let (start, end) = visible(&source.text, diagnostic.span.start as usize, diagnostic.span.end as usize);
            let mut annotation = AnnotationKind::Primary.span(start..end);
            if !diagnostic.label.is_empty() {
                annotation = annotation.label(diagnostic.label.as_str());
            }
            title.element(Snippet::source(&*source.text).path(source.shown.as_str()).annotation(annotation))
        }
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

/// Carets under one line at most: a span over many lines would bury the sentence.
fn visible(text: &str, start: usize, end: usize) -> (usize, usize) {
    let start = char_start(text, start);
    let end = char_start(text, end).max(start);
    let line_end = text[start..].find(['\r', '\n']).map_or(text.len(), |n| start + n);
    let end = end.min(line_end).max(start);
    if end == start && start < line_end {
        let next = text[start..].chars().next().map_or(0, char::len_utf8);
        return (start, start + next);
    }
    (start, end)
}

/// A place that was counted in bytes may lie inside a character.
fn char_start(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
