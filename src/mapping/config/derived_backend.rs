//! Derived backends: `extends:` names another backend file, and `patch:` changes it. A derived backend is resolved
//! before it is compiled, so that everything after that sees a complete backend file; each value keeps the span of the
//! file that it is written in.

use super::patch;
use crate::diagnostics::{Code, Diagnostic, did_you_mean};
use crate::mapping::source::field_reader::{FieldReader, LoadContext, text_of};
use crate::mapping::source::layout::SetFile;
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use std::sync::Arc;

/// How many files a backend can be derived through.
const MAX_CHAIN: usize = 8;

const NAME: &str = "backend";
const EXTENDS: &str = "extends";
const PATCH: &str = "patch";
/// The keys of a derived backend.
pub(super) const KEYS: &[&str] = &[NAME, EXTENDS, PATCH];

/// Whether a backend file is derived from another one.
fn is_derived(node: &Node) -> bool {
    node.get(EXTENDS).is_some() || node.get(PATCH).is_some()
}

/// The backend files with every derived one resolved; `None` for one that cannot be, which was reported. `unreadable`
/// are the names of files with syntax errors.
pub(crate) fn resolve(files: &[Arc<Node>], unreadable: &[&str], cx: LoadContext) -> Vec<Option<Arc<Node>>> {
    let resolver = Resolver { files, unreadable, cx };
    files.iter().map(|file| if is_derived(file) { resolver.resolve(file) } else { Some(file.clone()) }).collect()
}

struct Resolver<'f, 'c> {
    files: &'f [Arc<Node>],
    unreadable: &'f [&'f str],
    cx: LoadContext<'c>,
}

/// A file that is derived from another.
struct Derived<'f> {
    name: &'f Entry,
    extends: &'f Entry,
    patch: Option<&'f Node>,
}

impl<'f> Resolver<'f, '_> {
    fn resolve(&self, file: &'f Node) -> Option<Arc<Node>> {
        let mut chain = vec![self.read(file)?];
        let root = loop {
            let extends = chain.last()?.extends;
            let base = self.find(text_of(&extends.value, self.cx)?, extends)?;
            if !is_derived(base) {
                break base;
            }
            let next = self.read(base)?;
            // A file that extends a cycle without being in it need not report it.
            if chain.iter().any(|known| known.name.key_span == next.name.key_span) {
                if chain.first()?.name.key_span == next.name.key_span {
                    self.report_cycle(&chain);
                }
                return None;
            }
            chain.push(next);
            if chain.len() > MAX_CHAIN {
                let message = format!("this backend is derived through more than {MAX_CHAIN} files");
                let help = "extend a backend that is closer to the first one";
                self.cx
                    .add(Diagnostic::new(Code::FragmentCycle, chain.first()?.extends.value.span, message).help(help));
                return None;
            }
        };
        self.cx.budget.spend(size(root) + chain.iter().filter_map(|derived| derived.patch).map(size).sum::<u64>());
        let mut node = root.clone();
        // The last of the chain is the one next to the root.
        for derived in chain.iter().rev() {
            if let Some(patch) = derived.patch {
                let name = derived.extends.value.as_text().unwrap_or_default();
                patch::apply(&mut node, patch, name, self.cx);
            }
        }
        let own = chain.first()?;
        if let YamlKind::Map(entries) = &mut node.kind {
            entries.retain(|entry| !KEYS.contains(&entry.key.as_str()));
            entries.splice(0..0, [own.name.clone(), own.extends.clone()]);
        }
        node.span = file.span;
        Some(Arc::new(node))
    }

    /// Reads the keys of a derived backend.
    fn read(&self, file: &'f Node) -> Option<Derived<'f>> {
        let fields = FieldReader::of(file, "a derived backend", self.cx)?;
        fields.required(NAME);
        fields.required(EXTENDS);
        let (name, extends, patch) = (fields.entry(NAME), fields.entry(EXTENDS), fields.get(PATCH));
        for entry in fields.unread() {
            let key = &entry.key;
            if did_you_mean(key, KEYS.iter().copied()).is_some() {
                let message = format!("unknown key `{key}` in a derived backend");
                self.cx.unknown(Code::UnknownKey, entry.key_span, message, key, KEYS.iter().copied());
                continue;
            }
            let message = format!("unknown key `{key}` next to `{EXTENDS}:`");
            let help =
                format!("a derived backend has only `{NAME}:`, `{EXTENDS}:` and `{PATCH}:`: write it below `{PATCH}:`");
            self.cx.add(Diagnostic::new(Code::UnknownKey, entry.key_span, message).help(help));
        }
        text_of(&name?.value, self.cx)?;
        Some(Derived { name: name?, extends: extends?, patch })
    }

    /// The file with this name. An unknown one is reported, unless a file with syntax errors defines it.
    fn find(&self, name: &str, extends: &Entry) -> Option<&'f Node> {
        let names = || self.files.iter().filter_map(|file| Some((file.get(NAME)?.as_text()?, file)));
        let found = names().find(|(known, _)| *known == name).map(|(_, file)| &**file);
        if found.is_none() && !self.unreadable.contains(&name) {
            let message = format!("no backend file defines `{NAME}: {name}`");
            let known = names().map(|(known, _)| known);
            self.cx.unknown(Code::UnknownReference, extends.value.span, message, name, known);
        }
        found
    }

    /// Reports a cycle at the first of its files.
    fn report_cycle(&self, chain: &[Derived]) {
        let first = chain.iter().min_by_key(|derived| derived.name.key_span.file);
        let (Some(first), Some(own)) = (first, chain.first()) else { return };
        if first.name.key_span != own.name.key_span {
            return;
        }
        let names = chain.iter().chain([own]).filter_map(|derived| derived.name.value.as_text());
        let way = names.collect::<Vec<_>>().join(" → ");
        let message = format!("the backend extends itself: {way}");
        let help = "remove `extends:` from one of these backends";
        self.cx.add(Diagnostic::new(Code::FragmentCycle, own.extends.value.span, message).help(help));
    }
}

/// The number of values.
fn size(node: &Node) -> u64 {
    let mut values = 0;
    node.visit("", &mut |_, _| values += 1);
    values
}

/// For messages about names that are not resolved.
pub(crate) fn name_of(file: &Node) -> Option<&str> {
    file.get(SetFile::Backend.name())?.as_text()
}
