//! Patches: changes to a mapping, written as a tree of the same shape. Maps are merged, and so are lists with elements
//! that have a `name:`; `$remove` deletes, null is an ordinary value, other lists and what is below `$replace` are
//! replaced whole. A new key needs `$add` or `$before`, so that a typo in a key is found.

use crate::diagnostics::{Code, Diagnostic, Span, describe_known, did_you_mean};
use crate::mapping::source::field_reader::LoadContext;
use crate::mapping::source::yaml::{Entry, Node, YamlKind};

pub(super) const REMOVE: &str = "$remove";
const ADD: &str = "$add";
const BEFORE: &str = "$before";
pub(super) const REPLACE: &str = "$replace";
/// The directives of a patch that are keys.
const DIRECTIVES: &[&str] = &[ADD, BEFORE, REPLACE];
/// The key that identifies an element of a list.
const NAME: &str = "name";

/// What the changes of a patch apply to, for messages.
#[derive(Clone, Copy)]
struct Patched<'p, 'c> {
    /// The keys that lead to it, from the name of the file.
    path: &'p [&'p str],
    cx: LoadContext<'c>,
}

/// Applies a patch. `name` is the name of what is patched, for messages.
pub(super) fn apply(base: &mut Node, patch: &Node, name: &str, cx: LoadContext) {
    if !matches!(patch.kind, YamlKind::Map(_)) {
        let message = format!("a patch on `{name}` must be a map, not {}", patch.type_name());
        cx.error(Code::BadPatch, patch.span, message);
        return;
    }
    merge(base, patch, Patched { path: &[name], cx });
}

fn merge(base: &mut Node, patch: &Node, at: Patched) {
    if let Some(whole) = patch.get(REPLACE) {
        *base = whole.clone();
        return;
    }
    match (&mut base.kind, &patch.kind) {
        (YamlKind::Map(entries), YamlKind::Map(changes)) => merge_entries(entries, changes, at),
        (YamlKind::List(items), YamlKind::Map(changes)) => merge_list(items, changes, patch.span, at),
        _ => *base = patch.clone(),
    }
}

/// Merges changes into a list, as into a map from the `name:` of each element.
fn merge_list(items: &mut Vec<Node>, changes: &[Entry], span: Span, at: Patched) {
    if !items.iter().any(|item| name_of(item).is_some()) {
        let message = format!("`{}` is a list, and a list can only be replaced whole", at.path.join(" → "));
        at.cx.add(Diagnostic::new(Code::BadPatch, span, message).help("write all of its items"));
        return;
    }
    for change in changes {
        let mut found = items.iter().filter(|item| name_of(item) == Some(change.key.as_str()));
        if let (Some(first), Some(second)) = (found.next(), found.next()) {
            let message = format!("`{}` has several elements called `{}`", at.path.join(" → "), change.key);
            let places = format!("{} and {}", at.cx.sources.show(first.span), at.cx.sources.show(second.span));
            let help = format!("give each a name of its own: {places}");
            at.cx.add(Diagnostic::new(Code::BadPatch, change.key_span, message).help(help));
            return;
        }
    }
    let named =
        |item: Node| Entry { key: name_of(&item).unwrap_or_default().to_owned(), key_span: item.span, value: item };
    let mut entries: Vec<Entry> = std::mem::take(items).into_iter().map(named).collect();
    merge_entries(&mut entries, changes, at);
    items.extend(entries.into_iter().map(with_name));
}

fn name_of(item: &Node) -> Option<&str> {
    item.get(NAME)?.as_text()
}

/// The element of a list; one that a patch added has its key as its name.
fn with_name(entry: Entry) -> Node {
    let mut item = entry.value;
    if let YamlKind::Map(inner) = &mut item.kind
        && !entry.key.is_empty()
        && !inner.iter().any(|e| e.key == NAME)
    {
        let name = Node { span: entry.key_span, kind: YamlKind::Text(entry.key) };
        inner.insert(0, Entry { key: NAME.to_owned(), key_span: entry.key_span, value: name });
    }
    item
}

