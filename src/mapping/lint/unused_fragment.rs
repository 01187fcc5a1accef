//! A part, a table or named rules that nobody uses.
//!
//! ## Why
//!
//! What nobody uses is read by the next person as if somebody did, and mended in vain. Often it is the trace of a slip: the
//! name was meant somewhere, and another one stands there. A part that is used under one profile only is used.
//!
//! ## Example
//!
//! ```yaml
//! parts:
//!   usage: { read: "{{ usage.input }}" }
//!   old_usage: { input: "{{ usage.input }}" }
//! ```
//!
//! ```text
//! warning[RF204]: nobody uses the part `old_usage`
//! ```
//!
//! ## Mend
//!
//! Remove it, or use it: `$use: NAME` for a part, `table: NAME` or `table('NAME')` for a table, `use: NAME` for rules.

use super::Set;
use super::template_texts::{tables, walk};
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::mapping::source::yaml::{Entry, Node};
use std::collections::HashSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sort {
    Part,
    Table,
    Rules,
}

type Name<'n> = (Sort, &'n str);

/// What a file defines, and where it can use it.
struct File<'n> {
    defined: Vec<(Sort, &'n Entry)>,
    /// Everything else.
    rest: Vec<&'n Node>,
}

pub(super) fn check(set: &Set) {
    let shared = set.files.shared.iter().map(File::of).next().unwrap_or(File { defined: Vec::new(), rest: Vec::new() });
    let dialects = set.variants.iter().map(|variant| File::of(&variant.node));
    let files: Vec<File> = dialects.chain(set.files.backends.iter().map(File::of)).collect();
    let mut used: HashSet<Span> = HashSet::new();
    for file in files.iter().chain(&set.files.gateway.as_ref().map(File::of)) {
        file.mark(&shared, &mut used);
    }
    // Every variant of a dialect defines its parts again.
    let mut unused: Vec<(Sort, &Entry)> = Vec::new();
    for (sort, entry) in files.iter().chain([&shared]).flat_map(|f| &f.defined) {
        if !used.contains(&entry.key_span) && !unused.iter().any(|(_, e)| e.key_span == entry.key_span) {
            unused.push((*sort, entry));
        }
    }
    // What is used only by what nobody uses is no second mistake.
    let by_others = |(sort, entry): &(Sort, &Entry)| {
        let others = unused.iter().filter(|(_, other)| other.key_span != entry.key_span);
        others.flat_map(|(_, other)| names(&other.value)).any(|name| name == (*sort, entry.key.as_str()))
    };
    for (sort, entry) in unused.iter().filter(|definition| !by_others(definition)) {
        let (what, how) = match sort {
            Sort::Part => ("the part", format!("`$use: {}` puts it somewhere", entry.key)),
            Sort::Table => ("the table", format!("`table: {0}` or `table('{0}')` looks a word up in it", entry.key)),
            Sort::Rules => ("the rules", format!("`use: {}` makes parts with them", entry.key)),
        };
        let message = format!("nobody uses {what} `{}`", entry.key);
        set.cx.add(Diagnostic::new(Code::UnusedPart, entry.key_span, message).help(how));
    }
}

impl<'n> File<'n> {
    fn of(node: &'n Node) -> File<'n> {
        let mut file = File { defined: Vec::new(), rest: Vec::new() };
        for entry in node.as_map().unwrap_or(&[]) {
            match entry.key.as_str() {
                "parts" => file.define(Sort::Part, &entry.value),
                "tables" => file.define(Sort::Table, &entry.value),
                "request" => {
                    for entry in entry.value.as_map().unwrap_or(&[]) {
                        match entry.key.as_str() {
                            "rules" => file.define(Sort::Rules, &entry.value),
                            _ => file.rest.push(&entry.value),
                        }
                    }
                }
                _ => file.rest.push(&entry.value),
            }
        }
        file
    }

    fn define(&mut self, sort: Sort, node: &'n Node) {
        self.defined.extend(node.as_map().unwrap_or(&[]).iter().map(|entry| (sort, entry)));
    }

    /// Marks what this file uses, its own and the shared, and what that uses.
    fn mark(&self, shared: &File<'n>, used: &mut HashSet<Span>) {
        let mut open: Vec<Name> = self.rest.iter().flat_map(|node| names(node)).collect();
        let mut seen: HashSet<Name> = HashSet::new();
        while let Some(name) = open.pop() {
            if !seen.insert(name) {
                continue;
            }
            let is_it = |(sort, entry): &&(Sort, &'n Entry)| (*sort, entry.key.as_str()) == name;
            if let Some((_, entry)) = self.defined.iter().find(is_it).or_else(|| shared.defined.iter().find(is_it)) {
                used.insert(entry.key_span);
                open.extend(names(&entry.value));
            }
        }
    }
}

/// What a tree uses by name. A word that only looks like it does no harm: it is taken for a use.
fn names(node: &Node) -> Vec<Name<'_>> {
    let mut names = Vec::new();
    walk(node, "", &mut |key, text| {
        match key {
            "$use" => names.push((Sort::Part, text)),
            "table" => names.push((Sort::Table, text)),
            "use" => names.push((Sort::Rules, text)),
            _ => {}
        }
        names.extend(tables(text).into_iter().map(|table| (Sort::Table, table)));
    });
    names
}
