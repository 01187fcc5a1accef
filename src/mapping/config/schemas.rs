//! The schemas of a set, each compiled once for all dialects and profiles that use it. Errors in a schema are reported
//! at their place in the schema file.

use crate::diagnostics::{Code, Diagnostic, FileId, Findings, Sources, Span, did_you_mean};
use crate::domain::Tree;
use crate::mapping::grammar::notation::Spanned;
use crate::mapping::source::field_reader::{LoadContext, constant};
use crate::mapping::source::yaml;
use crate::mapping::source::yaml::{Node, YamlKind};
use reframe_json::{Schema, SchemaError, SchemaSet};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

pub struct SchemaCache<'s> {
    set: &'s SchemaSet,
    /// The names of all files: `chat/chunk.json`.
    names: Vec<&'s str>,
    /// Files that are not JSON, which is reported elsewhere.
    unreadable: &'s [String],
    compiled: RefCell<HashMap<String, Option<Arc<Schema>>>>,
    /// Documents that were checked for open objects.
    checked: RefCell<HashSet<String>>,
    /// Documents parsed with spans, to locate errors.
    parsed: RefCell<HashMap<String, Option<Rc<Node>>>>,
}

/// Compiled schemas, for reuse by the next generation: compiling them is most of the work of a load, and they rarely
/// change.
#[derive(Debug, Default)]
pub struct CompiledSchemas {
    /// Hash of all schema files of the set.
    pub hash: u64,
    compiled: HashMap<String, Arc<Schema>>,
}

impl<'s> SchemaCache<'s> {
    pub fn new(set: &'s SchemaSet, names: Vec<&'s str>, unreadable: &'s [String]) -> SchemaCache<'s> {
        let (compiled, checked, parsed) = (RefCell::default(), RefCell::default(), RefCell::default());
        SchemaCache { set, names, unreadable, compiled, checked, parsed }
    }

    /// Takes over the schemas that a previous generation compiled from the same files.
    pub fn reuse(&self, previous: &CompiledSchemas) {
        let known = previous.compiled.iter().map(|(name, schema)| (name.clone(), Some(schema.clone())));
        self.compiled.borrow_mut().extend(known);
    }

    pub fn into_compiled(self, hash: u64) -> CompiledSchemas {
        let compiled = self.compiled.into_inner().into_iter();
        CompiledSchemas { hash, compiled: compiled.filter_map(|(name, schema)| Some((name, schema?))).collect() }
    }

    /// Whether there are files in this folder.
    pub fn has_folder(&self, folder: &str) -> bool {
        self.names.iter().any(|name| name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
    }

    pub fn contains(&self, reference: &str) -> bool {
        self.set.contains(reference)
    }

    /// The folder that `schemas:` names. Reports an unknown folder once, not once per frame.
    pub fn folder<'n>(&self, folder: &'n Spanned<String>, cx: LoadContext) -> Option<&'n str> {
        let name = folder.as_str();
        let mut folders: Vec<&str> = self.names.iter().filter_map(|n| n.split_once('/')).map(|(f, _)| f).collect();
        folders.dedup();
        let is_unreadable = |file: &String| file.split_once('/').is_some_and(|(folder, _)| folder == name);
        if folders.contains(&name) || self.unreadable.iter().any(is_unreadable) {
            return Some(name);
        }
        let message = format!("there is no folder `schemas/{name}/`");
        let mut diagnostic = Diagnostic::new(Code::BadSchema, folder.span, message);
        if let Some(near) = did_you_mean(name, folders) {
            diagnostic = diagnostic.label(format!("did you mean `{near}`?"));
        }
        cx.add(
            diagnostic
                .help("it contains the schemas of this dialect's frames; without `schemas:`, frames are not validated"),
        );
        None
    }

    /// Compiles a schema. `span` is where it is needed.
    pub fn get(&self, reference: &str, span: Span, cx: LoadContext) -> Option<Arc<Schema>> {
        if let Some(known) = self.compiled.borrow().get(reference) {
            return known.clone();
        }
        let compiled = match self.set.compile(reference) {
            Ok(schema) => Some(Arc::new(schema)),
            Err(error) => {
                if !self.is_caused_by_unreadable(reference, &error) {
                    cx.add(self.explain(reference, error, span, cx));
                }
                None
            }
        };
        self.compiled.borrow_mut().insert(reference.to_owned(), compiled.clone());
        compiled
    }