fn merge_entries(entries: &mut Vec<Entry>, changes: &[Entry], at: Patched) {
    for change in changes {
        let found = entries.iter().position(|e| e.key == change.key);
        let removed = is_removal(change, at.cx);
        match found {
            Some(found) if removed => {
                entries.remove(found);
            }
            Some(found) if adds(&change.value) => {
                let message = format!("`{}` has `{}` already", at.path.join(" → "), change.key);
                let first = at.cx.sources.show(entries[found].key_span);
                let help = format!("it is at {first}; to change it, write the new value alone");
                at.cx.add(Diagnostic::new(Code::BadPatch, change.key_span, message).help(help));
            }
            Some(found) => {
                // The source of a replaced value is the patch.
                if replaces(&entries[found].value, &change.value) {
                    entries[found].key_span = change.key_span;
                }
                let path: Vec<&str> = at.path.iter().copied().chain([change.key.as_str()]).collect();
                merge(&mut entries[found].value, &change.value, Patched { path: &path, ..at });
            }
            None if removed => missing(&change.key, change.key_span, "there is nothing to remove", entries, at),
            None => add(entries, change, at),
        }
    }
}

/// Whether the value is `$remove`. A typo in it is reported and treated as `$remove`.
pub(super) fn is_removal(change: &Entry, cx: LoadContext) -> bool {
    let Some(text) = change.value.as_text() else { return false };
    let is_typo = text != REMOVE && text.starts_with('$') && did_you_mean(text, [REMOVE]).is_some();
    if is_typo {
        let message = format!("unknown patch directive `{text}`");
        let label = format!("did you mean `{REMOVE}`?");
        cx.add(Diagnostic::new(Code::BadPatch, change.value.span, message).label(label));
    }
    is_typo || text == REMOVE
}

/// Whether a change adds a key.
fn adds(change: &Node) -> bool {
    [ADD, BEFORE].iter().any(|directive| change.get(directive).is_some())
}

fn replaces(base: &Node, patch: &Node) -> bool {
    let merged = matches!((&base.kind, &patch.kind), (YamlKind::Map(_) | YamlKind::List(_), YamlKind::Map(_)));
    patch.get(REPLACE).is_some() || !merged
}

fn add(entries: &mut Vec<Entry>, change: &Entry, at: Patched) {
    if let Some(value) = change.value.get(ADD) {
        entries.push(Entry { value: value.clone(), ..change.clone() });
        return;
    }
    let (Some(before), YamlKind::Map(inner)) = (change.value.get(BEFORE), &change.value.kind) else {
        let help = "to add a new key, write `{ $add: … }`, or `$before: KEY` among its keys";
        missing(&change.key, change.key_span, help, entries, at);
        return;
    };
    let wanted = before.as_text().unwrap_or_default();
    match entries.iter().position(|e| e.key == wanted) {
        Some(found) => {
            let inner = inner.iter().filter(|e| e.key != BEFORE).cloned().collect();
            let value = Node { span: change.value.span, kind: YamlKind::Map(inner) };
            entries.insert(found, Entry { value, ..change.clone() });
        }
        None => missing(wanted, before.span, "`$before:` needs an existing key", entries, at),
    }
}

fn missing(key: &str, span: Span, consequence: &str, entries: &[Entry], at: Patched) {
    let known = || entries.iter().map(|e| e.key.as_str()).filter(|key| !key.is_empty());
    let message = format!("`{}` has no `{key}`", at.path.join(" → "));
    let mut diagnostic = Diagnostic::new(Code::BadPatch, span, message);
    let directives: &[&str] = if key.starts_with('$') { DIRECTIVES } else { &[] };
    if let Some(near) = did_you_mean(key, known().chain(directives.iter().copied())) {
        diagnostic = diagnostic.label(format!("did you mean `{near}`?"));
    }
    at.cx.add(diagnostic.help(format!("{consequence}; {}", describe_known(known()))));
}
