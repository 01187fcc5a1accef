//! The schemas of a set, each compiled once for all dialects and profiles that use it. What is wrong with one is said
//! where it stands: in the schema's own file.

use crate::diagnostics::{Code, Diagnostic, FileId, Findings, Span, did_you_mean};
use crate::mapping::source::field_reader::{Cx, text_of};
use crate::mapping::source::yaml;
use crate::mapping::source::yaml::{Kind, Node};
use reframe_json::{Schema, SchemaError, SchemaSet};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

pub struct SchemaCache<'s> {
    set: &'s SchemaSet,
    /// The names of all files, `chat/chunk.json`.
    names: Vec<&'s str>,
    /// Those that are not JSON; that was said.
    broken: &'s [String],
    compiled: RefCell<HashMap<String, Option<Arc<Schema>>>>,
    /// Documents whose objects were looked at.
    looked_at: RefCell<HashSet<String>>,
    /// Documents in which a place was looked for.
    parsed: RefCell<HashMap<String, Option<Rc<Node>>>>,
}

/// Compiled schemas that the next generation may use again: they are most of the work of a load, and rarely change.
#[derive(Debug, Default)]
pub struct KeptSchemas {
    /// Of all schema files of the set.
    pub hash: u64,
    compiled: HashMap<String, Arc<Schema>>,
}

impl<'s> SchemaCache<'s> {
    pub fn new(set: &'s SchemaSet, names: Vec<&'s str>, broken: &'s [String]) -> SchemaCache<'s> {
        let (compiled, looked_at, parsed) = (RefCell::default(), RefCell::default(), RefCell::default());
        SchemaCache { set, names, broken, compiled, looked_at, parsed }
    }

    /// Starts with what an earlier generation compiled from the same files.
    pub fn reuse(&self, kept: &KeptSchemas) {
        let known = kept.compiled.iter().map(|(name, schema)| (name.clone(), Some(schema.clone())));
        self.compiled.borrow_mut().extend(known);
    }

    pub fn keep(self, hash: u64) -> KeptSchemas {
        let compiled = self.compiled.into_inner().into_iter();
        KeptSchemas { hash, compiled: compiled.filter_map(|(name, schema)| Some((name, schema?))).collect() }
    }

    pub fn contains(&self, reference: &str) -> bool {
        self.set.contains(reference)
    }

    /// The folder that `schemas:` names. One word is wrong, so one thing is said, and not one for each frame.
    pub fn folder<'n>(&self, node: &'n Node, cx: Cx) -> Option<&'n str> {
        let name = text_of(node, cx)?;
        let mut folders: Vec<&str> = self.names.iter().filter_map(|n| n.split_once('/')).map(|(f, _)| f).collect();
        folders.dedup();
        if folders.contains(&name) {
            return Some(name);
        }
        let message = format!("there is no folder `schemas/{name}/`");
        let mut diagnostic = Diagnostic::new(Code::BadSchema, node.span, message);
        if let Some(near) = did_you_mean(name, folders) {
            diagnostic = diagnostic.label(format!("did you mean `{near}`?"));
        }
        cx.add(diagnostic.help("it holds the shapes of this dialect's frames; without `schemas:` none is checked"));
        None
    }

    /// `span` is what needs the schema.
    pub fn get(&self, reference: &str, span: Span, cx: Cx) -> Option<Arc<Schema>> {
        if let Some(known) = self.compiled.borrow().get(reference) {
            return known.clone();
        }
        let compiled = match self.set.compile(reference) {
            Ok(schema) => Some(Arc::new(schema)),
            Err(error) => {
                if !self.follows_from_broken(reference, &error) {
                    cx.add(self.explain(reference, error, span, cx));
                }
                None
            }
        };
        self.compiled.borrow_mut().insert(reference.to_owned(), compiled.clone());
        compiled
    }

    /// The same for what leaves. An object that says nothing of other members would let anything pass.
    pub fn get_closed(&self, reference: &str, span: Span, cx: Cx) -> Option<Arc<Schema>> {
        let schema = self.get(reference, span, cx)?;
        let document = reference.split('#').next().unwrap_or_default();
        let new = self.looked_at.borrow_mut().insert(document.to_owned());
        for pointer in new.then(|| self.set.open_objects(document)).into_iter().flatten() {
            // Said in so many words, it is meant.
            if self.locate(document, &format!("{pointer}/additionalProperties"), cx).is_some() {
                continue;
            }
            let place = self.locate(document, &pointer, cx).unwrap_or(span);
            let at = if pointer.is_empty() { String::new() } else { format!(" at {pointer}") };
            let message = format!("the object{at} lets members pass that nobody declared");
            let help = "close it with `\"additionalProperties\": false`, or say `true` if that is meant";
            cx.add(Diagnostic::new(Code::OpenSchema, place, message).help(help));
        }
        Some(schema)
    }

    /// JSON is YAML, and our YAML knows where its values stand.
    fn locate(&self, document: &str, pointer: &str, cx: Cx) -> Option<Span> {
        let mut parsed = self.parsed.borrow_mut();
        let root = parsed.entry(document.to_owned()).or_insert_with(|| read(document, cx)).clone()?;
        place_in(&root, pointer)
    }

    fn follows_from_broken(&self, reference: &str, error: &SchemaError) -> bool {
        self.broken.iter().any(|name| match error {
            SchemaError::NotFound => reference.split('#').next() == Some(name),
            SchemaError::Invalid { message, .. } => message.contains(&format!("`{name}`")),
        })
    }

    fn explain(&self, reference: &str, error: SchemaError, span: Span, cx: Cx) -> Diagnostic {
        match error {
            SchemaError::NotFound => {
                let message = format!("there is no schema `schemas/{reference}` for what is made here");
                let diagnostic = Diagnostic::new(Code::BadSchema, span, message)
                    .help("a shape is two files: the mapping that makes it and the schema that allows it");
                let folder = reference.split('/').next().unwrap_or_default();
                let beside = self.names.iter().filter(|n| n.split('/').next() == Some(folder)).map(|n| stem(n));
                let defined = definitions(folder, cx);
                match did_you_mean(stem(reference), beside.chain(defined.iter().map(String::as_str))) {
                    Some(near) => diagnostic.label(format!("did you mean `{near}`?")),
                    None => diagnostic,
                }
            }
            SchemaError::Invalid { document, pointer, message } => {
                let keyword = pointer.rsplit('/').next().unwrap_or_default();
                // The grammar of schemas is a schema itself, and its complaints speak of that one.
                let message = match message.contains("keyword") || message.contains("schemas") {
                    true => format!("JSON Schema has no such `{keyword}`"),
                    false => message,
                };
                let place = self.locate(&document, &pointer, cx).unwrap_or(span);
                let diagnostic = Diagnostic::new(Code::BadSchema, place, message);
                match keyword {
                    "type" => diagnostic.help("one of string, number, integer, boolean, object, array or null"),
                    _ => diagnostic,
                }
            }
        }
    }
}

