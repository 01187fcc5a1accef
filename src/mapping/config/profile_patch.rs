//! A profile's patch of a dialect: maps are merged, `$remove` deletes a key, null is an ordinary value, lists and maps
//! below `$replace` are replaced whole. A new key needs `$add` or `$before`, so that a typo in a key is found.

use super::profile::Profile;
use crate::diagnostics::{Code, Diagnostic, Span, describe_known, did_you_mean};
use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use std::sync::Arc;

/// A dialect file with the patch of a profile applied: what the compiler, the lints and the search for the source of a
/// value read. The span of each node refers to the file that contains it.
#[derive(Debug)]
pub struct PatchedDialect {
    pub dialect: String,
    pub profile: Option<String>,
    /// The file without the patch.
    pub base: Arc<Node>,
    /// The same as `base` if the profile has no patch for the dialect.
    pub node: Arc<Node>,
    /// The entry of the dialect below `patch:`.
    pub patch: Option<Entry>,
    /// Below `rename_fields:`.
    pub renames: Vec<Entry>,
}

const REMOVE: &str = "$remove";
/// The directives of a patch that are keys.
const DIRECTIVES: &[&str] = &["$add", "$before", "$replace"];

/// Every dialect, without a profile and with each. A dialect without a name is reported and left out.
pub fn patched_dialects<'n>(
    dialects: impl Iterator<Item = &'n Arc<Node>>,
    profiles: &[Profile],
    cx: LoadContext,
) -> Vec<PatchedDialect> {
    let mut patched = Vec::new();
    for base in dialects {
        let Some(name) = FieldReader::of(base, "a dialect", cx).and_then(|f| text_of(f.required("dialect")?, cx))
        else {
            continue;
        };
        for profile in std::iter::once(None).chain(profiles.iter().map(Some)) {
            let patch = profile.and_then(|p| p.patch.iter().find(|e| e.key == name)).cloned();
            let renames = profile.and_then(|p| p.rename_fields.iter().find(|e| e.key == name)?.value.as_map());
            let mut node = base.clone();
            if let Some(patch) = &patch {
                apply(Arc::make_mut(&mut node), &patch.value, name, cx);
            }
            patched.push(PatchedDialect {
                dialect: name.to_owned(),
                profile: profile.map(|p| p.name.to_owned()),
                base: base.clone(),
                node,
                patch,
                renames: renames.unwrap_or_default().to_vec(),
            });
        }
    }
    patched
}

/// `name` is the name of the dialect, for messages.
fn apply(base: &mut Node, patch: &Node, name: &str, cx: LoadContext) {
    if !matches!(patch.kind, YamlKind::Map(_)) {
        let message = format!("a patch on `{name}` must be a map, not {}", patch.type_name());
        cx.error(Code::BadPatch, patch.span, message);
        return;
    }
    merge(base, patch, &mut vec![name], cx);
}

/// `path` is the path of keys to the current node, for messages.
fn merge<'p>(base: &mut Node, patch: &'p Node, path: &mut Vec<&'p str>, cx: LoadContext) {
    if let Some(whole) = patch.get("$replace") {
        *base = whole.clone();
        return;
    }
    if matches!((&base.kind, &patch.kind), (YamlKind::List(_), YamlKind::Map(_))) {
        let message = format!("`{}` is a list, and a list can only be replaced whole", path.join(" → "));
        cx.add(Diagnostic::new(Code::BadPatch, patch.span, message).help("write all of its items"));
        return;
    }
    let (YamlKind::Map(entries), YamlKind::Map(changes)) = (&mut base.kind, &patch.kind) else {
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
                // The source of a replaced value is the patch.
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

/// Whether the value is `$remove`. A typo in it is reported and treated as `$remove`.
fn is_removal(change: &Entry, cx: LoadContext) -> bool {
    let Some(text) = change.value.as_text() else { return false };
    let is_typo = text != REMOVE && text.starts_with('$') && did_you_mean(text, [REMOVE]).is_some();
    if is_typo {
        let message = format!("unknown patch directive `{text}`");
        let label = format!("did you mean `{REMOVE}`?");
        cx.add(Diagnostic::new(Code::BadPatch, change.value.span, message).label(label));
    }
    is_typo || text == REMOVE
}

fn replaces(base: &Node, patch: &Node) -> bool {
    patch.get("$replace").is_some() || !matches!((&base.kind, &patch.kind), (YamlKind::Map(_), YamlKind::Map(_)))
}

fn add(entries: &mut Vec<Entry>, change: &Entry, path: &[&str], cx: LoadContext) {
    if let Some(value) = change.value.get("$add") {
        entries.push(Entry { value: value.clone(), ..change.clone() });
        return;
    }
    let (Some(before), YamlKind::Map(inner)) = (change.value.get("$before"), &change.value.kind) else {
        let help = "to add a new key, write `{ $add: … }`, or `$before: KEY` among its keys";
        missing(&change.key, change.key_span, help, entries, path, cx);
        return;
    };
    let wanted = before.as_text().unwrap_or_default();
    match entries.iter().position(|e| e.key == wanted) {
        Some(at) => {
            let inner = inner.iter().filter(|e| e.key != "$before").cloned().collect();
            let value = Node { span: change.value.span, kind: YamlKind::Map(inner) };
            entries.insert(at, Entry { value, ..change.clone() });
        }
        None => missing(wanted, before.span, "`$before:` needs an existing key", entries, path, cx),
    }
}

fn missing(key: &str, span: Span, consequence: &str, entries: &[Entry], path: &[&str], cx: LoadContext) {
    let known = || entries.iter().map(|e| e.key.as_str());
    let message = format!("`{}` has no `{key}`", path.join(" → "));
    let mut diagnostic = Diagnostic::new(Code::BadPatch, span, message);
    let directives: &[&str] = if key.starts_with('$') { DIRECTIVES } else { &[] };
    if let Some(near) = did_you_mean(key, known().chain(directives.iter().copied())) {
        diagnostic = diagnostic.label(format!("did you mean `{near}`?"));
    }
    cx.add(diagnostic.help(format!("{consequence}; {}", describe_known(known()))));
}
