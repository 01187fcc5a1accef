//! Renders a diagnostic in the style of rustc.

use super::{Code, Diagnostic, Severity, Source, Sources, Span};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::borrow::Cow;
use std::collections::HashMap;

pub fn render_one(diagnostic: &Diagnostic, sources: &Sources, colour: bool) -> String {
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.as_str());
    let mut group = match sources.get(diagnostic.span.file) {
        // A diagnostic about the set as a whole has no file.
        None => Group::with_title(title),
        Some(source) => match visible_span(source, diagnostic.span) {
            None => title.element(Origin::path(source.shown.as_str())),
            Some(span) => {
                let mut annotation = AnnotationKind::Primary.span(span.start as usize..span.end as usize);
                if !diagnostic.label.is_empty() {
                    annotation = annotation.label(diagnostic.label.as_str());
                }
                let text = match diagnostic.code {
                    Code::InlineSecret => Cow::Owned(mask_span(&source.text, diagnostic.span)),
                    _ => Cow::Borrowed(&*source.text),
                };
                title.element(
                    Snippet::source(redact_secrets(source, text)).path(source.shown.as_str()).annotation(annotation),
                )
            }
        },
    };
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group]).trim_end_matches('\n').to_owned()
}

/// A report that a person can read, and that fits in a log.
const MAX_DIAGNOSTICS_PER_FILE: usize = 20;
const MAX_ONE_BYTES: usize = 8 << 10;
const MAX_REPORT_BYTES: usize = 64 << 10;

/// Renders all diagnostics, up to a limit for each file and for the whole report.
pub fn render_all(diagnostics: &[Diagnostic], sources: &Sources, colour: bool) -> String {
    let mut reports = Vec::new();
    let (mut bytes, mut left_out) = (0, 0);
    let mut of_files = HashMap::new();
    for diagnostic in diagnostics {
        let of_file: &mut usize = of_files.entry(diagnostic.span.file).or_default();
        *of_file += 1;
        if *of_file > MAX_DIAGNOSTICS_PER_FILE || bytes > MAX_REPORT_BYTES {
            left_out += 1;
            continue;
        }
        let mut report = render_one(diagnostic, sources, colour);
        // A line of the file may be very long.
        if report.len() > MAX_ONE_BYTES {
            report.truncate(char_start(&report, MAX_ONE_BYTES));
            report.push_str(if colour { "…\x1b[0m" } else { "…" });
        }
        report.push('\n');
        bytes += report.len();
        reports.push(report);
    }
    if left_out > 0 {
        reports.push(format!("… and {left_out} more\n"));
    }
    reports.join("\n")
}

/// The span that the carets underline: at most one line, because a span of many lines would hide the message. `None`
/// for a diagnostic about the file as a whole.
pub fn visible_span(source: &Source, span: Span) -> Option<Span> {
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

fn mask_span(text: &str, span: Span) -> String {
    let (start, end) = (char_start(text, span.start as usize), char_start(text, span.end as usize));
    [&text[..start], &asterisks(&text[start..end]), &text[end..]].concat()
}

/// Keeps the length in bytes, so that the carets stay in place.
fn asterisks(text: &str) -> String {
    text.bytes().map(|b| if b == b'\n' { '\n' } else { '*' }).collect()
}

/// A YAML key that ends in one of these words has a secret as its value.
const SECRET_KEY_SUFFIXES: &[&str] = &["key", "token", "secret", "password"];

/// A secret in a file must not be copied into a log, whatever the diagnostic is about. Masks the userinfo of URLs and,
/// in gateway.yaml, plain text after a key that is named like a secret.
fn redact_secrets<'t>(source: &Source, text: Cow<'t, str>) -> Cow<'t, str> {
    let gateway = source.name == "gateway.yaml";
    let mut secrets: Vec<(usize, usize)> = Vec::new();
    for (at, _) in text.match_indices("://") {
        let rest = &text[at + 3..];
        let end = rest.find(|c: char| c.is_whitespace() || "/\"'".contains(c)).unwrap_or(rest.len());
        secrets.extend(rest[..end].rfind('@').map(|to| (at + 3, at + 3 + to)));
    }
    for (at, _) in text.match_indices(':').filter(|_| gateway) {
        let word = text[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').next().unwrap_or_default();
        let value = text[at + 1..].trim_start_matches(' ');
        let from = text.len() - value.len();
        // A map or a `$` reference names where the secret is kept and is not masked.
        let end = value.find(['\n', ',', '}', '#']).unwrap_or(value.len());
        let value = value[..end].trim_end();
        if SECRET_KEY_SUFFIXES.iter().any(|w| word.to_lowercase().ends_with(w)) && !value.starts_with(['{', '$']) {
            secrets.push((from, from + value.len()));
        }
    }
    if secrets.is_empty() {
        return text;
    }
    let mut text = text.into_owned();
    for (from, to) in secrets {
        text.replace_range(from..to, &asterisks(&text[from..to]));
    }
    Cow::Owned(text)
}

/// Rounds a byte offset down to a character boundary.
fn char_start(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
#[path = "../../tests/unit/diagnostics_render.rs"]
mod tests;
