//! Detects a missing indentation: a line that belongs below the key before it but has the same column. YAML then reads
//! that key as empty and the line as a key of its own, which would give two diagnostics for one mistake.

use super::{Code, Diagnostic, Sources, Span};

pub fn merge_consequences(found: Vec<Diagnostic>, sources: &Sources) -> Vec<Diagnostic> {
    let mut merged: Vec<Diagnostic> = Vec::new();
    for diagnostic in found {
        let is_unknown = matches!(diagnostic.code, Code::UnknownKey | Code::UnknownMoment);
        // A label is a did-you-mean: a misspelled key is then the likelier mistake.
        match key_above(&diagnostic, sources).filter(|_| is_unknown && diagnostic.label.is_empty()) {
            Some((key, line)) => {
                merged.retain(|d| {
                    let on_line = sources.location(d.span).line == line && d.span.file == diagnostic.span.file;
                    !(d.code == Code::WrongType && on_line)
                });
                let label = format!("on the same level as `{key}:`, not below it");
                merged.push(diagnostic.label(label).help(format!("to put it below `{key}:`, indent it deeper")));
            }
            None => merged.push(diagnostic),
        }
    }
    merged
}

/// The key on the previous line and its line number, if that key has no value and begins in the same column.
fn key_above<'s>(diagnostic: &Diagnostic, sources: &'s Sources) -> Option<(&'s str, usize)> {
    let Span { file, start, .. } = diagnostic.span;
    let text = &*sources.get(file)?.text;
    let (above, indent) = match text.get(..start as usize)?.rsplit_once('\n') {
        Some((above, indent)) if indent.chars().all(|c| c == ' ') => (above, indent.len()),
        _ => return None,
    };
    let (at, line) =
        above.lines().enumerate().filter(|(_, l)| !matches!(l.trim_start().chars().next(), None | Some('#'))).last()?;
    let key = line.split(" #").next()?.trim_end().strip_suffix(':')?;
    let column = key.len() - key.trim_start().len();
    (column == indent).then_some((key.trim_start(), at + 1))
}
