//! The schemas of a dialect under a profile with `rename_fields:`. They are files of the set like any other, next to the
//! dialect's own: `schemas/chat@PROFILE.chat/body.json` is `schemas/chat/body.json` with the new names. So one line
//! renames a field in the output, in its schemas, in the published documents, and for `reframe validate`.

use super::files::MappingFiles;
use super::layout::SetFile;
use super::yaml::{self, Node, YamlKind};
use crate::diagnostics::{FileId, Findings, Span};
use crate::domain::{Tree, WorkBudget};
use crate::mapping::SourceFile;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// What the folders of renamed schemas end with.
pub fn suffix(profile: &str, dialect: &str) -> String {
    format!("@{profile}.{dialect}")
}

/// How many bytes of a file are one step of the budget.
const BYTES_PER_STEP: u64 = 64;

/// The renamed schemas of all profiles. A profile that renames nothing in the schemas of a dialect gets none. `parsed`:
/// the profiles and dialects among the files.
pub fn derive(files: &[SourceFile], parsed: &MappingFiles, budget: &WorkBudget) -> Vec<SourceFile> {
    // Several profiles rename fields in the same schemas.
    let known: RefCell<HashMap<*const SourceFile, Option<Rc<Node>>>> = RefCell::default();
    let parse = |file: &SourceFile| {
        let is_affordable = budget.spend(1 + file.text.len() as u64 / BYTES_PER_STEP);
        let parse = || yaml::parse(FileId(0), &file.text, &Findings::default()).map(Rc::new);
        is_affordable.then(|| known.borrow_mut().entry(file).or_insert_with(parse).clone()).flatten()
    };
    let mut derived = Vec::new();
    for profile in parsed.of(SetFile::Profile) {
        let Some(name) = profile.get("profile").and_then(Node::as_text) else { continue };
        let file = files.get(profile.span.file.0 as usize).map_or("", |file| file.name.as_str());
        budget.begin(file, "renaming fields in the schemas of its dialects");
        let chain = chain(profile, parsed);
        let sections = chain.iter().filter_map(|p| p.get("rename_fields")?.as_map()).flatten();
        let mut dialects: Vec<&str> = sections.clone().map(|entry| entry.key.as_str()).collect();
        dialects.sort_unstable();
        dialects.dedup();
        for dialect in dialects {
            let patched = chain.iter().rev().find_map(|p| p.get("patch")?.get(dialect)?.get("schemas")?.as_text());
            let folder = patched.map(str::to_owned).or_else(|| own_folder(parsed, dialect));
            let entries =
                sections.clone().filter(|entry| entry.key == dialect).filter_map(|entry| entry.value.as_map());
            // The profile itself takes precedence; the same name takes a renaming back.
            let mut pairs: Vec<(&str, &str)> = Vec::new();
            for (from, to) in entries.flatten().filter_map(|e| Some((e.key.as_str(), e.value.as_text()?))) {
                pairs.retain(|(earlier, _)| *earlier != from);
                pairs.extend((from != to).then_some((from, to)));
            }
            if let Some(folder) = folder {
                derived.extend(Renaming { pairs: &pairs, suffix: suffix(name, dialect) }.folder(&folder, files, parse));
            }
        }
    }
    derived
}

/// A profile after those that it extends.
fn chain<'n>(profile: &'n Node, parsed: &'n MappingFiles) -> Vec<&'n Node> {
    let name = |node: &'n Node| node.get("profile").and_then(Node::as_text);
    let mut chain = vec![profile];
    while let Some(base) = chain.first().and_then(|first| first.get("extends")?.as_text()) {
        let found = parsed.of(SetFile::Profile).map(|node| &**node).find(|node| name(node) == Some(base));
        let Some(found) = found.filter(|found| !chain.iter().any(|p| name(p) == name(found))) else { break };
        chain.insert(0, found);
    }
    chain
}

/// The folder of schemas that the dialect of this name states.
fn own_folder(parsed: &MappingFiles, dialect: &str) -> Option<String> {
    let node = parsed.of(SetFile::Dialect).find(|node| node.get("dialect").and_then(Node::as_text) == Some(dialect))?;
    node.get("schemas")?.as_text().map(str::to_owned)
}

/// The new names of one dialect under one profile.
struct Renaming<'r> {
    pairs: &'r [(&'r str, &'r str)],
    suffix: String,
}

