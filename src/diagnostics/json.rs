//! A diagnostic as JSON. docs/check.md documents the members.

use super::{Diagnostic, Sources, visible_span};
use serde_json::{Value, json};

pub fn diagnostic_json(diagnostic: &Diagnostic, sources: &Sources) -> Value {
    let source = sources.get(diagnostic.span.file);
    let span = source.and_then(|source| visible_span(source, diagnostic.span));
    let (start, end) = (span.map(|s| sources.location(s)), span.map(|s| sources.end_location(s)));
    json!({
        "code": diagnostic.code.as_str(),
        "severity": diagnostic.severity().as_str(),
        "message": diagnostic.message,
        "label": Some(&diagnostic.label).filter(|label| !label.is_empty()),
        "help": diagnostic.help.as_ref().filter(|help| !help.is_empty()),
        "file": source.map(|s| &s.shown),
        "line": start.map(|l| l.line),
        "column": start.map(|l| l.column),
        "end_line": end.map(|l| l.line),
        "end_column": end.map(|l| l.column),
    })
}
