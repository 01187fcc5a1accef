//! A profile's patch on a dialect: maps merge, `$remove` deletes a key, null is an ordinary value, a list is
//! replaced whole, and so is a map below `$replace`. A key that is not there yet is added only when the patch says so (`$add`, `$before`), so that a
//! slip of the finger is found.

use super::fields::Cx;
use super::yaml::{Entry, Kind, Node};
use crate::diag::Code;

pub fn apply(base: &mut Node, patch: &Node, cx: Cx) {
    if let Some(whole) = patch.get("$replace") {
        *base = whole.clone();
        return;
    }
    let (Kind::Map(entries), Kind::Map(changes)) = (&mut base.kind, &patch.kind) else {
        *base = patch.clone();
        return;
    };
    for change in changes {
        let at = entries.iter().position(|e| e.key == change.key);
        match (at, &change.value.kind) {
            (Some(at), Kind::Text(text)) if text == "$remove" => {
                entries.remove(at);
            }
            (Some(at), _) => apply(&mut entries[at].value, &change.value, cx),
            (None, _) => add(entries, change, cx),
        }
    }
}

fn add(entries: &mut Vec<Entry>, change: &Entry, cx: Cx) {
    let unknown = |name: &str, span, entries: &[Entry]| {
        let message = format!("the patch speaks of `{name}`, which is not there");
        cx.unknown(Code::BadPatch, span, message, name, entries.iter().map(|e| e.key.as_str()));
    };
    if let Some(value) = change.value.get("$add") {
        entries.push(Entry { value: value.clone(), ..change.clone() });
        return;
    }
    let (Some(Kind::Text(before)), Kind::Map(inner)) =
        (change.value.get("$before").map(|n| &n.kind), &change.value.kind)
    else {
        unknown(&change.key, change.key_span, entries);
        return;
    };
    match entries.iter().position(|e| e.key == *before) {
        Some(at) => {
            let inner = inner.iter().filter(|e| e.key != "$before").cloned().collect();
            let value = Node { span: change.value.span, kind: Kind::Map(inner) };
            entries.insert(at, Entry { value, ..change.clone() });
        }
        None => unknown(before, change.value.span, entries),
    }
}