    /// Compiles a schema of output. Reports objects that do not declare `additionalProperties`: they would let any
    /// member pass.
    pub fn get_for_output(&self, reference: &str, span: Span, cx: LoadContext) -> Option<Arc<Schema>> {
        let schema = self.get(reference, span, cx)?;
        let document = reference.split('#').next().unwrap_or_default();
        let is_new = self.checked.borrow_mut().insert(document.to_owned());
        for pointer in is_new.then(|| self.set.open_objects(document)).into_iter().flatten() {
            // An explicit `additionalProperties` is intended.
            if self.set.has_keyword(document, &pointer, "additionalProperties") {
                continue;
            }
            let span = self.locate(document, &pointer, cx).unwrap_or(span);
            let at = if pointer.is_empty() { String::new() } else { format!(" at {pointer}") };
            let message = format!("the object{at} accepts undeclared members");
            let help = "add `\"additionalProperties\": false`, or `true` if this is intended";
            cx.add(Diagnostic::new(Code::OpenSchema, span, message).help(help));
        }
        Some(schema)
    }

    /// The span of a JSON pointer.
    fn locate(&self, document: &str, pointer: &str, cx: LoadContext) -> Option<Span> {
        let mut parsed = self.parsed.borrow_mut();
        let root = parsed.entry(document.to_owned()).or_insert_with(|| read(document, cx.sources)).clone()?;
        locate(&root, pointer)
    }

    fn is_caused_by_unreadable(&self, reference: &str, error: &SchemaError) -> bool {
        self.unreadable.iter().any(|name| match error {
            // Or it may be one of those that events.json defines.
            SchemaError::NotFound => {
                let (file, folder) = (reference.split('#').next(), reference.split('/').next().unwrap_or_default());
                file == Some(name) || *name == format!("{folder}/events.json")
            }
            SchemaError::Invalid { message, .. } => message.contains(&format!("`{name}`")),
        })
    }

    fn explain(&self, reference: &str, error: SchemaError, span: Span, cx: LoadContext) -> Diagnostic {
        match error {
            SchemaError::NotFound => {
                let message = format!("there is no schema `schemas/{reference}` for this output");
                let diagnostic = Diagnostic::new(Code::BadSchema, span, message)
                    .help("output needs two files: the mapping that produces it and the schema that allows it");
                let folder = reference.split('/').next().unwrap_or_default();
                let siblings = self.names.iter().filter(|n| n.split('/').next() == Some(folder)).map(|n| stem(n));
                let defined = definitions(folder, cx);
                match did_you_mean(stem(reference), siblings.chain(defined.iter().map(String::as_str))) {
                    Some(near) => diagnostic.label(format!("did you mean `{near}`?")),
                    None => diagnostic,
                }
            }
            SchemaError::Invalid { document, pointer, message } => {
                let keyword = pointer.rsplit('/').next().unwrap_or_default();
                let span = self.locate(&document, &pointer, cx).unwrap_or(span);
                let diagnostic = Diagnostic::new(Code::BadSchema, span, message);
                match keyword {
                    "type" => diagnostic.help("one of string, number, integer, boolean, object, array or null"),
                    _ => diagnostic,
                }
            }
        }
    }
}

/// A JSON pointer in a document of `schemas/`, and the value there.
pub fn find_in_schema(document: &str, pointer: &str, sources: &Sources) -> Option<(Span, Tree)> {
    let root = read(document, sources)?;
    let span = locate(&root, pointer)?;
    Some((span, constant(root.follow(pointer).0)))
}

/// Points at a scalar value, or at the key of a map or list.
fn locate(root: &Node, pointer: &str) -> Option<Span> {
    let (node, key, is_found) = root.follow(pointer);
    let span = if matches!(node.kind, YamlKind::Map(_) | YamlKind::List(_)) { key } else { node.span };
    is_found.then_some(span)
}

/// The name that mappings use: `chunk` for `chat/chunk.json`.
fn stem(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name).trim_end_matches(".json")
}

/// The schemas that are defined in the dialect's `events.json`.
fn definitions(folder: &str, cx: LoadContext) -> Vec<String> {
    let root = read(&format!("{folder}/events.json"), cx.sources);
    let entries = root.as_ref().and_then(|root| root.get("$defs")?.as_map()).unwrap_or_default();
    entries.iter().map(|entry| entry.key.clone()).collect()
}

/// JSON is YAML, and the YAML parser provides spans.
pub fn read(document: &str, sources: &Sources) -> Option<Rc<Node>> {
    let name = format!("schemas/{document}");
    let (file, source): (FileId, _) = sources.iter().find(|(_, s)| s.name == name)?;
    yaml::parse(file, &source.text, &Findings::default()).map(Rc::new)
}
