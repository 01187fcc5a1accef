//! A profile's patch on a dialect: maps merge, `$remove` deletes a key, null is an ordinary value, a list is
//! replaced whole, and so is a map below `$replace`. A key that is not there yet is added only when the patch says so
//! (`$add`, `$before`), so that a slip of the finger is found.

use crate::diagnostics::{Code, Diagnostic, Span, did_you_mean, there_is};
use crate::mapping::source::field_reader::Cx;
use crate::mapping::source::yaml::{Entry, Kind, Node};

const REMOVE: &str = "$remove";
/// The words of a patch that are keys.
const WORDS: &[&str] = &["$add", "$before", "$replace"];

/// `name` is the dialect's, for the sentence about what it does not have.
pub fn apply(base: &mut Node, patch: &Node, name: &str, cx: Cx) {
    if !matches!(patch.kind, Kind::Map(_)) {
        let message = format!("a patch on `{name}` must be a map, not {}", patch.noun());
        cx.error(Code::BadPatch, patch.span, message);
        return;
    }
    merge(base, patch, &mut vec![name], cx);
}

/// `path` is where the patch has come to, for a message.
fn merge<'p>(base: &mut Node, patch: &'p Node, path: &mut Vec<&'p str>, cx: Cx) {
    if let Some(whole) = patch.get("$replace") {
        *base = whole.clone();
        return;
    }
    if matches!((&base.kind, &patch.kind), (Kind::List(_), Kind::Map(_))) {
        let message = format!("`{}` is a list, and a list is replaced whole", path.join(" → "));
        cx.add(Diagnostic::new(Code::BadPatch, patch.span, message).help("write all of its entries"));
        return;
    }
    let (Kind::Map(entries), Kind::Map(changes)) = (&mut base.kind, &patch.kind) else {
        *base = patch.clone();
        return;
    };
    for change in changes {
        let at = entries.iter().position(|e| e.key == change.key);
        let removed = is_removal(change, cx);
        match at {
            Some(at) if removed => {
                entries.remove(at);
            }
            Some(at) => {
                // What is put in the place of something else stands where the patch says it.
                if replaces(&entries[at].value, &change.value) {
                    entries[at].key_span = change.key_span;
                }
                path.push(&change.key);
                merge(&mut entries[at].value, &change.value, path, cx);
                path.pop();
            }
            None if removed => missing(&change.key, change.key_span, "there is nothing to remove", entries, path, cx),
            None => add(entries, change, path, cx),
        }
    }
}

/// `$remove`. A slip in it is told, and taken for what it was meant to be.
fn is_removal(change: &Entry, cx: Cx) -> bool {
    let Some(text) = change.value.as_text() else { return false };
    let slip = text != REMOVE && text.starts_with('$') && did_you_mean(text, [REMOVE]).is_some();
    if slip {
        let message = format!("a patch knows no `{text}`");
        let label = format!("did you mean `{REMOVE}`?");
        cx.add(Diagnostic::new(Code::BadPatch, change.value.span, message).label(label));
    }
    slip || text == REMOVE
}

fn replaces(base: &Node, patch: &Node) -> bool {
    patch.get("$replace").is_some() || !matches!((&base.kind, &patch.kind), (Kind::Map(_), Kind::Map(_)))
}

fn add(entries: &mut Vec<Entry>, change: &Entry, path: &[&str], cx: Cx) {
    if let Some(value) = change.value.get("$add") {
        entries.push(Entry { value: value.clone(), ..change.clone() });
        return;
    }
    let (Some(before), Kind::Map(inner)) = (change.value.get("$before"), &change.value.kind) else {
        let how = "a new key says so: `{ $add: … }`, or `$before: KEY` among its own keys";
        missing(&change.key, change.key_span, how, entries, path, cx);
        return;
    };
    let wanted = before.as_text().unwrap_or_default();
    match entries.iter().position(|e| e.key == wanted) {
        Some(at) => {
            let inner = inner.iter().filter(|e| e.key != "$before").cloned().collect();
            let value = Node { span: change.value.span, kind: Kind::Map(inner) };
            entries.insert(at, Entry { value, ..change.clone() });
        }
        None => missing(wanted, before.span, "there is nothing to stand before", entries, path, cx),
    }
}

fn missing(key: &str, span: Span, consequence: &str, entries: &[Entry], path: &[&str], cx: Cx) {
    let known = || entries.iter().map(|e| e.key.as_str());
    let message = format!("`{}` has no `{key}`", path.join(" → "));
    let mut diagnostic = Diagnostic::new(Code::BadPatch, span, message);
    let words: &[&str] = if key.starts_with('$') { WORDS } else { &[] };
    if let Some(near) = did_you_mean(key, known().chain(words.iter().copied())) {
        diagnostic = diagnostic.label(format!("did you mean `{near}`?"));
    }
    cx.add(diagnostic.help(format!("{consequence}; {}", there_is(known()))));
}
