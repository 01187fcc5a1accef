//! A fragment, a table or named rules that are never used.
//!
//! ## Why
//!
//! Readers assume that a definition is used, and maintain it although changes to it have no effect. Often it is the
//! result of a typo: another name is used where this one was meant. A fragment that is used with only one profile counts
//! as used. Definitions in a lower layer, such as the embedded set below `--add DIR`, may be unused.
//!
//! ## Example
//!
//! ```yaml
//! fragments:
//!   usage: { read: "{{ usage.input }}" }
//!   old_usage: { input: "{{ usage.input }}" }
//! ```
//!
//! ```text
//! warning[RF204]: the fragment `old_usage` is never used
//! ```
//!
//! ## Fix
//!
//! Remove it, or use it: `$use: NAME` for a fragment, `table: NAME` or `table('NAME')` for a table, `use: NAME` for
//! rules.

use super::LintContext;
use super::template_texts::tables;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::source::layout::SetFile;
use crate::mapping::source::yaml::{Entry, Node};
use std::collections::HashSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum DefinitionKind {
    Fragment,
    Table,
    Rules,
}

type Reference<'n> = (DefinitionKind, &'n str);

/// The definitions of a file, and the nodes that can use them.
#[derive(Default)]
struct FileDefinitions<'n> {
    defined: Vec<(DefinitionKind, &'n Entry)>,
    /// Everything else.
    rest: Vec<&'n Node>,
}

pub(super) fn check(context: &LintContext) {
    let shared = context.files.shared().map(|node| FileDefinitions::of(node)).unwrap_or_default();
    // Most profiles do not patch most dialects.
    let mut nodes: Vec<&Node> = Vec::new();
    for patched in context.patched_dialects {
        if !nodes.iter().any(|known| std::ptr::eq(*known, &*patched.node)) {
            nodes.push(&patched.node);
        }
    }
    let dialects = nodes.into_iter().map(FileDefinitions::of);
    let files: Vec<FileDefinitions> =
        dialects.chain(context.files.of(SetFile::Backend).map(|node| FileDefinitions::of(node))).collect();
    let mut used: HashSet<Span> = HashSet::new();
    let of_profiles = context.files.of(SetFile::Profile).filter_map(|node| node.get("gateway"));
    for node in context.files.gateway().into_iter().chain(of_profiles) {
        FileDefinitions::of(node).mark(&shared, &mut used);
    }
    files.iter().for_each(|file| file.mark(&shared, &mut used));
    let last_layer = context.cx.sources.last_layer();
    // Each patched copy of a dialect contains the same definitions.
    let mut unused: Vec<(DefinitionKind, &Entry)> = Vec::new();
    for (kind, entry) in files.iter().chain([&shared]).flat_map(|f| &f.defined) {
        // A layer need not use everything that the layers below it offer.
        let is_offer = context.cx.sources.layer(entry.key_span) < last_layer;
        if !is_offer && !used.contains(&entry.key_span) && !unused.iter().any(|(_, e)| e.key_span == entry.key_span) {
            unused.push((*kind, entry));
        }
    }
    // A definition that only an unused definition refers to is not reported again.
    let by_others = |(kind, entry): &(DefinitionKind, &Entry)| {
        let others = unused.iter().filter(|(_, other)| other.key_span != entry.key_span);
        others.flat_map(|(_, other)| references(&other.value)).any(|name| name == (*kind, entry.key.as_str()))
    };
    for (kind, entry) in unused.iter().filter(|definition| !by_others(definition)) {
        let name = &entry.key;
        let (message, how) = match kind {
            DefinitionKind::Fragment => {
                (format!("the fragment `{name}` is never used"), format!("insert it with `$use: {name}`"))
            }
            DefinitionKind::Table => (
                format!("the table `{name}` is never used"),
                format!("use it with `table: {name}` or `table('{name}')`"),
            ),
            DefinitionKind::Rules => {
                (format!("the rules `{name}` are never used"), format!("use them with `use: {name}`"))
            }
        };
        context.cx.add(Diagnostic::new(Code::UnusedFragment, entry.key_span, message).help(how));
    }
}

impl<'n> FileDefinitions<'n> {
    fn of(node: &'n Node) -> FileDefinitions<'n> {
        let mut file = FileDefinitions::default();
        for entry in node.as_map().unwrap_or(&[]) {
            match entry.key.as_str() {
                "fragments" => file.define(DefinitionKind::Fragment, &entry.value),
                "tables" => file.define(DefinitionKind::Table, &entry.value),
                "request" => {
                    for entry in entry.value.as_map().unwrap_or(&[]) {
                        match entry.key.as_str() {
                            "rules" => file.define(DefinitionKind::Rules, &entry.value),
                            _ => file.rest.push(&entry.value),
                        }
                    }
                }
                _ => file.rest.push(&entry.value),
            }
        }
        file
    }

    fn define(&mut self, kind: DefinitionKind, node: &'n Node) {
        self.defined.extend(node.as_map().unwrap_or(&[]).iter().map(|entry| (kind, entry)));
    }

    /// Marks the definitions that this file uses, its own and shared ones, directly or indirectly.
    fn mark(&self, shared: &FileDefinitions<'n>, used: &mut HashSet<Span>) {
        let mut open: Vec<Reference> = self.rest.iter().flat_map(|node| references(node)).collect();
        let mut seen: HashSet<Reference> = HashSet::new();
        while let Some(name) = open.pop() {
            if !seen.insert(name) {
                continue;
            }
            let is_it = |(kind, entry): &&(DefinitionKind, &'n Entry)| (*kind, entry.key.as_str()) == name;
            if let Some((_, entry)) = self.defined.iter().find(is_it).or_else(|| shared.defined.iter().find(is_it)) {
                used.insert(entry.key_span);
                open.extend(references(&entry.value));
            }
        }
    }
}

/// The definitions that a tree refers to. A word that only looks like a reference counts as one: that avoids false
/// reports.
fn references(node: &Node) -> Vec<Reference<'_>> {
    let mut references = Vec::new();
    node.visit("", &mut |key, inner| {
        let Some(text) = inner.as_text() else { return };
        match key {
            "$use" => references.push((DefinitionKind::Fragment, text)),
            "table" | "extends" => references.push((DefinitionKind::Table, text)),
            "use" => references.push((DefinitionKind::Rules, text)),
            _ => {}
        }
        references.extend(tables(text).into_iter().map(|table| (DefinitionKind::Table, table)));
    });
    references
}