/// `chunk` of `chat/chunk.json`, as a mapping names it.
fn stem(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name).trim_end_matches(".json")
}

/// What the frames of a dialect may be called that have no file of their own.
fn definitions(folder: &str, cx: Cx) -> Vec<String> {
    let name = format!("schemas/{folder}/events.json");
    let source = cx.sources.iter().find(|(_, s)| s.name == name);
    let root = source.and_then(|(file, source)| yaml::parse(file, &source.text, &Findings::default()));
    match root.as_ref().and_then(|root| root.get("$defs")).map(|node| &node.kind) {
        Some(Kind::Map(entries)) => entries.iter().map(|entry| entry.key.clone()).collect(),
        _ => Vec::new(),
    }
}

fn read(document: &str, cx: Cx) -> Option<Rc<Node>> {
    let name = format!("schemas/{document}");
    let (file, source): (FileId, _) = cx.sources.iter().find(|(_, s)| s.name == name)?;
    yaml::parse(file, &source.text, &Findings::default()).map(Rc::new)
}

fn place_in(root: &Node, pointer: &str) -> Option<Span> {
    let (mut node, mut span) = (root, root.span);
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        node = match &node.kind {
            Kind::Map(entries) => {
                let entry = entries.iter().find(|e| e.key == step)?;
                span = entry.key_span;
                &entry.value
            }
            Kind::List(items) => {
                let item = items.get(step.parse::<usize>().ok()?)?;
                span = item.span;
                item
            }
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Text(_) => return None,
        };
    }
    // The carets stand under a word: a value that is one, else its key.
    Some(if matches!(node.kind, Kind::Map(_) | Kind::List(_)) { span } else { node.span })
}