/// What changes in one file.
#[derive(Default)]
struct Changes {
    edits: Vec<(Span, String)>,
    renamed: bool,
    /// Folders that it refers to.
    folders: Vec<String>,
}

impl Renaming<'_> {
    /// The schemas of a folder, of `shared`, and of the folders that these refer to.
    fn folder(
        &self,
        folder: &str,
        files: &[SourceFile],
        parse: impl Fn(&SourceFile) -> Option<Rc<Node>>,
    ) -> Vec<SourceFile> {
        let mut folders = vec![folder.to_owned(), "shared".to_owned()];
        let (mut derived, mut renamed, mut at) = (Vec::new(), false, 0);
        while let Some(folder) = folders.get(at).cloned() {
            at += 1;
            for file in files {
                let Some(rest) = file.name.strip_prefix("schemas/").and_then(|name| name.strip_prefix(folder.as_str()))
                else {
                    continue;
                };
                let Some((root, rest)) = parse(file).zip(rest.strip_prefix('/')) else { continue };
                let mut changes = Changes::default();
                self.schema(&root, &mut changes);
                renamed |= changes.renamed;
                let new = changes.folders.into_iter().filter(|folder| !folders.contains(folder)).collect::<Vec<_>>();
                folders.extend(new);
                let name = format!("schemas/{folder}{}/{rest}", self.suffix);
                let text: Arc<str> = apply(&file.text, changes.edits).into();
                derived.push(SourceFile { name, text, ..file.clone() });
            }
        }
        if renamed { derived } else { Vec::new() }
    }

    fn new_name(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(from, _)| *from == name).map(|(_, to)| *to)
    }

    fn schema(&self, node: &Node, changes: &mut Changes) {
        for entry in node.as_map().unwrap_or(&[]) {
            let value = &entry.value;
            match entry.key.as_str() {
                "properties" => self.properties(value, changes),
                "required" => {
                    for name in list(value) {
                        if let Some(new) = name.as_text().and_then(|name| self.new_name(name)) {
                            changes.edits.push((name.span, new.to_owned()));
                            changes.renamed = true;
                        }
                    }
                }
                "$ref" => self.reference(value, changes),
                "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                    value.as_map().unwrap_or(&[]).iter().for_each(|entry| self.schema(&entry.value, changes));
                }
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                    list(value).iter().for_each(|item| self.schema(item, changes));
                }
                "items"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "unevaluatedItems"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else" => self.schema(value, changes),
                _ => {}
            }
        }
    }

    fn properties(&self, node: &Node, changes: &mut Changes) {
        for entry in node.as_map().unwrap_or(&[]) {
            // A schema that has the new name already is right.
            if let Some(new) = self.new_name(&entry.key).filter(|new| node.get(new).is_none()) {
                changes.edits.push((entry.key_span, new.to_owned()));
                changes.renamed = true;
            }
            self.schema(&entry.value, changes);
        }
    }

    /// References to other folders lead to their renamed copies.
    fn reference(&self, node: &Node, changes: &mut Changes) {
        let Some(reference) = node.as_text() else { return };
        let (path, fragment) = reference.split_once('#').map_or((reference, None), |(p, f)| (p, Some(f)));
        let Some((folders, file)) = path.rsplit_once('/') else { return };
        let folder = folders.rsplit('/').next().unwrap_or_default();
        if path.contains(':') || matches!(folder, "" | "." | "..") {
            return;
        }
        changes.folders.push(folder.to_owned());
        let fragment = fragment.map_or(String::new(), |fragment| format!("#{fragment}"));
        changes.edits.push((node.span, format!("{folders}{}/{file}{fragment}", self.suffix)));
    }
}

fn list(node: &Node) -> &[Node] {
    match &node.kind {
        YamlKind::List(items) => items,
        _ => &[],
    }
}

/// Replaces the texts at these spans. Lines stay the same, so that a place in the copy is one in the file.
fn apply(text: &str, mut edits: Vec<(Span, String)>) -> String {
    edits.sort_by_key(|(span, _)| span.start);
    let (mut out, mut done) = (String::new(), 0);
    for (span, new) in edits {
        let (start, end) = (span.start as usize, span.end as usize);
        let (Some(before), Some(old)) = (text.get(done..start), text.get(start..end)) else { continue };
        out.push_str(before);
        let new = if old.starts_with('"') { Tree::from(new.as_str()).to_json() } else { new };
        out.push_str(&new);
        done = end;
    }
    out + text.get(done..).unwrap_or_default()
}
