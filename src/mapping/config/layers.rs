//! Layers: gateway.yaml and shared.yaml of several layers are merged by key, and the later layer wins. Every value that
//! a layer replaces or removes is recorded as an override.

use super::patch::{REMOVE, REPLACE, is_removal};
use super::path_template::PathTemplate;
use crate::diagnostics::{Code, Diagnostic, Span, describe_known, did_you_mean};
use crate::mapping::source::field_reader::{LoadContext, text_of};
use crate::mapping::source::layout::SetFile;
use crate::mapping::source::yaml::{Entry, Node, YamlKind};
use std::sync::Arc;

/// A value of a layer that a later layer replaces or removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// ``model `demo` ``
    pub what: String,
    pub action: OverrideAction,
    /// In the later layer.
    pub by: Span,
    /// In the earlier layer.
    pub of: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverrideAction {
    Replaces,
    Removes,
}

impl OverrideAction {
    pub fn name(self) -> &'static str {
        match self {
            OverrideAction::Replaces => "replaces",
            OverrideAction::Removes => "removes",
        }
    }
}

/// How a section is merged. All others are replaced whole.
struct Section {
    key: &'static str,
    by: MergeBy,
}

#[derive(Clone, Copy)]
enum MergeBy {
    /// A map with fixed keys: one key at a time.
    Key,
    /// A map from names; an entry is replaced whole. The noun is what an entry is called.
    Name(&'static str),
    /// A map from names to maps with fixed keys: one key of an entry at a time.
    NamedKeys(&'static str),
    /// A list of maps that are identified by one of these keys; an element is replaced whole.
    Element { noun: &'static str, keys: &'static [&'static str], order: Order },
}

/// Where the elements of the later layer are.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// Before all others: the first match is used.
    First,
    /// In the place of what they replace, else at the end.
    Last,
}

const fn list(key: &'static str, noun: &'static str, keys: &'static [&'static str], order: Order) -> Section {
    Section { key, by: MergeBy::Element { noun, keys, order } }
}

const GATEWAY_SECTIONS: &[Section] = &[
    Section { key: "backends", by: MergeBy::Name("backend") },
    list("models", "model", &["id", "match"], Order::First),
    list("routes", "route", &["endpoint"], Order::Last),
    list("static_routes", "static route", &["endpoint"], Order::Last),
    list("by_user_agent", "user agent rule", &["match"], Order::First),
    list("api_keys", "API key", &["name"], Order::Last),
    Section { key: "logs", by: MergeBy::NamedKeys("log") },
    Section { key: "metric_aliases", by: MergeBy::NamedKeys("metric alias") },
    Section { key: "limits", by: MergeBy::Key },
    Section { key: "timeouts", by: MergeBy::Key },
    Section { key: "keepalive", by: MergeBy::Key },
    Section { key: "headers", by: MergeBy::Key },
    Section { key: "cors", by: MergeBy::Key },
];

/// The lists that cannot be written as one element.
const NEED_A_LIST: &[&str] = &["models", "routes"];

const SHARED_SECTIONS: &[Section] = &[
    Section { key: "tables", by: MergeBy::Name("table") },
    Section { key: "fragments", by: MergeBy::Name("fragment") },
];

/// How the layers of a section are merged, for its published schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionShape {
    /// A map with fixed keys.
    Keys,
    /// A map from names.
    Names,
    /// A list.
    Elements,
}

/// The sections of a kind of file that are merged by key.
pub fn merged_sections(kind: SetFile) -> impl Iterator<Item = (&'static str, SectionShape)> {
    let shape = |section: &Section| match section.by {
        MergeBy::Key => SectionShape::Keys,
        MergeBy::Name(_) | MergeBy::NamedKeys(_) => SectionShape::Names,
        MergeBy::Element { .. } => SectionShape::Elements,
    };
    sections(kind).iter().map(move |section| (section.key, shape(section)))
}

fn sections(kind: SetFile) -> &'static [Section] {
    match kind {
        SetFile::Gateway => GATEWAY_SECTIONS,
        SetFile::Shared => SHARED_SECTIONS,
        SetFile::Backend | SetFile::Dialect | SetFile::Profile | SetFile::Script => &[],
        SetFile::Test | SetFile::Transcript | SetFile::Schema => &[],
    }
}

