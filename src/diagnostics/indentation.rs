//! A line that should stand below the key before it, and stands beside it: the key is then empty, and the line unknown.
//! That is one mistake, and the words are right; only the spaces are wrong.

use super::{Code, Diagnostic, Sources, Span};

pub fn join(found: Vec<Diagnostic>, sources: &Sources) -> Vec<Diagnostic> {
    let mut joined: Vec<Diagnostic> = Vec::new();
    for diagnostic in found {
        let is_unknown = matches!(diagnostic.code, Code::UnknownKey | Code::UnknownMoment);
        // A slip of the finger is likelier, where there is a word that is near.
        match key_above(&diagnostic, sources).filter(|_| is_unknown && diagnostic.label.is_empty()) {
            Some((key, line)) => {
                joined.retain(|d| {
                    let on_line = sources.place(d.span).line == line && d.span.file == diagnostic.span.file;
                    !(d.code == Code::WrongType && on_line)
                });
                let label = format!("beside `{key}:`, and not below it");
                joined
                    .push(diagnostic.label(label).help(format!("what belongs to `{key}:` is indented deeper than it")));
            }
            None => joined.push(diagnostic),
        }
    }
    joined
}

/// The key on the line before, and the number of that line, if it has nothing behind its colon and begins in the same
/// column.
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
