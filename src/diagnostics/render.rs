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
                    Code::PlainSecret => Cow::Owned(masked(&source.text, diagnostic.span)),
                    _ => Cow::Borrowed(&*source.text),
                };
                title
                    .element(Snippet::source(discreet(source, text)).path(source.shown.as_str()).annotation(annotation))
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
    [&text[..start], &stars(&text[start..end]), &text[end..]].concat()
}

/// Nothing moves: as many bytes as there were, for the carets.
fn stars(text: &str) -> String {
    text.bytes().map(|b| if b == b'\n' { '\n' } else { '*' }).collect()
}

/// Words that stand before a secret, at the end of a key.
const BEFORE_SECRETS: &[&str] = &["key", "token", "secret", "password"];

/// A key that stands in a file must not stand in a log too, whatever else is wrong with its line: what stands before the `@`
/// of a URL, and in gateway.yaml plain text behind a key that is called like one.
fn discreet<'t>(source: &Source, text: Cow<'t, str>) -> Cow<'t, str> {
    let gateway = source.name == "gateway.yaml";
    let mut hidden: Vec<(usize, usize)> = Vec::new();
    for (at, _) in text.match_indices("://") {
        let rest = &text[at + 3..];
        let end = rest.find(|c: char| c.is_whitespace() || "/\"'".contains(c)).unwrap_or(rest.len());
        hidden.extend(rest[..end].rfind('@').map(|to| (at + 3, at + 3 + to)));
    }
    for (at, _) in text.match_indices(':').filter(|_| gateway) {
        let word = text[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').next().unwrap_or_default();
        let value = text[at + 1..].trim_start_matches(' ');
        let from = text.len() - value.len();
        // A word of ours is short; a map says where the secret is.
        let end = value.find(['\n', ',', '}', '#']).unwrap_or(value.len());
        let value = value[..end].trim_end();
        if BEFORE_SECRETS.iter().any(|w| word.to_lowercase().ends_with(w)) && !value.starts_with(['{', '$']) {
            hidden.push((from, from + value.len()));
        }
    }
    if hidden.is_empty() {
        return text;
    }
    let mut text = text.into_owned();
    for (from, to) in hidden {
        text.replace_range(from..to, &stars(&text[from..to]));
    }
    Cow::Owned(text)
}

/// A place that was counted in bytes may lie inside a character.
fn char_start(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