/// Merges the files of one kind, the earliest layer first. `None`: there are none.
pub(crate) fn merge(kind: SetFile, files: &[Arc<Node>], cx: LoadContext) -> Option<(Arc<Node>, Vec<Override>)> {
    let mut merger = Merger { overrides: Vec::new(), cx };
    let mut entries = Vec::new();
    for file in files {
        merger.merge_file(&mut entries, file, sections(kind));
    }
    // A finding about the file as a whole is one about the last layer.
    let span = files.last()?.span;
    Some((Arc::new(Node { span, kind: YamlKind::Map(entries) }), merger.overrides))
}

struct Merger<'c> {
    overrides: Vec<Override>,
    cx: LoadContext<'c>,
}

impl Merger<'_> {
    fn merge_file(&mut self, base: &mut Vec<Entry>, file: &Node, sections: &[Section]) {
        for entry in file.as_map().unwrap_or_default() {
            let what = format!("`{}`", entry.key);
            let found = base.iter().position(|known| known.key == entry.key);
            if is_removal(entry, self.cx) {
                self.remove(base, found, &what, entry.value.span, &entry.key);
                continue;
            }
            let whole = entry.value.get(REPLACE);
            let section = sections.iter().find(|section| section.key == entry.key).filter(|_| whole.is_none());
            let Some(Section { by, .. }) = section else {
                let value = whole.unwrap_or(&entry.value).clone();
                self.set(base, found, Entry { value, ..entry.clone() }, what);
                continue;
            };
            let at = found.unwrap_or_else(|| {
                let empty = match by {
                    MergeBy::Key | MergeBy::Name(_) | MergeBy::NamedKeys(_) => YamlKind::Map(Vec::new()),
                    MergeBy::Element { .. } => YamlKind::List(Vec::new()),
                };
                base.push(Entry { value: Node { kind: empty, ..entry.value.clone() }, ..entry.clone() });
                base.len() - 1
            });
            self.merge_section(&mut base[at], entry, *by);
        }
    }

    fn merge_section(&mut self, base: &mut Entry, top: &Entry, by: MergeBy) {
        match (&mut base.value.kind, &top.value.kind, by) {
            (YamlKind::Map(entries), YamlKind::Map(changes), MergeBy::Key) => {
                self.merge_entries(entries, changes, |key| format!("`{}.{key}`", top.key));
            }
            (YamlKind::Map(entries), YamlKind::Map(changes), MergeBy::Name(noun)) => {
                self.merge_entries(entries, changes, |key| format!("{noun} `{key}`"));
            }
            (YamlKind::Map(entries), YamlKind::Map(changes), MergeBy::NamedKeys(noun)) => {
                for change in changes {
                    let known = entries.iter_mut().find(|known| known.key == change.key);
                    match (known.map(|known| &mut known.value.kind), &change.value.kind) {
                        (Some(YamlKind::Map(base)), YamlKind::Map(top)) if change.value.get(REPLACE).is_none() => {
                            self.merge_entries(base, top, |key| format!("`{key}` of the {noun} `{}`", change.key));
                        }
                        _ => {
                            let value = change.value.get(REPLACE).unwrap_or(&change.value).clone();
                            let change = Entry { value, ..change.clone() };
                            self.merge_entries(entries, &[change], |key| format!("{noun} `{key}`"));
                        }
                    }
                }
            }
            (YamlKind::List(items), YamlKind::List(top_items), MergeBy::Element { noun, keys, order }) => {
                self.merge_list(items, top_items, (noun, keys), order);
            }
            // One element, where a list is not required.
            (YamlKind::List(items), YamlKind::Map(_), MergeBy::Element { noun, keys, order })
                if !NEED_A_LIST.contains(&top.key.as_str()) =>
            {
                self.merge_list(items, top.value.as_list_or_one(), (noun, keys), order);
            }
            // A wrong type, or null: reported when the section is read.
            _ => *base = top.clone(),
        }
        base.value.span = top.value.span;
    }

    fn merge_entries(&mut self, base: &mut Vec<Entry>, changes: &[Entry], what: impl Fn(&str) -> String) {
        for change in changes {
            let found = base.iter().position(|known| known.key == change.key);
            if is_removal(change, self.cx) {
                self.remove(base, found, &what(&change.key), change.value.span, &change.key);
            } else {
                self.set(base, found, change.clone(), what(&change.key));
            }
        }
    }

    fn merge_list(&mut self, base: &mut Vec<Node>, top: &[Node], kind: (&str, &[&str]), order: Order) {
        let (noun, keys) = kind;
        let what = |name: &str| format!("{noun} `{name}`");
        let mut first = Vec::new();
        // Elements of this layer.
        let mut own = Vec::new();
        for item in top {
            if let Some(removed) = item.get(REMOVE) {
                let Some(name) = text_of(removed, self.cx) else { continue };
                let wanted = identity(name);
                let found = base.iter().position(|known| name_of(known, keys).is_some_and(|n| identity(n) == wanted));
                match found {
                    Some(at) => {
                        let of = base.remove(at).span;
                        self.record(what(name), OverrideAction::Removes, removed.span, of);
                    }
                    None => self.missing(
                        name,
                        removed.span,
                        base.iter().filter_map(|known| name_of(known, keys)),
                        &what(name),
                    ),
                }
                continue;
            }
            let name = name_of(item, keys);
            // Two elements of one layer with one name stay, to be reported.
            let replaced = base.iter().position(|known| {
                let same = name_of(known, keys).zip(name).is_some_and(|(a, b)| identity(a) == identity(b));
                same && !own.contains(&known.span)
            });
            own.push(item.span);
            if let Some(at) = replaced {
                self.record(what(name.unwrap_or_default()), OverrideAction::Replaces, item.span, base[at].span);
            }
            match (replaced, order) {
                (Some(at), Order::Last) => base[at] = item.clone(),
                (None, Order::Last) => base.push(item.clone()),
                (replaced, Order::First) => {
                    replaced.map(|at| base.remove(at));
                    first.push(item.clone());
                }
            }
        }
        base.splice(0..0, first);
    }

    fn set(&mut self, base: &mut Vec<Entry>, found: Option<usize>, entry: Entry, what: String) {
        match found {
            Some(at) => {
                self.record(what, OverrideAction::Replaces, entry.key_span, base[at].key_span);
                base[at] = entry;
            }
            None => base.push(entry),
        }
    }

    fn remove(&mut self, base: &mut Vec<Entry>, found: Option<usize>, what: &str, span: Span, key: &str) {
        match found {
            Some(at) => {
                let of = base.remove(at).key_span;
                self.record(what.to_owned(), OverrideAction::Removes, span, of);
            }
            None => self.missing(key, span, base.iter().map(|known| known.key.as_str()), what),
        }
    }

    fn record(&mut self, what: String, action: OverrideAction, by: Span, of: Span) {
        self.overrides.push(Override { what, action, by, of });
    }

    fn missing<'k>(&self, name: &str, span: Span, known: impl Iterator<Item = &'k str>, what: &str) {
        let known: Vec<&str> = known.collect();
        let message = format!("there is no {what} to remove in a layer below this one");
        let mut diagnostic = Diagnostic::new(Code::BadPatch, span, message);
        if let Some(near) = did_you_mean(name, known.iter().copied()) {
            diagnostic = diagnostic.label(format!("did you mean `{near}`?"));
        }
        self.cx.add(diagnostic.help(describe_known(known)));
    }
}

/// The name of an element: the value of the first of `keys` that it has.
fn name_of<'n>(item: &'n Node, keys: &[&str]) -> Option<&'n str> {
    keys.iter().find_map(|key| item.get(key))?.as_text()
}

/// What is compared of a name: in an endpoint, the names of parameters do not matter.
fn identity(name: &str) -> (&str, Vec<&str>) {
    let endpoint = name.split_once(' ').map(|(method, path)| (method, PathTemplate::parse(path.trim())));
    match endpoint {
        Some((method, Ok(template))) => (method, template.literals),
        Some((_, Err(_))) | None => (name, Vec::new()),
    }
}
